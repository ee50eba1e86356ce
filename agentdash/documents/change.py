"""A line of `agentdash status --watch`, the document `agentdash.change/1`."""

from __future__ import annotations

from typing import Literal

import msgspec

from agentdash.documents.worker import WorkerReport
from agentdash.model.fleet import SourceHealth


class SourceReport(msgspec.Struct):
    """Health of one source."""

    name: str
    ok: bool
    detail: str


def source_report(source: SourceHealth) -> SourceReport:
    """Return the report of a source."""
    return SourceReport(source.name, source.ok, source.detail)


class TickReport(msgspec.Struct):
    """What grows while a worker works, and is no change by itself."""

    id: str
    """The worker."""
    last_activity: str | None
    """When it was last active."""
    tokens: int | None
    """Its tokens so far."""


class ChangeReport(msgspec.Struct):
    """A line of `agentdash status --watch`: a worker or source that was added, changed or removed; or a
    heartbeat."""

    schema: Literal["agentdash.change/1"]
    at: str
    change: Literal["added", "changed", "removed", "source", "alive"]
    """What happened. `alive`: a heartbeat; the first one ends the lines of the first snapshot."""
    changed: list[str] = []
    """The fields of a changed worker that differ, `state`, `why`, `sandbox.findings` ...; else empty."""
    worker: WorkerReport | None = None
    """As of now; the last known form of a removed one."""
    source: SourceReport | None = None
    version: str | None = None
    """Of `alive`: the version of agentdash."""
    ssh_connection: str | None = None
    """Of `alive`: the ssh session in which this agentdash runs."""
    ticks: list[TickReport] = []
    """Of `alive`: workers of which only these have changed since their last line."""
