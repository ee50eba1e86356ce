"""`agentdash wait` and `agentdash status --watch`: one worker's way to a state, and every change of a fleet, for those who follow it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from agentdash.model.states import State
from agentdash.model.times import iso
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.status import SourceReport, ViaReport, WorkerReport, source_report, worker_report

Outcome = Literal["reached", "timed-out", "gone"]
"""How waiting ended. `gone`: the worker is not there any more, so that it will never get there."""


class WaitReport(msgspec.Struct):
    """The document of `agentdash wait --json`."""

    schema: Literal["agentdash.wait/1"]
    target: str
    until: list[str]
    outcome: Outcome
    waited_seconds: float
    worker: WorkerReport | None
    """As it was seen last; null where it was never seen."""
    via: ViaReport | None
    """Null where it was looked at directly."""


class ChangeReport(msgspec.Struct):
    """A line of `agentdash status --watch`: one worker or source that came, changed or went."""

    schema: Literal["agentdash.change/1"]
    at: str
    change: Literal["added", "changed", "removed", "source"]
    worker: WorkerReport | None = None
    """As it is now; of one that was removed, as it was last."""
    source: SourceReport | None = None


def wait_report(
    target: str,
    until: tuple[State, ...],
    outcome: Outcome,
    waited: float,
    worker: Worker | None,
    via: ViaReport | None = None,
) -> WaitReport:
    """How waiting ended, as a document; `waited` in seconds."""
    last = worker_report(worker) if worker else None
    return WaitReport(
        "agentdash.wait/1", target, [str(s) for s in until], outcome, round(waited, 1), last, via
    )


def wait_line(report: WaitReport) -> str:
    """The same for people: `blocked-sandbox  %4 build: its last command was denied /x`."""
    if report.worker is None:
        return f"{report.outcome}  {report.target}"
    worker = report.worker
    late = "" if report.outcome == "reached" else f"  ({report.outcome} after {report.waited_seconds:g} s)"
    return f"{worker.state}  {worker.pane or worker.id} {worker.name}: {worker.why}{late}"


def changes(old: Snapshot | None, new: Snapshot) -> Iterator[ChangeReport]:
    """What is different, worker by worker. Ages, token counts and process numbers alone are no change; to None, all is new."""
    at = iso(new.at) or ""
    before = {worker.id: worker for worker in old.workers} if old else {}
    for worker in new.workers:
        report = worker_report(worker)
        if (known := before.pop(worker.id, None)) is None:
            yield ChangeReport("agentdash.change/1", at, "added", report)
        elif _still(worker_report(known)) != _still(report):
            yield ChangeReport("agentdash.change/1", at, "changed", report)
    for gone in before.values():
        yield ChangeReport("agentdash.change/1", at, "removed", worker_report(gone))
    health = {source.name: source.ok for source in old.sources} if old else {}
    for source in new.sources:
        if health.get(source.name) != source.ok:
            yield ChangeReport("agentdash.change/1", at, "source", source=source_report(source))


def _still(report: WorkerReport) -> WorkerReport:
    """What a change is told of."""
    return msgspec.structs.replace(report, tokens=None, last_activity=None, pids=[], evidence=[])
