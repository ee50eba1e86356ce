"""`agentdash status`: the fleet, as the document `agentdash.status/1` and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from agentdash.documents.change import SourceReport, source_report
from agentdash.documents.worker import SandboxReport, WorkerReport, worker_report
from agentdash.model import worker as w
from agentdash.model.limits import MAX_INDENT
from agentdash.model.secrets import mask_secrets
from agentdash.model.source import NOT_READ
from agentdash.model.states import State
from agentdash.model.suggestions import suggest
from agentdash.model.times import ago, iso
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.elements import HostReport, ViaReport, host_report

if TYPE_CHECKING:
    from rich.console import Console

_SEEN_WIDTH: Final = 4
"""Of an age in the table, `120d` at most for a year."""


_WORDS_FROM_WIDTH: Final = 120
"""Columns from which the table has room for versions, and for policies in plain words, beside a reason."""


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
