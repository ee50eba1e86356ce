"""`agentdash since`: what happened since a time, as the document `agentdash.since/1` and in 20 lines."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import msgspec
from rich.cells import cell_len

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.findings import DENIAL_KINDS, SEVERITIES, Finding, FindingKind
from agentdash.model.fleet import Fleet, StatePeriod
from agentdash.model.policy import Policy
from agentdash.model.secrets import mask_secrets
from agentdash.model.states import State
from agentdash.model.times import iso, lasted
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.family import Family
from agentdash.replay.journal import find_overlapping
from agentdash.replay.streams import FileStream, MergedStream, family_stream
from agentdash.report.elements import cut, quantity

RowKind = Literal[
    "needs-you", "waited", "outside", "finding", "denied", "provider", "refused", "done", "ended"
]
KINDS: Final[tuple[RowKind, ...]] = get_args(RowKind)
"""In the order of the report: the most urgent first."""
_DAY_S: Final = 86_400.0
_UUID_HYPHENS: Final = 4
_ID_CHARACTERS: Final = 13
"""Of a thread id in a command: its time in milliseconds; the first 8 are the same for a minute."""


class SinceRow(msgspec.Struct):
    """One line of the report."""

    kind: RowKind
    """`needs-you`: it needs the user now. `waited`: for an approval or an answer. `outside`: commands that
    ran outside a sandbox. `finding`: layers of its sandbox that differ. `denied`: the first denial.
    `provider`: the model or its provider failed. `refused`: a command was refused. `done`, `ended`: it has
    finished, or was stopped."""
    at: str | None
    worker: str
    """Thread id, or pane."""
    name: str
    text: str
    count: int
    seconds: float | None
    """How long it lasted; null where it is a moment."""
    remedy: str | None
    """What would have avoided it; null where nothing narrow enough is known."""
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
# What files and journals show: session files and recordings are played once, from their beginnings


_BATCH_EVENTS: Final = 500
"""Events reduced at once."""
_REFUSED: Final = ("refused-by-user", "refused-by-policy", "refused-by-approval", "aborted", "failed")
"""Outcomes of commands that did not run."""


class Outside(NamedTuple):
    """Commands of a thread that ran outside a sandbox for one reason."""

    how: str
    """`allowed to leave the sandbox`, `with full access` ..."""
    commands: int
    first_at: float
    first: str
    """The first of them."""


class Played(NamedTuple):
    """What files and journals show."""

    snapshot: Snapshot
    """As known at the end, if no process of theirs lives any more."""
    outside: dict[str, list[Outside]]
    """By thread."""
    problems: list[str]
    """Files and directories that could not be read."""


def play_since(
    codex: CodexHome,
    claude: ClaudeHome,
    journals: Path,
    *,
    since: float,
    now: float,
    progress: Callable[[int], None] = lambda _: None,
) -> Played:
    """Play all session files that were written since a time, and the journals of that time.

    Args:
        journals: directory of recordings; it need not exist.
        since: unix seconds.
        now: unix seconds.
        progress: called with the number of bytes that have been read.
    """
    problems: list[str] = []

    def note(error: OSError) -> None:
        problems.append(f"{error.filename}: {error.strerror or error}")

    files = (*codex.rollouts(note), *claude.transcripts(note))
    paths = sorted(path for path in files if _is_written(path, since, note))
    overlapping = find_overlapping(journals, since, now, now)
    recorded = [FileStream(path, reader, begun=since) for path, reader in overlapping]
    stream = family_stream(Family("", tuple(paths), codex), recorded)
    watch = _OutsideWatch(since)
    fleet = Fleet()
    for batch in _batches(stream):
        for event in batch:
            watch.take(event)
        fleet = reduce(fleet, batch)
        progress(stream.offset)
    problems += [f"{file.path}: {file.problem}" for file in stream.streams if file.problem is not None]
    fleet = reduce(fleet, [e.LocksSeen(at=now, holders={}, readable=True), e.ProcessesCounted(at=now)])
    return Played(build_snapshot(fleet, now), watch.found(), problems)


def _is_written(path: Path, since: float, note: Callable[[OSError], None]) -> bool:
    try:
        return path.stat().st_mtime >= since
    except FileNotFoundError:  # moved to the archive meanwhile
        return False
    except OSError as error:
        note(error)
        return False


def _batches(stream: MergedStream) -> Iterator[Sequence[e.Event]]:
    batch: list[e.Event] = []
    while (step := stream.next()) is not None:
        batch += step.events
        if len(batch) >= _BATCH_EVENTS:
            yield batch
            batch = []
    yield batch


class _OutsideWatch:
    """Collects commands that ran outside a sandbox since a time (unix seconds)."""

    def __init__(self, since: float) -> None:
        self._since = since
        self._policies: dict[str, Policy] = {}
        self._open: dict[tuple[str, str], e.CallStarted] = {}
        self._found: dict[tuple[str, str], list[e.CallStarted]] = {}
        """By thread and reason."""

    def take(self, event: e.Event) -> None:
        """Add what an event shows."""
        match event:
            case e.PolicySet(policy=Policy() as policy):
                self._policies[event.thread] = policy
            case e.CallStarted(kind="command") if event.at >= self._since:
                self._open[event.thread, event.call] = event
            case e.CallEnded():
                started = self._open.pop((event.thread, event.call), None)
                if started is not None and (how := self._how(started, event)) is not None:
                    self._found.setdefault((started.thread, how), []).append(started)

    def found(self) -> dict[str, list[Outside]]:
        """Return what was found, by thread."""
        by_thread: dict[str, list[Outside]] = {}
        for (thread, how), calls in self._found.items():
            outside = Outside(how, len(calls), calls[0].at, calls[0].text)
            by_thread.setdefault(thread, []).append(outside)
        return by_thread

    def _how(self, started: e.CallStarted, ended: e.CallEnded) -> str | None:
        """Return why a command had no sandbox, or None if it had one, did not run, or nothing shows it."""
        if ended.sandboxed or ended.outcome in _REFUSED:
            return None
        policy = self._policies.get(started.thread)
        if started.by_user:
            return "typed by the user"
        if policy is not None and policy.is_full_access:
            return "with full access"
        if started.escalation is not None and started.escalation.kind == "escalated":
            return "allowed to leave the sandbox"
        return "without a sandbox, as the CLI states" if ended.sandboxed is False else None


# ------------------------------------------------------------
# The rows of the report


def since_report(
    played: Played, seen: Sequence[Snapshot], since: float, now: float, problems: Sequence[str] = ()
) -> SinceReport:
    """Return the report.

    Args:
        played: what files and journals show.
        seen: live snapshots, the newest first: the fleet now, and that of a dashboard that runs.
        since: unix seconds.
        now: unix seconds.
        problems: what could not be read besides.
    """
    workers = list(_watched(played, seen, since, now))
    rows = [row for each in workers for row in each.rows()]
    rows.sort(key=lambda row: (KINDS.index(row.kind), -(row.seconds or 0.0), row.at or ""))
    return SinceReport(
        schema="agentdash.since/1",
        generated_at=iso(now) or "",
        since=iso(since) or "",
        active=len(workers),
        waited_seconds=round(sum(_sum(each.waits()) for each in workers), 1),
        rows=rows,
        problems=[*played.problems, *problems],
    )


def _watched(played: Played, seen: Sequence[Snapshot], since: float, now: float) -> Iterator[_Watched]:
    """Yield the workers that did anything since a time, or that need the user now."""
    views: dict[str, list[Worker]] = {}
    for snapshot in (*seen[:1], played.snapshot, *seen[1:]):
        for worker in snapshot.workers:
            views.setdefault(worker.id, []).append(worker)
    live = {worker.id for snapshot in seen[:1] for worker in snapshot.workers}
    for identifier, several in views.items():
        # of past ones nothing is known of whether the user has seen them since
        needs_you = several[0].needs_you and identifier in live
        if needs_you or max(view.last_activity or 0.0 for view in several) >= since:
            outside = played.outside.get(identifier, ())
            yield _Watched(several[0], tuple(several), tuple(outside), needs_you, since, now)


class _Watched(msgspec.Struct, frozen=True):
    """One worker, as each source shows it."""

    worker: Worker
    """Its present state: live, or as it was left."""
    views: tuple[Worker, ...]
    """All of what is known of it."""
    outside: tuple[Outside, ...]
    needs_you: bool
    since: float
    """Begin of the report (unix seconds)."""
    now: float
    """Its end."""

    def rows(self) -> Iterator[SinceRow]:
        """Yield what happened to the worker."""
        worker = self.worker
        yield from self._waits()
        for each in self.outside:
            text = f"{quantity(each.commands, 'command')} {each.how}: {each.first}"
            yield _row("outside", worker, each.first_at, text, count=each.commands)
        yield from self._findings()
        yield from self._denials()
        yield from self._failures(State.FAILED_PROVIDER, "provider")
        yield from self._failures(State.FAILED_PERMISSION, "refused")
        if not self.needs_you and (worker.assessment.since or 0.0) >= self.since:
            if worker.state is State.COMPLETED:
                yield _row("done", worker, worker.assessment.since, worker.fact.text)
            elif worker.state in (State.INTERRUPTED, State.EXITED):
                yield _row("ended", worker, worker.assessment.since, worker.fact.text)

    def _periods(self) -> Iterator[tuple[StatePeriod, float, float]]:
        """Yield the periods of all views since the begin, with begin and end (unix seconds)."""
        for view in self.views:
            last = self.now if self.needs_you else view.last_activity or 0.0
            for period in view.history:
                begin = max(period.since, self.since)
                end = min(last if period.until is None else period.until, self.now)
                if end >= begin:
                    yield period, begin, end

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

    def _waits(self) -> Iterator[SinceRow]:
        worker, waits = self.worker, self.waits()
        if self.needs_you:
            begin = worker.assessment.since
            lasts = None if begin is None else self.now - begin
            remedy = next((each.remedy.text for each in worker.sandbox.findings if each.remedy), None)
            yield _row("needs-you", worker, begin, worker.fact.text, seconds=lasts, remedy=remedy)
            waits = [wait for wait in waits if begin is None or wait[1] <= begin]
        if waits:
            longest = max(waits, key=lambda wait: wait[1] - wait[0])
            why = next(
                period.why
                for period, begin, _ in self._periods()
                if period.waits and longest[0] <= begin <= longest[1]
            )
            yield _row("waited", worker, longest[0], why, count=len(waits), seconds=_sum(waits))

    def _findings(self) -> Iterator[SinceRow]:
        """Yield the differences between layers, each once, the worst first."""
        newest: dict[FindingKind, Finding] = {}
        for finding in (finding for view in self.views for finding in view.sandbox.findings):
            known = newest.get(finding.kind)
            if finding.last >= self.since and (known is None or known.last < finding.last):
                newest[finding.kind] = finding
        for finding in sorted(newest.values(), key=lambda each: SEVERITIES.index(each.severity)):
            if finding.severity != "info" and finding.kind not in DENIAL_KINDS:
                at = max(finding.since, self.since)
                text = f"{finding.kind}: {finding.message}"
                remedy = finding.remedy.text if finding.remedy else None
                yield _row("finding", self.worker, at, text, count=finding.count, remedy=remedy)

    def _denials(self) -> Iterator[SinceRow]:
        """Yield the first denial, certain ones before likely ones, and how many others there were."""
        entries = {
            (entry.what, entry.operation, entry.target): entry
            for view in self.views
            for entry in view.sandbox.denials
            if entry.last >= self.since
        }
        if not entries:
            return
        first = min(
            entries.values(), key=lambda each: (each.certainty != "certain", max(each.first, self.since))
        )
        marks = ["likely"] if first.certainty != "certain" else []
        marks += ["got past"] if first.got_past else []
        text = f"{first.operation} {first.target or first.quote}" + (
            f" ({', '.join(marks)})" if marks else ""
        )
        text += f", and {quantity(len(entries) - 1, 'other target')}" if len(entries) > 1 else ""
        remedy = first.remedy.text if first.remedy is not None else None
        at = max(first.first, self.since)
        yield _row("denied", self.worker, at, text, count=first.count, remedy=remedy)

    def _failures(self, state: State, kind: RowKind) -> Iterator[SinceRow]:
        found = {begin: (period, end) for period, begin, end in self._periods() if period.state == state}
        if found:
            first = min(found)
            seconds = _sum((begin, end) for begin, (_, end) in found.items())
            why = found[first][0].why
            yield _row(kind, self.worker, first, why, count=len(found), seconds=seconds)


def _sum(spans: Iterable[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in spans)


def _row(
    kind: RowKind,
    worker: Worker,
    at: float | None,
    text: str,
    *,
    count: int = 1,
    seconds: float | None = None,
    remedy: str | None = None,
) -> SinceRow:
    return SinceRow(
        kind=kind,
        at=iso(at),
        worker=worker.id,
        name=worker.name,
        text=text,
        count=count,
        seconds=None if seconds is None else round(seconds, 1),
        remedy=remedy,
        replay=_replay(worker, at),
    )


def _replay(worker: Worker, at: float | None) -> str:
    """Return the command that shows a moment of a worker: `replay`, or `explain` where it has no session."""
    if worker.kind not in ("codex-thread", "claude-session"):
        return f"agentdash explain {shlex.quote(worker.id)}"
    host = "" if worker.host is None else f"{worker.host}:"
    thread = worker.id.removeprefix(host)
    short = thread[:_ID_CHARACTERS] if thread.count("-") == _UUID_HYPHENS else thread
    command = f"agentdash replay {shlex.quote(host + short)}"
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
_MIN_DAYS: Final = 3
"""Spans from here on are stated in days."""
_MIN_TEXT_CELLS: Final = 20
"""Room for a text beside the command: on narrower terminals the command is left out."""


def since_lines(report: SinceReport, width: int) -> list[str]:
    """Return the report as lines of a terminal, at most `MAX_LINES`."""
    shown = chosen_rows(report, MAX_LINES - 2)
    kinds = max((len(row.kind) for row in shown), default=0)
    heads = [
        f"{row.kind:<{kinds}} {_clock(row.at, report)} {cut(mask_secrets(row.name), _NAME_CELLS)}"
        for row in shown
    ]
    room = width - max(map(cell_len, heads), default=0) - 1
    beside = room - 1 - max((len(row.replay) for row in shown), default=0)
    lines = [_head(report)[:width]]
    for head, row in zip(heads, shown, strict=True):
        if beside >= _MIN_TEXT_CELLS:
            lines.append(f"{head} {cut(_text(row), beside)} {row.replay}")
        else:
            lines.append(f"{head} {cut(_text(row), max(1, room))}".rstrip())
    return [*lines, *(line[:width] for line in _tail(report, shown))]


def chosen_rows(report: SinceReport, most: int) -> list[SinceRow]:
    """Return at most `most` rows, in their order: the first of each kind before the second of any."""
    seen: Counter[str] = Counter()
    ranks = []
    for number, row in enumerate(report.rows):
        ranks.append((seen[row.kind], number))
        seen[row.kind] += 1
    return [report.rows[number] for number in sorted(number for _, number in sorted(ranks)[:most])]


def _head(report: SinceReport) -> str:
    since, now = (datetime.fromisoformat(at).astimezone() for at in (report.since, report.generated_at))
    kinds = Counter(row.kind for row in report.rows)
    parts = [f"{quantity(report.active, 'worker')} active", f"{kinds['done']} done"]
    if needs := kinds["needs-you"]:
        parts.append(f"{needs} {'needs' if needs == 1 else 'need'} you now")
    if report.waited_seconds >= 1:
        parts.append(f"{lasted(report.waited_seconds)} waited for you")
    is_this_week = now - since < timedelta(days=6)  # a day of the week is else another one
    begin = f"{since:%a %H:%M}" if is_this_week else f"{since:%Y-%m-%d %H:%M}"
    days = (now - since).days
    span = f"{days} days" if days >= _MIN_DAYS else lasted((now - since).total_seconds())
    return f"since {begin}, {span}: {', '.join(parts)}"


def _tail(report: SinceReport, shown: list[SinceRow]) -> list[str]:
    left = Counter(row.kind for row in report.rows) - Counter(row.kind for row in shown)
    parts = [", ".join(f"{number} more {kind}" for kind, number in left.items())] if left else []
    parts += [f"{len(report.problems)} not read"] if report.problems else []
    return [f"{'; '.join(parts)}: see --json"] if parts else []


def _text(row: SinceRow) -> str:
    took = f"{lasted(row.seconds)}: " if row.seconds is not None and row.seconds >= 1 else ""
    times = f"{row.count}×, " if row.count > 1 and row.kind != "outside" else ""
    remedy = f" — helps: {row.remedy}" if row.remedy else ""
    return mask_secrets(" ".join(f"{times}{took}{row.text}{remedy}".split()))


def _clock(at: str | None, report: SinceReport) -> str:
    """Return a time in local time: with its date where the report is about more than a day."""
    span = datetime.fromisoformat(report.generated_at) - datetime.fromisoformat(report.since)
    form = "%H:%M" if span <= timedelta(days=1) else "%m-%d %H:%M"
    shown = f"{datetime.fromisoformat(at or report.since).astimezone():{form}}"
    return shown if at else " " * len(shown)
