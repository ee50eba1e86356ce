"""`agentdash since`: what happened since a time, as the document `agentdash.since/1` and in 20 lines."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

import msgspec
from rich.cells import cell_len

from agentdash.model.denials import Remedy
from agentdash.model.findings import DENIAL_KINDS, Finding, FindingKind
from agentdash.model.fleet import StatePeriod
from agentdash.model.secrets import mask_secrets
from agentdash.model.source import NOTHING_TO_READ
from agentdash.model.states import State
from agentdash.model.times import iso, lasted
from agentdash.model.worker import Snapshot, Worker
from agentdash.report.elements import cut, quantity, short_id

RowKind = Literal["needs-you", "waited", "finding", "denied", "provider", "refused", "done", "ended"]
KINDS: Final[tuple[RowKind, ...]] = get_args(RowKind)
"""In the order of the report: the most urgent first."""
_DAY_S: Final = 86_400.0
_FAILURES: Final[dict[State, RowKind]] = {
    State.FAILED_PROVIDER: "provider",
    State.FAILED_PERMISSION: "refused",
}
_ENDS: Final[dict[State, RowKind]] = {
    State.COMPLETED: "done",
    State.INTERRUPTED: "ended",
    State.EXITED: "ended",
}


class SinceRow(msgspec.Struct):
    """One line of the report."""

    kind: RowKind
    """`needs-you`: it needs the user now. `waited`: for an approval or an answer. `finding`:
    layers of its sandbox that differ. `denied`: the first denial. `provider`: the model or its provider
    failed. `refused`: a command was refused. `done`, `ended`: it has finished, or was stopped."""
    at: str | None
    worker: str
    """Thread id, or pane."""
    name: str
    text: str
    count: int
    seconds: float | None
    """How long it lasted; null where it is a moment."""
    remedy: str | None
    replay: str
    """The shell command that shows that moment."""


class SinceReport(msgspec.Struct):
    """The document of `agentdash since --json`."""

    schema: Literal["agentdash.since/1"]
    generated_at: str
    since: str
    """The begin of the report."""
    active: int
    """Number of workers that did anything, or waited."""
    waited_seconds: float
    """How long workers waited for approvals and answers, summed up over all of them."""
    rows: list[SinceRow]
    """What happened, the most urgent first."""
    problems: list[str]
    """What could not be read, so that rows may be missing."""


# ------------------------------------------------------------


def since_report(live: Snapshot, seen: Snapshot | None, since: float, now: float) -> SinceReport:
    """Return the report.

    Args:
        live: the fleet now.
        seen: what a running dashboard has seen, which knows waits that no session file has; None: none runs.
        since: unix seconds.
        now: unix seconds.
    """
    views: dict[str, list[Worker]] = {}
    for worker in (*live.workers, *(seen.workers if seen is not None else ())):
        views.setdefault(worker.id, []).append(worker)
    workers = [
        _Watched(several, since, now)
        for several in views.values()
        if several[0].needs_you or max(view.last_activity or 0.0 for view in several) >= since
    ]
    rows = [row for each in workers for row in each.rows()]
    rows.sort(key=lambda row: (KINDS.index(row.kind), -(row.seconds or 0.0), row.at or ""))
    unread = [each for each in live.workers if each.state is State.UNREACHABLE and each.host is None]
    return SinceReport(
        schema="agentdash.since/1",
        generated_at=iso(now) or "",
        since=iso(since) or "",
        active=len(workers),
        waited_seconds=round(sum(_sum(each.waits()) for each in workers), 1),
        rows=rows,
        problems=[
            *(
                f"{source.name}: {source.detail}"
                for source in live.failing_sources
                if not source.detail.endswith(NOTHING_TO_READ)
            ),
            *(f"{worker.id}: {worker.assessment.why}" for worker in unread),
        ],
    )


class _Watched:
    """One worker, since a time.

    Args:
        views: it as it is now, and as a dashboard has seen it.
        since: begin of the report (unix seconds).
        now: its end.
    """

    def __init__(self, views: Sequence[Worker], since: float, now: float) -> None:
        self._worker = views[0]
        self._views = views
        self._since = since
        self._now = now

    def rows(self) -> Iterator[SinceRow]:
        """Yield what happened to the worker."""
        worker = self._worker
        yield from self._waited()
        yield from self._findings()
        yield from self._denials()
        for state, kind in _FAILURES.items():
            yield from self._failures(state, kind)
        since = worker.assessment.since or 0.0
        if not worker.needs_you and since >= self._since and (kind_of_end := _ENDS.get(worker.state)):
            yield self._row(kind_of_end, since, worker.fact.text)

    def _row(
        self,
        kind: RowKind,
        at: float | None,
        text: str,
        count: int = 1,
        seconds: float | None = None,
        remedy: Remedy | None = None,
    ) -> SinceRow:
        return SinceRow(
            kind=kind,
            at=iso(at),
            worker=self._worker.id,
            name=self._worker.name,
            text=text,
            count=count,
            seconds=None if seconds is None else round(seconds, 1),
            remedy=remedy.text if remedy else None,
            replay=_replay(self._worker, at),
        )

    def waits(self) -> list[tuple[float, float]]:
        """Return when it waited for an approval or an answer: disjoint, in order."""
        merged: list[tuple[float, float]] = []
        spans = sorted((begin, end) for period, begin, end in self._periods() if period.waits and end > begin)
        for begin, end in spans:
            if merged and begin <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((begin, end))
        return merged

    def _periods(self) -> Iterator[tuple[StatePeriod, float, float]]:
        """Yield the periods of all views since the begin, with begin and end (unix seconds)."""
        for view in self._views:
            last = self._now if self._worker.needs_you else view.last_activity or 0.0
            for period in view.history:
                begin = max(period.since, self._since)
                end = min(last if period.until is None else period.until, self._now)
                if end >= begin:
                    yield period, begin, end

    def _waited(self) -> Iterator[SinceRow]:
        worker, waits = self._worker, self.waits()
        if worker.needs_you:
            begin = worker.assessment.since
            lasts = None if begin is None else self._now - begin
            remedy = next((each.remedy for each in worker.sandbox.findings if each.remedy), None)
            yield self._row("needs-you", begin, worker.fact.text, seconds=lasts, remedy=remedy)
            waits = [wait for wait in waits if begin is None or wait[1] <= begin]
        if waits:
            first, last = max(waits, key=lambda wait: wait[1] - wait[0])
            whys = (each.why for each, begin, _ in self._periods() if each.waits and first <= begin <= last)
            yield self._row("waited", first, next(whys), len(waits), _sum(waits))

    def _findings(self) -> Iterator[SinceRow]:
        """Yield the differences between layers, each once."""
        newest: dict[FindingKind, Finding] = {}
        for view in self._views:
            newest |= {finding.kind: finding for finding in view.sandbox.findings}
        for kind, finding in newest.items():
            if finding.last >= self._since and finding.severity != "info" and kind not in DENIAL_KINDS:
                at = max(finding.since, self._since)
                text = f"{kind}: {finding.message}"
                yield self._row("finding", at, text, finding.count, remedy=finding.remedy)

    def _denials(self) -> Iterator[SinceRow]:
        """Yield the first denial, certain ones before likely ones, and how many others there were."""
        entries = {
            (entry.what, entry.operation, entry.target): entry
            for view in self._views
            for entry in view.sandbox.denials
            if entry.last >= self._since
        }
        if not entries:
            return
        first = min(entries.values(), key=lambda each: (each.certainty != "certain", each.first))
        text = f"{first.operation} {first.target or first.quote}"
        text += "" if first.certainty == "certain" else " (likely)"
        text += f", and {quantity(len(entries) - 1, 'other target')}" if len(entries) > 1 else ""
        yield self._row("denied", max(first.first, self._since), text, first.count, remedy=first.remedy)

    def _failures(self, state: State, kind: RowKind) -> Iterator[SinceRow]:
        found = {begin: (period, end) for period, begin, end in self._periods() if period.state == state}
        if found:
            first = min(found)
            seconds = _sum((begin, end) for begin, (_, end) in found.items())
            yield self._row(kind, first, found[first][0].why, len(found), seconds)


def _sum(spans: Iterable[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in spans)


def _replay(worker: Worker, at: float | None) -> str:
    """Return the command that shows a moment of a worker: `replay`, or `explain` where no session is here."""
    if not worker.is_thread or worker.host is not None:
        return f"agentdash explain {shlex.quote(worker.id)}"
    command = f"agentdash replay {shlex.quote(short_id(worker.id))}"
    if at is None:
        return command
    moment = datetime.fromtimestamp(at).astimezone()
    if worker.started is not None and 0 <= at - worker.started < _DAY_S:
        return f"{command} --at {moment:%H:%M:%S}"
    return f"{command} --at '{moment:%Y-%m-%d %H:%M:%S}'"


# ------------------------------------------------------------
# The report in at most 20 lines


MAX_LINES: Final = 20
_NAME_CELLS: Final = 22
_MIN_TEXT_CELLS: Final = 20
"""Room for a text beside the command: on narrower terminals the command is left out."""


def since_lines(report: SinceReport, width: int) -> list[str]:
    """Return the report as lines of a terminal, at most `MAX_LINES`."""
    since, now = (datetime.fromisoformat(at).astimezone() for at in (report.since, report.generated_at))
    form = "%H:%M" if now - since <= timedelta(days=1) else "%m-%d %H:%M"
    shown = _chosen_rows(report, MAX_LINES - 2)
    commands = max((len(row.replay) for row in shown), default=0)
    lines = [_head(report, since, now)[:width]]
    for row in shown:
        at = f"{datetime.fromisoformat(row.at).astimezone():{form}}" if row.at else ""
        clock = at.ljust(len(f"{now:{form}}"))
        head = f"{row.kind:<9} {clock} {cut(mask_secrets(row.name), _NAME_CELLS)} "
        room = width - cell_len(head)
        if room - commands - 1 >= _MIN_TEXT_CELLS:
            lines.append(f"{head}{cut(_text(row), room - commands - 1)} {row.replay}")
        else:
            lines.append(f"{head}{cut(_text(row), max(1, room))}".rstrip())
    left = Counter(row.kind for row in report.rows) - Counter(row.kind for row in shown)
    more = [f"{number} more {kind}" for kind, number in left.items()]
    more += [f"{len(report.problems)} not read"] if report.problems else []
    return [*lines, f"{', '.join(more)}: see --json"[:width]] if more else lines


def _chosen_rows(report: SinceReport, most: int) -> list[SinceRow]:
    """Return at most `most` rows, in their order: the first of each kind before the second of any."""
    seen: Counter[str] = Counter()
    ranks = []
    for number, row in enumerate(report.rows):
        ranks.append((seen[row.kind], number))
        seen[row.kind] += 1
    return [report.rows[number] for number in sorted(number for _, number in sorted(ranks)[:most])]


def _head(report: SinceReport, since: datetime, now: datetime) -> str:
    kinds = Counter(row.kind for row in report.rows)
    parts = [f"{quantity(report.active, 'worker')} active", f"{kinds['done']} done"]
    if needs := kinds["needs-you"]:
        parts.append(f"{needs} {'needs' if needs == 1 else 'need'} you now")
    if report.waited_seconds >= 1:
        parts.append(f"{lasted(report.waited_seconds)} waited for you")
    return f"since {since:%a %Y-%m-%d %H:%M}, {lasted((now - since).total_seconds())}: {', '.join(parts)}"


def _text(row: SinceRow) -> str:
    took = f"{lasted(row.seconds)}: " if row.seconds is not None and row.seconds >= 1 else ""
    times = f"{row.count}×, " if row.count > 1 else ""
    remedy = f" — helps: {row.remedy}" if row.remedy else ""
    return mask_secrets(" ".join(f"{times}{took}{row.text}{remedy}".split()))
