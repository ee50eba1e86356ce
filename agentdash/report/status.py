"""`agentdash status`: the fleet as a table for people and as `agentdash.status/1` for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from agentdash.model import worker as w
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding, Verdict
from agentdash.model.fleet import SourceHealth
from agentdash.model.policy import Policy
from agentdash.model.times import ago, iso

if TYPE_CHECKING:
    from rich.console import Console


class SourceReport(msgspec.Struct):
    """One source of facts and how it is doing."""

    name: str
    ok: bool
    detail: str


class AgentReport(msgspec.Struct):
    """The program a worker is."""

    name: str
    version: str | None


class EvidenceReport(msgspec.Struct):
    """One thing that was seen."""

    source: str
    at: str | None
    rule: str
    text: str
    agrees: bool
    """Whether it speaks for the state; what speaks against it is shown as well."""


class StatePeriodReport(msgspec.Struct):
    """A time that a worker spent in one state."""

    state: str
    since: str | None
    until: str | None
    why: str


class ConfiguredReport(msgspec.Struct):
    """The policy in force."""

    filesystem: str
    network: str
    writable_roots: list[str]
    approval: str | None


class GotReport(msgspec.Struct):
    """What the newest command was seen to have; null where it was not seen."""

    network_flag: str | None
    sandbox_flag: str | None
    seccomp: int | None
    no_new_privs: bool | None
    network_namespace: str | None
    sandboxed: bool | None


class FindingReport(msgspec.Struct):
    """A difference between configured and got, or a denial that stopped the worker."""

    kind: str
    direction: str
    severity: str
    message: str
    evidence: list[EvidenceReport]
    remedy: str | None


class SandboxReport(msgspec.Struct):
    """The three layers and the verdict."""

    configured: ConfiguredReport | None
    applied: str | None
    got: GotReport
    verdict: Verdict
    findings: list[FindingReport]


class WorkerReport(msgspec.Struct):
    """One worker."""

    id: str
    kind: Literal["codex-thread", "pane"]
    name: str
    agent: AgentReport
    parent: str | None
    children: list[str]
    state: str
    since: str | None
    why: str
    evidence: list[EvidenceReport]
    sandbox: SandboxReport
    pane: str | None
    pids: list[int]
    cwd: str | None
    tokens: int | None
    last_activity: str | None
    stalled_since: str | None
    """Of one that runs: since when it has given no sign of life; null where it gives some."""
    history: list[StatePeriodReport]
    """The states it has been in, oldest first, the present one last; bounded."""


class ViaReport(msgspec.Struct):
    """The status file that was read instead of looking: agentdash ran inside of a sandbox."""

    file: str
    age_seconds: float | None
    """How old it was; null where there was none."""
    pid: int | None
    problem: str | None
    """Why it was of no use, and what to do; null where it was."""


class StatusReport(msgspec.Struct):
    """The document of `agentdash status --json`. Times are ISO 8601, UTC; what is not known is null."""

    schema: Literal["agentdash.status/1"]
    generated_at: str
    sources: list[SourceReport]
    workers: list[WorkerReport]
    via: ViaReport | None = None
    """Null where the fleet was looked at directly."""


def status_report(snapshot: w.Snapshot, via: ViaReport | None = None) -> StatusReport:
    """A snapshot as a document."""
    return StatusReport(
        "agentdash.status/1",
        iso(snapshot.at) or "",
        [source_report(s) for s in snapshot.sources],
        [worker_report(x) for x in snapshot.workers],
        via,
    )


def source_report(source: SourceHealth) -> SourceReport:
    """A source as a document."""
    return SourceReport(source.name, source.ok, source.detail)


def print_status(snapshot: w.Snapshot, console: Console) -> None:
    """The fleet as a table; sources that fail are named below it."""
    from rich.table import Table  # noqa: PLC0415 - programs ask for JSON, often, and do not wait for this
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("STATE", "WORKER", "AGENT", "SANDBOX", "SEEN", "WHY"):
        table.add_column(
            column, no_wrap=True, overflow="ellipsis", max_width=32 if column == "WORKER" else None
        )
    for worker in snapshot.workers:
        table.add_row(
            Text(worker.state if worker.stalled is None else f"{worker.state} (stalled)"),
            Text("  " * worker.depth + worker.name),
            Text(f"{worker.agent.name} {worker.agent.version or ''}".strip()),
            Text(_sandbox_cell(worker.sandbox)),
            Text(ago(snapshot.at, worker.last_activity)),
            Text(worker.assessment.why),
        )
    if snapshot.workers:
        console.print(table)
    for source in snapshot.sources:
        if not source.ok or not snapshot.workers:
            console.print(Text(f"{source.name}: {source.detail}"), style="dim")


def worker_report(worker: w.Worker) -> WorkerReport:
    """A worker as a document."""
    return WorkerReport(
        id=worker.id,
        kind=worker.kind,
        name=worker.name,
        agent=AgentReport(worker.agent.name, worker.agent.version),
        parent=worker.parent,
        children=list(worker.children),
        state=str(worker.state),
        since=iso(worker.assessment.since),
        why=worker.assessment.why,
        evidence=evidence_report(worker.assessment.evidence),
        sandbox=_sandbox(worker.sandbox),
        pane=str(worker.pane.key) if worker.pane else None,
        pids=list(worker.pids),
        cwd=worker.cwd,
        tokens=worker.tokens.total,
        last_activity=iso(worker.last_activity),
        stalled_since=iso(worker.stalled),
        history=[StatePeriodReport(s.state, iso(s.since), iso(s.until), s.why) for s in worker.history],
    )


def got_report(got: w.Got) -> GotReport:
    """What commands got, as a document."""
    return GotReport(
        got.network_flag,
        got.sandbox_flag,
        got.seccomp,
        got.no_new_privs,
        got.network_namespace,
        got.sandboxed,
    )


def _sandbox(sandbox: w.Sandbox) -> SandboxReport:
    return SandboxReport(
        configured_report(sandbox.configured) if sandbox.configured else None,
        sandbox.applied,
        got_report(sandbox.got),
        sandbox.verdict,
        [finding_report(f) for f in sandbox.findings],
    )


def finding_report(finding: Finding) -> FindingReport:
    """A finding as a document."""
    evidence = evidence_report(finding.evidence)
    return FindingReport(
        finding.kind, finding.direction, finding.severity, finding.message, evidence, finding.remedy
    )


def configured_report(policy: Policy) -> ConfiguredReport:
    """A policy as a document."""
    return ConfiguredReport(
        str(policy.filesystem), str(policy.network), list(policy.writable_roots), policy.approval
    )


def evidence_report(evidence: tuple[Evidence, ...]) -> list[EvidenceReport]:
    """Pieces of evidence as a document."""
    return [EvidenceReport(e.source, iso(e.at), e.rule, e.text, e.agrees) for e in evidence]


def _sandbox_cell(sandbox: w.Sandbox) -> str:
    mark = {"match": "=", "mismatch": "≠", "unverified": "?"}[sandbox.verdict]
    return f"{sandbox.configured.brief() if sandbox.configured else '-'} {mark}"
