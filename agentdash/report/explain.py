"""`agentdash explain TARGET`: all evidence for a worker's state and verdict, as the document
`agentdash.explain/3` and as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agentdash.documents.worker import EvidenceReport, PolicyReport, WorkerReport, document
from agentdash.model import worker as w
from agentdash.model.pane import Pane
from agentdash.model.secrets import mask_fields, mask_secrets
from agentdash.model.times import iso
from agentdash.report.check import is_about
from agentdash.report.elements import ViaReport, print_denial, print_evidence, print_finding, say

if TYPE_CHECKING:
    from agentdash.agents.screen_reader import ScreenReading


class ScreenshotReport(msgspec.Struct):
    """The screen of a pane, with all that its reading depends on. Secrets in it are masked."""

    agent: str
    title: str
    """The title of the pane."""
    width: int
    """Columns; 0 where they are not known. Likewise rows."""
    height: int
    """Rows."""
    cursor: Literal["visible", "hidden"] | None
    """Whether the cursor is shown."""
    screen: list[str]
    """Its lines."""


class ExplainedReport(WorkerReport, kw_only=True):
    """One worker with all its evidence."""

    verdict_evidence: list[EvidenceReport]
    """Evidence of the verdict, and against it."""
    policies: list[PolicyReport]
    links: list[w.Link]
    """What belongs to it, and the evidence for it."""
    screenshot: ScreenshotReport | None
    """Its pane, as its screen was read; null without one. `explain --screen` takes this object, or the whole
    document, and reads it the same way."""


class ExplainReport(msgspec.Struct):
    """The document of `agentdash explain TARGET --json`."""

    schema: Literal["agentdash.explain/3"]
    generated_at: str
    workers: list[ExplainedReport]
    via: ViaReport | None = None
    """Null if live sources were read."""


def explain_report(snapshot: w.Snapshot, via: ViaReport | None = None) -> ExplainReport:
    """Return the document of all workers of a snapshot."""
    return ExplainReport(
        schema="agentdash.explain/3",
        generated_at=iso(snapshot.at) or "",
        workers=[_worker_report(worker) for worker in snapshot.workers],
        via=via,
    )


def print_explained(snapshot: w.Snapshot, console: Console) -> None:
    """Print all workers of a snapshot: state, verdict, findings, evidence; secrets masked."""
    for number, worker in enumerate(mask_fields(explain_report(snapshot)).workers):
        if number:
            console.print()
        say(console, f"{worker.name}  ({worker.id})", style="bold")
        say(console, f"{worker.state}: {worker.why}")
        print_evidence(worker.evidence, console, 2, with_rules=True)
        _print_sandbox(worker, console)
        findings = worker.sandbox.findings
        for finding in findings:
            print_finding(finding, console, 0)
        for denial in worker.sandbox.denials:
            if not any(is_about(finding, denial) for finding in findings):
                print_denial(denial, console, 0)
        for link in worker.links:
            say(console, f"belongs to {link.to}: {link.by}", style="dim")


def _print_sandbox(worker: ExplainedReport, console: Console) -> None:
    sandbox = worker.sandbox
    policy = sandbox.configured
    configured = f"files {policy.filesystem}, network {policy.network}" if policy else "not stated"
    applied = sandbox.applied or "not seen"
    say(console, f"sandbox {sandbox.verdict}: configured {configured}; applied {applied}")
    if request := sandbox.requested:
        as_of = " (the files as of now)" if request.as_of else ""
        for origin in request.origin:
            place = f"{origin.file}:{origin.line}" if origin.file and origin.line else origin.file
            say(console, f"requested {origin.field}: {place or origin.layer}: {origin.text}{as_of}", 2)
    print_evidence(worker.verdict_evidence, console, 2, with_rules=True)
    for missing in sandbox.not_known:
        say(console, f"not known: {missing}", 2, style="dim")


def _worker_report(worker: w.Worker) -> ExplainedReport:
    return document(
        ExplainedReport,
        worker,
        verdict_evidence=worker.sandbox.evidence,
        screenshot=_screenshot(worker, worker.pane) if worker.pane is not None else None,
    )


def _screenshot(worker: w.Worker, pane: Pane) -> ScreenshotReport:
    return ScreenshotReport(
        agent=worker.agent.name,
        title=mask_secrets(pane.title),
        width=pane.width,
        height=pane.height,
        cursor="visible" if pane.cursor_visible else "hidden",
        screen=[mask_secrets(line) for line in pane.screen],
    )


# ------------------------------------------------------------
# `agentdash explain --screen`: how the rules read a saved screen


def print_screen(reading: ScreenReading, agent: str, versions: Sequence[str], console: Console) -> None:
    """Print a reading as a table, including why a state is not decided.

    Args:
        versions: those of the CLI with real screens on which the rule was tested.
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("agent", Text(agent))
    table.add_row("state", Text(reading.state or _undecided(reading)))
    table.add_row("rule", Text(reading.rule or "none matches"))
    if reading.text:
        table.add_row("words", Text(reading.text))
    if reading.partial and reading.state:
        table.add_row("", Text("half of a menu is out of sight"))
    table.add_row("tested on", Text(", ".join(versions) or "no real screen: from published descriptions"))
    console.print(table)


def _undecided(reading: ScreenReading) -> str:
    if reading.frozen:
        return "not shown: a view hides the prompt, what was known before still holds"
    return "not decided: half of a menu is out of sight" if reading.partial else "not decided by this screen"
