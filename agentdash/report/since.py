"""`agentdash since`: what happened since a time, as the document `agentdash.since/1`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import msgspec
from rich.cells import cell_len, set_cell_size

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
from agentdash.report.elements import quantity

RowKind = Literal[
    "needs-you", "waited", "outside", "finding", "denied", "provider", "refused", "policy", "done", "ended"
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
    ran outside of a sandbox. `finding`: layers of its sandbox that differ. `denied`: the first denial.
    `provider`: the model or its provider failed. `refused`: a command was refused. `policy`: another policy
    than before. `done`, `ended`: it has finished, or was stopped."""
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
    workers = _workers(played, seen, since)
    rows = [row for each in workers for row in _rows(each, since, now)]
    order = {kind: number for number, kind in enumerate(KINDS)}
    rows.sort(key=lambda row: (order[row.kind], -(row.seconds or 0.0), row.at or ""))
    return SinceReport(
        schema="agentdash.since/1",
        generated_at=iso(now) or "",
        since=iso(since) or "",
        active=len(workers),
        waited_seconds=round(sum(each.waited(since, now) for each in workers), 1),
        rows=rows,
        problems=[*played.problems, *problems],
    )


class _Watched(msgspec.Struct, frozen=True):
    """One worker, as each source shows it."""

    now: Worker
    """Its present state: live, or as it was left."""
    views: tuple[Worker, ...]
    """All of what is known of it."""
    outside: tuple[SinceRow, ...]
    needs_you: bool

    def periods(self, since: float, now: float) -> Iterator[tuple[StatePeriod, float, float]]:
        """Yield the periods of all views since a time, with begin and end (unix seconds)."""
        for view in self.views:
            last = now if self.needs_you else view.last_activity or 0.0
            for period in view.history:
                begin, end = max(period.since, since), last if period.until is None else period.until
                if min(end, now) >= begin:
                    yield period, begin, min(end, now)

    def waits(self, since: float, now: float) -> list[tuple[float, float]]:
        """Return when it waited for an approval or an answer: disjoint, in order."""
        merged: list[tuple[float, float]] = []
        spans = sorted(
            (begin, end) for period, begin, end in self.periods(since, now) if period.waits and end > begin
        )
        for begin, end in spans:
            if merged and begin <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((begin, end))
        return merged

    def waited(self, since: float, now: float) -> float:
        """Return for how many seconds it waited."""
        return sum(end - begin for begin, end in self.waits(since, now))


def _workers(played: Played, seen: Sequence[Snapshot], since: float) -> list[_Watched]:
    """Return the workers that did anything since a time, or that need the user now."""
    views: dict[str, list[Worker]] = {}
    for snapshot in (*seen[:1], played.ended, played.snapshot, *seen[1:]):
        for worker in snapshot.workers:
            views.setdefault(worker.id, []).append(worker)
    found = []
    live = {worker.id for snapshot in seen[:1] for worker in snapshot.workers}
    for identifier, several in views.items():
        current, last = several[0], max(view.last_activity or 0.0 for view in several)
        # of others nothing is known of whether the user has seen them since
        needs_you = current.needs_you and identifier in live
        if last < since and not needs_you:
            continue
        rows = tuple(
            _row(
                "outside",
                current,
                outside.first_at,
                f"{quantity(outside.commands, 'command')} {outside.how}: {outside.first}",
                count=outside.commands,
            )
            for outside in played.outside.get(identifier, ())
        )
        found.append(_Watched(now=current, views=tuple(several), outside=rows, needs_you=needs_you))
    return found


def _rows(watched: _Watched, since: float, now: float) -> Iterator[SinceRow]:
    yield from _waits(watched, since, now)
    yield from watched.outside
    yield from _findings(watched, since)
    yield from _denials(watched, since)
    yield from _failures(watched, since, now, State.FAILED_PROVIDER, "provider")
    yield from _failures(watched, since, now, State.FAILED_PERMISSION, "refused")
    yield from _policies(watched, since)
    worker = watched.now
    if not watched.needs_you and (worker.assessment.since or 0.0) >= since:
        if worker.state is State.COMPLETED:
            yield _row("done", worker, worker.assessment.since, worker.fact.text)
        elif worker.state in (State.INTERRUPTED, State.EXITED):
            yield _row("ended", worker, worker.assessment.since, worker.fact.text)


def _waits(watched: _Watched, since: float, now: float) -> Iterator[SinceRow]:
    worker = watched.now
    waits = watched.waits(since, now)
    if watched.needs_you:
        begin = worker.assessment.since
        lasted = None if begin is None else now - begin
        remedy = _remedy(worker.sandbox.findings)
        yield _row("needs-you", worker, begin, worker.fact.text, seconds=lasted, remedy=remedy)
        waits = [wait for wait in waits if begin is None or wait[1] <= begin]
    if waits:
        longest = max(waits, key=lambda wait: wait[1] - wait[0])
        why = next(
            period.why
            for period, begin, _ in watched.periods(since, now)
            if period.waits and longest[0] <= begin <= longest[1]
        )
        total = sum(end - begin for begin, end in waits)
        yield _row("waited", worker, longest[0], why, count=len(waits), seconds=total)


def _findings(watched: _Watched, since: float) -> Iterator[SinceRow]:
    """Yield the differences between layers, each once, the worst first."""
    newest: dict[FindingKind, Finding] = {}
    for view in watched.views:
        for finding in view.sandbox.findings:
            known = newest.get(finding.kind)
            if finding.last >= since and (known is None or known.last < finding.last):
                newest[finding.kind] = finding
    for finding in sorted(newest.values(), key=lambda each: SEVERITIES.index(each.severity)):
        if finding.severity != "info" and finding.kind not in DENIAL_KINDS:
            text = f"{finding.kind}: {finding.message}"
            remedy = _remedy([finding])
            yield _row(
                "finding", watched.now, max(finding.since, since), text, count=finding.count, remedy=remedy
            )


def _denials(watched: _Watched, since: float) -> Iterator[SinceRow]:
    """Yield the first denial, the certain ones before the likely ones, and how many others there were."""
    entries = {
        (entry.what, entry.operation, entry.target): entry
        for view in watched.views
        for entry in view.sandbox.denials
        if entry.last >= since
    }
    if not entries:
        return
    first = min(entries.values(), key=lambda each: (each.certainty != "certain", max(each.first, since)))
    marks = [
        mark for mark, on in (("likely", first.certainty != "certain"), ("got past", first.got_past)) if on
    ]
    text = f"{first.operation} {first.target or first.quote}" + (f" ({', '.join(marks)})" if marks else "")
    text += f", and {quantity(len(entries) - 1, 'other target')}" if len(entries) > 1 else ""
    remedy = first.remedy.text if first.remedy is not None else None
    yield _row("denied", watched.now, max(first.first, since), text, count=first.count, remedy=remedy)


def _failures(watched: _Watched, since: float, now: float, state: State, kind: RowKind) -> Iterator[SinceRow]:
    found = {
        begin: (period, end) for period, begin, end in watched.periods(since, now) if period.state == state
    }
    if found:
        first = min(found)
        total = sum(end - begin for begin, (_, end) in found.items())
        yield _row(kind, watched.now, first, found[first][0].why, count=len(found), seconds=total)


def _policies(watched: _Watched, since: float) -> Iterator[SinceRow]:
    periods = max((view.policies for view in watched.views), key=len, default=())
    for before, after in pairwise(periods):
        if after.since < since:
            continue
        old, new = before.policy, after.policy
        text = f"{old.brief()} → {new.brief()}" if old.brief() != new.brief() else "writable roots changed"
        if old.brief() == new.brief() and old.approval != new.approval:
            text = f"approval {old.approval or '?'} → {new.approval or '?'}"
        yield _row("policy", watched.now, after.since, text)


def _remedy(findings: Sequence[Finding]) -> str | None:
    return next((finding.remedy.text for finding in findings if finding.remedy is not None), None)


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
# The report of `agentdash since` in at most 20 lines


MAX_LINES: Final = 20
_NAME_CELLS: Final = 22
_MIN_DAYS: Final = 3
"""Spans from here on are stated in days."""
_MIN_TEXT_CELLS: Final = 20
"""Room for a text beside the command: on narrower terminals the command has a line of its own."""


def since_lines(report: SinceReport, width: int) -> list[str]:
    """Return the report as lines of a terminal, at most `MAX_LINES`."""
    shown = chosen_rows(report, MAX_LINES - 2)
    commands = max((len(row.replay) for row in shown), default=0)
    kinds = max((len(row.kind) for row in shown), default=0)
    rest = width - kinds - len(_clock(report.since, report)) - 2 - _NAME_CELLS - commands - 4
    with_commands = rest >= _MIN_TEXT_CELLS
    text_cells = rest if with_commands else rest + commands + 1
    lines = [_head(report)[:width]]
    for row in shown:
        cells = (
            row.kind.ljust(kinds),
            _clock(row.at, report),
            _cut(row.name, _NAME_CELLS),
            _cut(_text(row), max(1, text_cells)),
            *((row.replay,) if with_commands else ()),
        )
        lines.append(" ".join(cells).rstrip())
    return [*lines, *(line[:width] for line in _tail(report, shown))]


def chosen_rows(report: SinceReport, most: int) -> list[SinceRow]:
    """Return at most `most` rows, in their order: the first of each kind before the second of any."""
    ranked = [
        (rank, number, row)
        for number, kind in enumerate(KINDS)
        for rank, row in enumerate(row for row in report.rows if row.kind == kind)
    ]
    best = sorted(ranked, key=lambda entry: entry[:2])[:most]
    return [row for rank, number, row in sorted(best, key=lambda entry: (entry[1], entry[0]))]


def _head(report: SinceReport) -> str:
    since, now = (datetime.fromisoformat(at).astimezone() for at in (report.since, report.generated_at))
    needs = sum(row.kind == "needs-you" for row in report.rows)
    done = sum(row.kind == "done" for row in report.rows)
    parts = [f"{report.active} {'worker' if report.active == 1 else 'workers'} active", f"{done} done"]
    parts += [f"{needs} {'needs' if needs == 1 else 'need'} you now"] if needs else []
    parts += [f"{lasted(report.waited_seconds)} waited for you"] if report.waited_seconds >= 1 else []
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
    remedy = f" — helps: {' '.join(row.remedy.split())}" if row.remedy else ""
    return mask_secrets(f"{times}{took}{' '.join(row.text.split())}{remedy}")


def _clock(at: str | None, report: SinceReport) -> str:
    """Return a time in local time: with its date where the report is about more than a day."""
    span = datetime.fromisoformat(report.generated_at) - datetime.fromisoformat(report.since)
    form = "%H:%M" if span <= timedelta(days=1) else "%m-%d %H:%M"
    shown = f"{datetime.fromisoformat(at or report.since).astimezone():{form}}"
    return shown if at else " " * len(shown)


def _cut(text: str, cells: int) -> str:
    text = mask_secrets(text)
    return set_cell_size(text, cells) if cell_len(text) <= cells else set_cell_size(text, cells - 1) + "…"


# ------------------------------------------------------------
# Play what happened since a time: session files and journals, once, from their beginnings


_BATCH_EVENTS: Final = 500
"""Events reduced at once."""
_REFUSED: Final = ("refused-by-user", "refused-by-policy", "refused-by-approval", "aborted", "failed")
"""Outcomes of commands that did not run."""


class Outside(NamedTuple):
    """Commands of a thread that ran outside of a sandbox for one reason."""

    how: str
    """`allowed to leave the sandbox`, `with full access` ..."""
    commands: int
    first_at: float
    first: str
    """The first of them."""


class Played(NamedTuple):
    """What files and journals show."""

    snapshot: Snapshot
    """As known at the end, with turns that have no end still open."""
    ended: Snapshot
    """The same, if no process of theirs lives any more."""
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

    paths = [
        path for path in (*codex.rollouts(note), *claude.transcripts(note)) if _is_written(path, since, note)
    ]
    overlapping = find_overlapping(journals, since, now, now)
    recorded = [FileStream(path, reader, begun=since) for path, reader in overlapping]
    stream = family_stream(Family("", tuple(sorted(paths)), codex), recorded)
    watch = _OutsideWatch(since)
    fleet = Fleet()
    for batch in _batches(stream):
        for event in batch:
            watch.take(event)
        fleet = reduce(fleet, batch)
        progress(stream.offset)
    problems += [f"{file.path}: {file.problem}" for file in stream.streams if file.problem is not None]
    closing = [e.LocksSeen(at=now, holders={}, readable=True), e.ProcessesCounted(at=now)]
    ended = reduce(fleet, closing)
    return Played(build_snapshot(fleet, now), build_snapshot(ended, now), watch.found(), problems)


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
    """Collects commands that ran outside of a sandbox.

    Args:
        since: begin of the time that counts (unix seconds).
    """

    def __init__(self, since: float) -> None:
        self._since = since
        self._policies: dict[str, Policy] = {}
        self._open: dict[tuple[str, str], e.CallStarted] = {}
        self._found: dict[tuple[str, str], Outside] = {}
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
                how = self._how(started, event) if started is not None else None
                if started is not None and how is not None:
                    self._add(started, how)

    def found(self) -> dict[str, list[Outside]]:
        """Return what was found, by thread."""
        by_thread: dict[str, list[Outside]] = {}
        for (thread, _), outside in self._found.items():
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

    def _add(self, started: e.CallStarted, how: str) -> None:
        known = self._found.get((started.thread, how))
        self._found[started.thread, how] = (
            Outside(how, 1, started.at, started.text)
            if known is None
            else known._replace(commands=known.commands + 1)
        )
