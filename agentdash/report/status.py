"""`agentdash status`: the fleet, as the document `agentdash.status/1` and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from agentdash.model import worker as w
from agentdash.model.findings import Verdict
from agentdash.model.limits import MAX_INDENT
from agentdash.model.pane import ScreenUsage
from agentdash.model.secrets import mask_secrets
from agentdash.model.source import NOT_READ
from agentdash.model.states import State
from agentdash.model.suggestions import suggest
from agentdash.model.times import ago, iso
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.elements import (
    AgentReport,
    ConfiguredReport,
    DenialReport,
    EvidenceReport,
    FactReport,
    FindingReport,
    GotReport,
    HostReport,
    RepositoryReport,
    RequestedReport,
    SourceReport,
    ViaReport,
    configured_report,
    denial_report,
    evidence_report,
    fact_report,
    finding_report,
    got_report,
    host_report,
    repository_report,
    requested_report,
    source_report,
)

if TYPE_CHECKING:
    from rich.console import Console

_SEEN_WIDTH: Final = 4
"""Of an age in the table, `120d` at most for a year."""


_WORDS_FROM_WIDTH: Final = 120
"""Columns from which the table has room for versions, and for policies in plain words, beside a reason."""


class StatePeriodReport(msgspec.Struct):
    """A period that a worker spent in one state."""

    state: str
    since: str | None
    until: str | None
    why: str


class SandboxReport(msgspec.Struct):
    """Requested, configured, applied and observed sandbox, and the verdict."""

    requested: RequestedReport | None
    """What was asked for, and where; null where that is not known."""
    configured: ConfiguredReport | None
    applied: str | None
    got: GotReport
    verdict: Verdict
    findings: list[FindingReport]
    denials: list[DenialReport]
    """The denial ledger: also denials that the worker got past."""
    not_known: list[str]
    """What could not be observed, or was not read: verdict and ledger are without it. `status` reads only the
    beginning and the end of large session files; `check` reads all of them."""


class WorkerReport(msgspec.Struct):
    """One worker."""

    id: str
    kind: w.WorkerKind
    name: str
    agent: AgentReport
    parent: str | None
    children: list[str]
    """Ids of the threads that it started."""
    state: str
    since: str | None
    why: str
    needs_you: bool
    """Whether it needs the user now: it waits, is blocked or has failed, is not acknowledged and not past."""
    group: str
    """`needs-you`, `running`, `unclear`, `done`, `past`."""
    is_new: bool
    """Whether it has come to rest, or begun to wait, since the user last looked."""
    fact: FactReport
    """The reason in short, with its object whole."""
    evidence: list[EvidenceReport]
    sandbox: SandboxReport
    """The layers of its sandbox."""
    pane: str | None
    """Its tmux pane; null where it has none."""
    pids: list[int]
    cwd: str | None
    tokens: int | None
    """Tokens of the whole session; null where they are not known."""
    last_activity: str | None
    """When it last gave a sign of life."""
    stalled_since: str | None
    """Time since which a running worker has shown no activity; null if it is active."""
    history: list[StatePeriodReport]
    """Its states, oldest first, the current one last; bounded."""
    host: str | None = None
    """The host it runs on; null: this machine. Then `id`, `parent` and `children` have its name in front of
    them, and `pane`, `pids` and paths are those of that host."""
    git: RepositoryReport | None = None
    """The git repository of its directory; null where it lies in none, or was not read in time, and of past
    workers."""
    shown_in: str | None = None
    """Of a worker of another host: the pane here that shows it."""
    ssh_connection: str | None = None
    """The ssh session that shows it: addresses and ports of client and server, by which a dashboard on the
    client's machine knows its pane; null: none is known."""
    on_screen: ScreenUsage | None = None
    """What the screen of its pane states of model, context and cost, as the CLI rounds it; null: nothing."""


class StatusReport(msgspec.Struct):
    """The document of `agentdash status --json`. Times are ISO 8601 in UTC; unknown values are null."""

    schema: Literal["agentdash.status/1"]
    generated_at: str
    sources: list[SourceReport]
    """The sources that were read, and whether they work."""
    workers: list[WorkerReport]
    via: ViaReport | None = None
    """Null if live sources were read."""
    hosts: list[HostReport] = []
    """Other hosts that are watched."""


def status_report(snapshot: w.Snapshot, via: ViaReport | None = None) -> StatusReport:
    """Return the document of a snapshot."""
    return StatusReport(
        schema="agentdash.status/1",
        generated_at=iso(snapshot.at) or "",
        sources=[source_report(source) for source in snapshot.sources],
        workers=[worker_report(worker) for worker in snapshot.workers],
        via=via,
        hosts=[host_report(link) for link in snapshot.hosts],
    )


def worker_report(worker: w.Worker) -> WorkerReport:
    """Return the report of a worker."""
    pane = str(worker.pane.key) if worker.pane else None
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
        needs_you=worker.needs_you,
        group=worker.group,
        is_new=worker.is_new,
        fact=fact_report(worker.fact),
        evidence=evidence_report(worker.assessment.evidence),
        sandbox=_sandbox_report(worker.sandbox, worker.notes),
        pane=pane if worker.host is None else worker.pane_there,
        pids=list(worker.pids),
        cwd=worker.cwd,
        tokens=worker.tokens.total,
        git=repository_report(worker.git) if worker.git else None,
        last_activity=iso(worker.last_activity),
        stalled_since=iso(worker.stalled),
        history=[
            StatePeriodReport(
                state=period.state, since=iso(period.since), until=iso(period.until), why=period.why
            )
            for period in worker.history
        ],
        host=worker.host,
        shown_in=pane if worker.host is not None else None,
        ssh_connection=worker.ssh_connection,
        on_screen=worker.on_screen,
    )


def print_status(snapshot: w.Snapshot, console: Console, notes: Console) -> None:
    """Print the fleet as a table, and the sources that failed on another console."""
    # `status --json` is called often, and starts faster without it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    states = [
        str(worker.state) if worker.stalled is None else f"{worker.state} (stalled)"
        for worker in snapshot.workers
    ]
    wide = console.width >= _WORDS_FROM_WIDTH
    sandboxes = [_sandbox_cell(worker.sandbox, in_words=wide) for worker in snapshot.workers]
    hosts = [worker.host or "-" for worker in snapshot.workers] if snapshot.hosts else []
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    # rich shrinks all columns alike, so those that must stand whole get their width
    table.add_column("STATE", no_wrap=True, min_width=max(map(len, (*states, "STATE"))))
    if hosts:
        table.add_column("HOST", no_wrap=True, overflow="ellipsis", max_width=20)
    table.add_column("WORKER", no_wrap=True, overflow="ellipsis", max_width=min(32, console.width // 4))
    table.add_column("AGENT", no_wrap=True, overflow="ellipsis")
    table.add_column("SANDBOX", no_wrap=True, min_width=max(map(len, (*sandboxes, "SANDBOX"))))
    table.add_column("SEEN", no_wrap=True, min_width=_SEEN_WIDTH)
    table.add_column("WHY", no_wrap=True, overflow="ellipsis", ratio=1)
    for i, (worker, state, sandbox) in enumerate(zip(snapshot.workers, states, sandboxes, strict=True)):
        table.add_row(
            Text(state),
            *([Text(hosts[i])] if hosts else []),
            Text("  " * min(worker.depth, MAX_INDENT) + mask_secrets(worker.name)),
            Text(f"{worker.agent.name} {worker.agent.version or ''}".strip() if wide else worker.agent.name),
            Text(sandbox),
            Text(ago(snapshot.at, worker.last_activity)),
            Text(mask_secrets(worker.fact.text)),
        )
    if snapshot.workers:
        console.print(table)
    failing = snapshot.failing_sources
    for source in snapshot.sources:
        if source in failing or not snapshot.workers or NOT_READ in source.detail:
            notes.print(Text(f"{source.name}: {source.detail}"), style="dim")


def _sandbox_report(sandbox: w.Sandbox, notes: Iterable[str]) -> SandboxReport:
    return SandboxReport(
        requested=requested_report(sandbox.requested) if sandbox.requested else None,
        configured=configured_report(sandbox.configured) if sandbox.configured else None,
        applied=sandbox.applied,
        got=got_report(sandbox.got),
        verdict=sandbox.verdict,
        findings=[finding_report(finding) for finding in sandbox.findings],
        denials=[denial_report(entry) for entry in sandbox.denials],
        not_known=[*sandbox.unread, *notes],
    )


def _sandbox_cell(sandbox: w.Sandbox, *, in_words: bool) -> str:
    mark = {"match": "=", "mismatch": "≠", "unverified": "?"}[sandbox.verdict]
    policy = sandbox.configured
    if policy is None:
        return f"- {mark}"
    return f"{policy.brief() if in_words else policy.short()} {mark}"


# ------------------------------------------------------------
# `agentdash status --json=FIELD,...`: chosen fields of each worker, as `agentdash.status-fields/1`


_WORKER: Final = WorkerReport.__struct_fields__
_SANDBOX: Final = tuple(name for name in SandboxReport.__struct_fields__ if name not in _WORKER)
FIELDS: Final = (*_WORKER, *_SANDBOX)
"""The names that can be chosen: the fields of a worker of `agentdash.status/1`, and of its `sandbox`."""


class StatusFieldsReport(msgspec.Struct):
    """The document of `agentdash status --json=FIELD,...`."""

    schema: Literal["agentdash.status-fields/1"]
    """Name and version of the document."""
    generated_at: str
    """When the fleet was read."""
    fields: list[str]
    """The fields that were asked for."""
    workers: list[dict[str, Any]]
    """Of each worker its `id`, and these fields as in `agentdash.status/1`; those of `sandbox` by their own
    name."""
    via: ViaReport | None = None
    """The status file that was read; null if live sources were read."""


class UnknownFieldError(Exception):
    """A field that does not exist; the message names it, and the nearest one."""


def parse_fields(text: str) -> tuple[str, ...]:
    """Return the fields named in `state,why,findings`; `sandbox.findings` is `findings`.

    Raises:
        UnknownFieldError: one does not exist, or none is named.
    """
    names = [name.strip().removeprefix("sandbox.") for name in text.split(",") if name.strip()]
    for name in names:
        if name not in FIELDS:
            raise UnknownFieldError(f"--json: no field {name!r}{suggest(name, FIELDS)}")
    if not names:
        raise UnknownFieldError(f"--json=: choose from {', '.join(FIELDS)}")
    return tuple(dict.fromkeys(names))


def status_fields_report(
    snapshot: Snapshot, fields: Sequence[str], via: ViaReport | None = None
) -> StatusFieldsReport:
    """Return the document of a snapshot with these fields of each worker."""
    return StatusFieldsReport(
        schema="agentdash.status-fields/1",
        generated_at=iso(snapshot.at) or "",
        fields=list(fields),
        workers=[_chosen(worker_report(worker), fields) for worker in snapshot.workers],
        via=via,
    )


def _chosen(report: WorkerReport, fields: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(report if name in _WORKER else report.sandbox, name) for name in fields}
    return {"id": report.id, **values}


# ------------------------------------------------------------
# `agentdash wait`: how waiting for a worker ended, as the document `agentdash.wait/1` and as one line


Outcome = Literal["reached", "timed-out", "gone"]
"""How waiting ended. `gone`: the worker no longer exists, so it cannot reach the state."""


class WaitReport(msgspec.Struct):
    """The document of `agentdash wait --json`."""

    schema: Literal["agentdash.wait/1"]
    target: str
    """The TARGET that was given."""
    until: list[str]
    """The states that were waited for."""
    outcome: Outcome
    """How waiting ended; `gone`: the worker no longer exists."""
    waited_seconds: float
    """Seconds that it took, without the first look."""
    worker: WorkerReport | None
    """Its last known form; null if it was never seen."""
    via: ViaReport | None
    """Null if live sources were read."""


def wait_report(
    target: str,
    until: tuple[State, ...],
    outcome: Outcome,
    waited: float,
    worker: Worker | None,
    via: ViaReport | None = None,
) -> WaitReport:
    """Return the document of a wait that took `waited` seconds."""
    return WaitReport(
        schema="agentdash.wait/1",
        target=target,
        until=[str(state) for state in until],
        outcome=outcome,
        waited_seconds=round(waited, 1),
        worker=worker_report(worker) if worker else None,
        via=via,
    )


def wait_line(report: WaitReport) -> str:
    """Return the outcome as one line: `blocked-sandbox  %4 build: write denied /x`."""
    if report.worker is None:
        return f"{report.outcome}  {report.target}"
    worker = report.worker
    late = "" if report.outcome == "reached" else f"  ({report.outcome} after {report.waited_seconds:g} s)"
    return f"{worker.state}  {worker.pane or worker.id} {worker.name}: {worker.fact.text}{late}"
