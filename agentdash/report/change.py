"""`agentdash status --watch`: one line per change of the fleet, as the document `agentdash.change/1`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from agentdash import __version__
from agentdash.model.fact import FactKind, ObjectForm
from agentdash.model.states import Group, State
from agentdash.model.times import iso, time_of_day
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.elements import FactReport, SourceReport, source_report
from agentdash.report.status import SandboxReport, WorkerReport, worker_report

_UNCOMPARED: Final = frozenset(("evidence", "pids", "tokens", "last_activity", "history", "is_new"))
"""Fields that are no change by themselves: they follow from others, grow while a worker works, or depend on
when the user looked."""
_TICKING: Final = re.compile(
    r"\d+:\d\d|\d[\d.,]*\s?(?:[kM]?\s?tokens?|[mµ]?s|sec(?:onds?)?|m|min(?:utes?)?|h|hours?|%)(?!\w)"
    r"|[\u2800-\u28ff⬝■•◦✻✶✳✢✽·*∗░▒▓█…]+|\s+"
)
"""What changes in a text while a worker does the same: clocks, countdowns, counters, spinners, bars."""


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


def changes(old: Snapshot | None, new: Snapshot) -> Iterator[ChangeReport]:
    """Yield the differences between two snapshots; with None as the old one, everything is new.

    Ages, token counts, process ids, clocks and spinners alone are no change, nor is what a worker that goes
    on working does.
    """
    at = iso(new.at) or ""
    before = {worker.id: worker for worker in old.workers} if old else {}
    for worker in new.workers:
        known = before.pop(worker.id, None)
        if known is worker:
            continue
        report = worker_report(worker)
        if known is None:
            yield ChangeReport(schema="agentdash.change/1", at=at, change="added", worker=report)
        elif changed := changed_fields(worker_report(known), report):
            yield ChangeReport(
                schema="agentdash.change/1", at=at, change="changed", changed=changed, worker=report
            )
    for removed in before.values():
        report = worker_report(removed)
        yield ChangeReport(schema="agentdash.change/1", at=at, change="removed", worker=report)
    health = {source.name: source.ok for source in old.sources} if old else {}
    for source in new.sources:
        if health.get(source.name) != source.ok:
            health_report = source_report(source)
            yield ChangeReport(schema="agentdash.change/1", at=at, change="source", source=health_report)


class Heartbeats:
    """Makes the lines of heartbeats.

    Args:
        ssh_connection: the ssh session in which this agentdash runs.
    """

    def __init__(self, ssh_connection: str | None = None) -> None:
        self._ssh_connection = ssh_connection
        self._stated: dict[str, TickReport] = {}

    def add(self, change: ChangeReport) -> None:
        """Keep what another line has stated."""
        if change.worker is not None:
            worker = change.worker
            self._stated[worker.id] = TickReport(worker.id, worker.last_activity, worker.tokens)

    def next(self, now: float, workers: Iterable[Worker]) -> ChangeReport:
        """Return the line of a heartbeat.

        Args:
            now: unix seconds.
            workers: all of them, as they are now.
        """
        present = [
            TickReport(worker.id, iso(worker.last_activity), worker.tokens.total) for worker in workers
        ]
        ticks = [tick for tick in present if self._stated.get(tick.id) != tick]
        self._stated = {tick.id: tick for tick in present}
        return ChangeReport(
            schema="agentdash.change/1",
            at=iso(now) or "",
            change="alive",
            version=__version__,
            ssh_connection=self._ssh_connection,
            ticks=ticks,
        )


def changed_fields(old: WorkerReport, new: WorkerReport) -> list[str]:
    """Return the names of the fields in which two reports of a worker differ, but for what ticks."""
    before, now = dict(_compared(old)), dict(_compared(new))
    return [name for name in now if before[name] != now[name]]


def _compared(report: WorkerReport) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a report, those of its sandbox as `sandbox.NAME`, without what ticks."""
    for name in report.__struct_fields__:
        value = getattr(report, name)
        match value:
            case _ if name in _UNCOMPARED:
                continue
            case SandboxReport():
                yield from ((f"sandbox.{each}", _essence(value, each)) for each in value.__struct_fields__)
            case FactReport():
                yield name, _essential_fact(value)
            case str() if name in ("name", "why"):
                yield name, _without_ticking(value)
            case _ if name == "stalled_since":
                yield name, value is None
            case _:
                yield name, value


def _essence(sandbox: SandboxReport, name: str) -> Any:
    """Return a field of a sandbox without times and evidence, which each command adds to."""
    match name:
        case "requested" if sandbox.requested is not None:
            return msgspec.structs.replace(sandbox.requested, since=None, as_of=None)
        case "findings":
            return [(finding.kind, finding.message, finding.remedy) for finding in sandbox.findings]
        case "denials":
            return [(denial.operation, denial.target, denial.count) for denial in sandbox.denials]
        case "not_known":
            return [_without_ticking(text) for text in sandbox.not_known]
        case _:
            return getattr(sandbox, name)


def _essential_fact(fact: FactReport) -> tuple[str, ...]:
    """Return what distinguishes two facts; of work only that it is work."""
    if fact.kind == FactKind.WORK:
        return (fact.kind,)
    named = _without_ticking(fact.object) if fact.form == ObjectForm.TEXT else fact.object
    return fact.kind, fact.form, named, _without_ticking(fact.what), _without_ticking(fact.why)


def _without_ticking(text: str) -> str:
    return _TICKING.sub("", text)


# ------------------------------------------------------------
# `agentdash watch`: what changes in the fleet as plain sentences, for screen readers and logs


_VERBS: Final = {
    State.RUNNING: "is running",
    State.WAITING_INPUT: "waits for input",
    State.WAITING_APPROVAL: "waits for approval",
    State.BLOCKED_SANDBOX: "is blocked by a sandbox",
    State.FAILED_PERMISSION: "was refused a permission",
    State.FAILED_PROVIDER: "failed at the provider",
    State.COMPLETED: "has completed",
    State.INTERRUPTED: "was interrupted",
    State.EXITED: "has exited",
    State.UNREACHABLE: "is unreachable",
    State.UNKNOWN: "is in an unknown state",
}


def news(old: Snapshot | None, new: Snapshot) -> Iterator[str]:
    """Yield one line for each change that matters to a person; with None as the old snapshot, a summary.

    A worker that works on is no news; one that needs somebody, ends, appears or goes is, and so are new
    findings and sources that fail or recover.
    """
    at = time_of_day(new.at)
    if old is None:
        yield f"{at}  {_summary(new)}"
        yield from (f"{at}  {_state(worker)}" for worker in new.workers if worker.group is Group.NEEDS_YOU)
        return
    before = {worker.id: worker for worker in old.workers}
    for worker in new.workers:
        known = before.pop(worker.id, None)
        if known is not worker:
            yield from (f"{at}  {line}" for line in _of_worker(known, worker))
    yield from (f"{at}  {_name(worker)} has gone" for worker in before.values())
    health = {source.name: source.ok for source in old.sources}
    for source in new.sources:
        if health.get(source.name) is not source.ok:
            yield f"{at}  source {source.name} {'works' if source.ok else 'fails'}: {source.detail}"


def _of_worker(known: Worker | None, worker: Worker) -> Iterator[str]:
    if known is None:
        yield f"new: {_state(worker)}"
    elif _standing(known) != _standing(worker):
        yield _state(worker)
    found = {(finding.kind, finding.message) for finding in known.sandbox.findings} if known else set()
    for finding in worker.sandbox.findings:
        if finding.severity != "info" and (finding.kind, finding.message) not in found:
            yield f"{_name(worker)}, sandbox: {finding.kind}: {finding.message}"


def _standing(worker: Worker) -> tuple[str, ...]:
    """Return what is news when it differs: the state, and where it needs the user, for what."""
    return (worker.state, worker.fact.text) if worker.group is Group.NEEDS_YOU else (worker.state,)


def _state(worker: Worker) -> str:
    why = f": {worker.fact.text}" if worker.fact.text else ""
    stalled = ", stalled" if worker.stalled is not None else ""
    return f"{_name(worker)} {_VERBS[worker.state]}{stalled}{why}"


def _name(worker: Worker) -> str:
    host = f" on {worker.host}" if worker.host else ""
    return f"{worker.name} ({worker.agent.name}{host})"


def _summary(snapshot: Snapshot) -> str:
    counts, total = snapshot.counts(), len(snapshot.workers)
    parts = [f"{counts[group]} {group.replace('-', ' ')}" for group in Group if counts[group]]
    return f"{total} worker{'' if total == 1 else 's'}{': ' if parts else ''}{', '.join(parts)}"
