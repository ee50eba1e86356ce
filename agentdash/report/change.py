"""`agentdash status --watch`: one line per change of the fleet, as the document `agentdash.change/1`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from agentdash.model.times import iso
from agentdash.model.worker import Snapshot
from agentdash.report.elements import SourceReport, source_report
from agentdash.report.status import WorkerReport, worker_report


class ChangeReport(msgspec.Struct):
    """A line of `agentdash status --watch`: a worker or source that was added, changed or removed."""

    schema: Literal["agentdash.change/1"]
    at: str
    change: Literal["added", "changed", "removed", "source"]
    worker: WorkerReport | None = None
    """As of now; the last known form of a removed one."""
    source: SourceReport | None = None


def changes(old: Snapshot | None, new: Snapshot) -> Iterator[ChangeReport]:
    """Yield the differences between two snapshots; with None as the old one, everything is new.

    Ages, token counts and process ids alone are no change.
    """
    at = iso(new.at) or ""
    before = {worker.id: worker for worker in old.workers} if old else {}
    for worker in new.workers:
        report = worker_report(worker)
        if (known := before.pop(worker.id, None)) is None:
            yield ChangeReport(schema="agentdash.change/1", at=at, change="added", worker=report)
        elif _comparable(worker_report(known)) != _comparable(report):
            yield ChangeReport(schema="agentdash.change/1", at=at, change="changed", worker=report)
    for removed in before.values():
        report = worker_report(removed)
        yield ChangeReport(schema="agentdash.change/1", at=at, change="removed", worker=report)
    health = {source.name: source.ok for source in old.sources} if old else {}
    for source in new.sources:
        if health.get(source.name) != source.ok:
            health_report = source_report(source)
            yield ChangeReport(schema="agentdash.change/1", at=at, change="source", source=health_report)


def _comparable(report: WorkerReport) -> WorkerReport:
    return msgspec.structs.replace(report, tokens=None, last_activity=None, pids=[], evidence=[])
