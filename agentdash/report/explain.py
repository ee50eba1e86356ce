"""`agentdash explain TARGET`: every piece of evidence for a worker's state and verdict, as text and as `agentdash.explain/1`."""

from __future__ import annotations

from typing import Literal

import msgspec
from rich.console import Console
from rich.text import Text

from agentdash.engine.judge.findings.state_paths import predicted_denials
from agentdash.model import worker as w
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding
from agentdash.model.state_paths import Installed
from agentdash.model.times import iso
from agentdash.report.check import PolicyReport, policy_report
from agentdash.report.status import (
    AgentReport,
    ConfiguredReport,
    EvidenceReport,
    GotReport,
    ViaReport,
    configured_report,
    evidence_report,
    got_report,
)


class FindingReport(msgspec.Struct):
    """A finding, whole."""

    kind: str
    direction: str
    severity: str
    message: str
    configured: str
    got: str
    since: str | None
    last: str | None
    count: int
    calls: list[str]
    pids: list[int]
    remedy: str | None
    evidence: list[EvidenceReport]


class LinkReport(msgspec.Struct):
    """A tie to a pane or a process, and what it rests on."""

    to: str
    by: str


class ExplainedReport(msgspec.Struct):
    """One worker: its state and its verdict, each with what it rests on."""

    id: str
    name: str
    agent: AgentReport
    state: str
    since: str | None
    why: str
    evidence: list[EvidenceReport]
    verdict: str
    configured: ConfiguredReport | None
    applied: str | None
    got: GotReport
    verdict_evidence: list[EvidenceReport]
    unread: list[str]
    """What would have told more, and could not be read; what was skipped."""
    findings: list[FindingReport]
    policies: list[PolicyReport]
    would_deny: dict[str, list[str]]
    """Worker CLIs that could be started here, and the places of their state that the policy in force denies."""
    links: list[LinkReport]


class ExplainReport(msgspec.Struct):
    """The document of `agentdash explain TARGET --json`."""

    schema: Literal["agentdash.explain/1"]
    generated_at: str
    workers: list[ExplainedReport]
    via: ViaReport | None = None
    """Null where the fleet was looked at directly."""


def explain_report(snapshot: w.Snapshot, via: ViaReport | None = None) -> ExplainReport:
    """The workers of a snapshot, explained."""
    return ExplainReport(
        "agentdash.explain/1",
        iso(snapshot.at) or "",
        [_worker(x, snapshot.installed) for x in snapshot.workers],
        via,
    )


def print_explained(snapshot: w.Snapshot, console: Console) -> None:
    """The same for people: state, verdict, findings, and what they rest on."""
    for number, worker in enumerate(snapshot.workers):
        if number:
            console.print()
        console.print(Text(f"{worker.name}  ({worker.id})", style="bold"))
        console.print(Text(f"{worker.state}: {worker.assessment.why}"))
        _print_evidence(worker.assessment.evidence, console)
        sandbox = worker.sandbox
        configured = sandbox.configured.brief() if sandbox.configured else "not stated"
        console.print(
            Text(
                f"sandbox {sandbox.verdict}: configured {configured}; applied {sandbox.applied or 'not seen'}"
            )
        )
        _print_evidence(sandbox.evidence, console)
        for missing in (*sandbox.unread, *worker.notes):
            console.print(Text(f"  not known: {missing}"), style="dim")
        for finding in sandbox.findings:
            console.print(
                Text(
                    f"{finding.kind} ({finding.direction}, {finding.severity}, {finding.count}x): {finding.message}"
                )
            )
            console.print(Text(f"  configured  {finding.configured}"))
            console.print(Text(f"  got         {finding.got}"))
            _print_evidence(finding.evidence, console)
            if finding.remedy:
                console.print(Text(f"  remedy      {finding.remedy}"))
        for agent, paths in predicted_denials(sandbox.configured, snapshot.installed, worker.cwd).items():
            console.print(
                Text(f"would deny {agent}: {', '.join(access.path for access in paths)}"), style="dim"
            )
        for link in worker.links:
            console.print(Text(f"tied to {link.to}: {link.by}"), style="dim")


def _print_evidence(evidence: tuple[Evidence, ...], console: Console) -> None:
    for piece in evidence:
        mark = "+" if piece.agrees else "-"
        console.print(
            Text(f"  {mark} {piece.source} {iso(piece.at) or ''} {piece.rule}: {piece.text}"), style="dim"
        )


def _worker(worker: w.Worker, installed: Installed | None) -> ExplainedReport:
    sandbox = worker.sandbox
    denied = predicted_denials(sandbox.configured, installed, worker.cwd)
    return ExplainedReport(
        id=worker.id,
        name=worker.name,
        agent=AgentReport(worker.agent.name, worker.agent.version),
        state=str(worker.state),
        since=iso(worker.assessment.since),
        why=worker.assessment.why,
        evidence=evidence_report(worker.assessment.evidence),
        verdict=sandbox.verdict,
        configured=configured_report(sandbox.configured) if sandbox.configured else None,
        applied=sandbox.applied,
        got=got_report(sandbox.got),
        verdict_evidence=evidence_report(sandbox.evidence),
        unread=[*sandbox.unread, *worker.notes],
        findings=[_finding(f) for f in sandbox.findings],
        policies=[policy_report(p) for p in worker.policies],
        would_deny={agent: [access.path for access in paths] for agent, paths in denied.items()},
        links=[LinkReport(link.to, link.by) for link in worker.links],
    )


def _finding(finding: Finding) -> FindingReport:
    return FindingReport(
        kind=finding.kind,
        direction=finding.direction,
        severity=finding.severity,
        message=finding.message,
        configured=finding.configured,
        got=finding.got,
        since=iso(finding.since),
        last=iso(finding.last),
        count=finding.count,
        calls=list(finding.calls),
        pids=list(finding.pids),
        remedy=finding.remedy,
        evidence=evidence_report(finding.evidence),
    )
