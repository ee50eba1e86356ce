"""The fleet in words and documents: `agentdash status`, `status --watch`, `status --follow` and `wait`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from agentdash import __version__
from agentdash.documents.worker import (
    ChangeReport,
    FactReport,
    SandboxReport,
    SourceReport,
    TickReport,
    WorkerReport,
    document,
)
from agentdash.model import worker as w
from agentdash.model.fact import FactKind, ObjectForm
from agentdash.model.limits import MAX_INDENT
from agentdash.model.secrets import mask_secrets
from agentdash.model.source import NOT_READ
from agentdash.model.states import Group, State
from agentdash.model.suggestions import suggest
from agentdash.model.times import ago, iso, time_of_day
from agentdash.model.usage_limits import usage_limits
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.elements import HostReport, ViaReport

if TYPE_CHECKING:
    from rich.console import Console

_ALL_FROM_WIDTH: Final = 120
"""Columns from which the table has all its columns: below, state, worker and reason count."""
_STYLES: Final = {Group.NEEDS_YOU: "bold red", Group.RUNNING: "green", Group.UNCLEAR: "yellow"}


class UsageLimitReport(msgspec.Struct):
    """A usage limit of an account, as one of its sessions stated it last."""

    agent: str
    home: str
    """The directory of the CLI that is logged in with the account."""
    plan: str
    """Which limit, and of which plan; empty where that is not stated."""
    minutes: int | None
    """Its length, 300 for five hours; null where that is not stated."""
    used: float
    """Percent; may be more than 100."""
    resets_at: str | None
    """When all of it can be used again."""
    stated_at: str | None
    """How old this is: since then more may have been used."""


class StatusReport(msgspec.Struct):
    """The document of `agentdash status --json`. Times are ISO 8601 in UTC; unknown values are null."""

    schema: Literal["agentdash.status/2"]
    generated_at: str
    sources: list[SourceReport]
    """The sources that were read, and whether they work."""
    workers: list[WorkerReport]
    via: ViaReport | None = None
    """Null if live sources were read."""
    hosts: list[HostReport] = []
    """Other hosts that are watched."""
    limits: list[UsageLimitReport] = []
    """The usage limits of the accounts of this machine that are not reset yet, the most used first."""


def status_report(snapshot: w.Snapshot, via: ViaReport | None = None) -> StatusReport:
    """Return the document of a snapshot."""
    return StatusReport(
        schema="agentdash.status/2",
        generated_at=iso(snapshot.at) or "",
        sources=[document(SourceReport, source) for source in snapshot.sources],
        workers=[document(WorkerReport, worker) for worker in snapshot.workers],
        via=via,
        hosts=[document(HostReport, each, since=each.at, last_news=each.news_at) for each in snapshot.hosts],
        limits=[
            document(
                UsageLimitReport, each.window, agent=each.agent, home=each.home, stated_at=each.window.at
            )
            for each in usage_limits(snapshot.workers, snapshot.at)
        ],
    )


def print_status(snapshot: w.Snapshot, console: Console, notes: Console) -> None:
    """Print the fleet as a table, and the sources that failed on another console."""
    # `status --json` is called often, and starts faster without it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    wide = console.width >= _ALL_FROM_WIDTH
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("STATE", no_wrap=True)
    table.add_column("WORKER", no_wrap=True, overflow="ellipsis", max_width=min(32, console.width // 4))
    if wide:
        table.add_column("AGENT", no_wrap=True, overflow="ellipsis")
        table.add_column("SEEN", no_wrap=True)
    table.add_column("SANDBOX" if wide else "", no_wrap=True)
    table.add_column("WHY", ratio=1)
    for worker in snapshot.workers:
        stalled = "" if worker.stalled is None else " (stalled)"
        host = f"{worker.host}:" if worker.host else ""
        agent = f"{worker.agent.name} {worker.agent.version or ''}"
        is_asking = worker.group is Group.NEEDS_YOU  # then the reason is shown whole
        cells = (agent, ago(snapshot.at, worker.last_activity)) if wide else ()
        table.add_row(
            Text(f"{worker.state}{stalled}", _STYLES.get(worker.group, "")),
            Text("  " * min(worker.depth, MAX_INDENT) + host + mask_secrets(worker.title)),
            *map(Text, cells),
            Text(_sandbox_cell(worker.sandbox, in_words=wide)),
            Text(mask_secrets(worker.fact.text), no_wrap=not is_asking, overflow="ellipsis"),
        )
    if snapshot.workers:
        console.print(table)
    else:
        console.print("No workers. Start an agent in tmux, or try `agentdash demo`.")
    failing = snapshot.failing_sources
    for source in snapshot.sources:
        if source in failing or not snapshot.workers or NOT_READ in source.detail:
            notes.print(Text(f"{source.name}: {source.detail}"), style="dim")


def _sandbox_cell(sandbox: w.Sandbox, *, in_words: bool) -> str:
    """Return the policy and how it compares with what was observed; in a narrow cell, whether it differs."""
    mark = {"match": "=", "mismatch": "≠", "unverified": "?"}[sandbox.verdict]
    if not in_words:
        return mark if sandbox.verdict == "mismatch" else ""
    return f"{sandbox.configured.brief() if sandbox.configured else '-'} {mark}"


# ------------------------------------------------------------
# `agentdash status --json=FIELD,...`: chosen fields of each worker, as `agentdash.status-fields/1`


_WORKER: Final = WorkerReport.__struct_fields__
_SANDBOX: Final = tuple(name for name in SandboxReport.__struct_fields__ if name not in _WORKER)
FIELDS: Final = (*_WORKER, *_SANDBOX)
"""The names that can be chosen: the fields of a worker of `agentdash.status/2`, and of its `sandbox`."""


class StatusFieldsReport(msgspec.Struct):
    """The document of `agentdash status --json=FIELD,...`."""

    schema: Literal["agentdash.status-fields/1"]
    generated_at: str
    fields: list[str]
    """The fields that were asked for."""
    workers: list[dict[str, Any]]
    """Of each worker its `id`, and these fields as in `agentdash.status/2`; those of `sandbox` by their own
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
        workers=[_chosen(document(WorkerReport, worker), fields) for worker in snapshot.workers],
        via=via,
    )


def _chosen(report: WorkerReport, fields: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(report if name in _WORKER else report.sandbox, name) for name in fields}
    return {"id": report.id, **values}


# ------------------------------------------------------------
# `agentdash wait`: how waiting for a worker ended, as the document `agentdash.wait/2` and as one line


Outcome = Literal["reached", "timed-out", "gone"]
"""How waiting ended. `gone`: the worker no longer exists, so it cannot reach the state."""


class WaitReport(msgspec.Struct):
    """The document of `agentdash wait --json`."""

    schema: Literal["agentdash.wait/2"]
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


def wait_line(report: WaitReport) -> str:
    """Return the outcome as one line: `blocked-sandbox  %4 build: may not write /x`."""
    if report.worker is None:
        return f"{report.outcome}  {report.target}"
    worker = report.worker
    late = "" if report.outcome == "reached" else f"  ({report.outcome} after {report.waited_seconds:g} s)"
    return f"{worker.state}  {worker.pane or worker.id} {worker.name}: {worker.fact.text}{late}"


# ------------------------------------------------------------
# `agentdash status --watch`: one line per change of the fleet, as the document `agentdash.change/2`


_UNCOMPARED: Final = frozenset(("evidence", "pids", "tokens", "last_activity", "history"))
"""Fields that are no change by themselves: they follow from others, grow while a worker works, or depend on
when the user looked."""
_TICKING: Final = re.compile(
    r"\d+:\d\d|\d[\d.,]*\s?(?:[kM]?\s?tokens?|[mµ]?s|sec(?:onds?)?|m|min(?:utes?)?|h|hours?|%)(?!\w)"
    r"|[\u2800-\u28ff⬝■•◦✻✶✳✢✽·*∗░▒▓█…]+|\s+"
)
"""What changes in a text while a worker does the same: clocks, countdowns, counters, spinners, bars."""


def changes(old: Snapshot | None, new: Snapshot) -> Iterator[ChangeReport]:
    """Yield the differences between two snapshots; with None as the old one, everything is new.

    Ages, token counts, process ids, clocks and spinners alone are no change, nor is what a worker that goes
    on working does.
    """
    line = partial(ChangeReport, schema="agentdash.change/2", at=iso(new.at) or "")
    before = {worker.id: worker for worker in old.workers} if old else {}
    for worker in new.workers:
        known = before.pop(worker.id, None)
        if known is worker:
            continue
        report = document(WorkerReport, worker)
        if known is None:
            yield line(change="added", worker=report)
        elif changed := changed_fields(document(WorkerReport, known), report):
            yield line(change="changed", changed=changed, worker=report)
    for removed in before.values():
        yield line(change="removed", worker=document(WorkerReport, removed))
    health = {source.name: source.ok for source in old.sources} if old else {}
    for source in new.sources:
        if health.get(source.name) != source.ok:
            yield line(change="source", source=document(SourceReport, source))


class Heartbeats:
    """Makes the lines of heartbeats."""

    def __init__(self) -> None:
        self._stated: dict[str, TickReport] = {}

    def add(self, change: ChangeReport) -> None:
        """Keep what another line has stated."""
        if change.worker is not None:
            self._stated[change.worker.id] = document(TickReport, change.worker)

    def next(self, now: float, workers: Iterable[Worker]) -> ChangeReport:
        """Return the line of a heartbeat.

        Args:
            now: unix seconds.
            workers: all of them, as they are now.
        """
        present = [document(TickReport, worker) for worker in workers]
        ticks = [tick for tick in present if self._stated.get(tick.id) != tick]
        self._stated = {tick.id: tick for tick in present}
        at = iso(now) or ""
        return ChangeReport("agentdash.change/2", at, "alive", version=__version__, ticks=ticks)


def changed_fields(old: WorkerReport, new: WorkerReport) -> list[str]:
    """Return the names of the fields in which two reports of a worker differ, except for what ticks."""
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
# `agentdash status --follow`: what changes in the fleet as plain sentences, for screen readers and logs


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

    A worker that works on is not news; one that needs somebody, ends, appears or goes is, and so are its
    newest finding and sources that fail or recover.
    """
    at = time_of_day(new.at)
    if old is None:
        yield f"{at}  {_summary(new)}"
        asking = (worker for worker in new.workers if worker.needs_you)
        yield from (f"{at}  {_state(document(WorkerReport, worker))}" for worker in asking)
        return
    for change in changes(old, new):
        yield from (f"{at}  {line}" for line in _sentences(change))


def _sentences(change: ChangeReport) -> Iterator[str]:
    worker, changed = change.worker, change.changed
    if (source := change.source) is not None:
        yield f"source {source.name} {'works' if source.ok else 'fails'}: {source.detail}"
    if worker is None:
        return
    if change.change == "removed":
        yield f"{_name(worker)} has gone"
    elif change.change == "added":
        yield f"new: {_state(worker)}"
    elif "state" in changed or (worker.needs_you and "fact" in changed):
        yield _state(worker)
    if change.change == "added" or "sandbox.findings" in changed:
        found = [finding for finding in worker.sandbox.findings if finding.severity != "info"]
        for finding in sorted(found, key=lambda finding: finding.since or "")[-1:]:
            yield f"{_name(worker)}, sandbox: {finding.kind}: {finding.message}"


def _state(worker: WorkerReport) -> str:
    why = f": {worker.fact.text}" if worker.fact.text else ""
    stalled = ", stalled" if worker.stalled_since is not None else ""
    return f"{_name(worker)} {_VERBS[State(worker.state)]}{stalled}{why}"


def _name(worker: WorkerReport) -> str:
    host = f" on {worker.host}" if worker.host else ""
    return f"{worker.name} ({worker.agent.name}{host})"


def _summary(snapshot: Snapshot) -> str:
    counts, total = snapshot.counts(), len(snapshot.workers)
    parts = [f"{counts[group]} {group.replace('-', ' ')}" for group in Group if counts[group]]
    return f"{total} worker{'' if total == 1 else 's'}{': ' if parts else ''}{', '.join(parts)}"
