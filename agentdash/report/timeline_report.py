"""What happened to a family, told once: the material of every export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model import events as e
from agentdash.model.findings import Finding
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.cursor import Cursor
from agentdash.replay.streams import MergedStream
from agentdash.report.redact import Redaction

_FIRST, _LAST = 1_000, 4_000
"""Rows of the timeline that are kept of a very long one."""
_TEXT: Final = 4_000
"""Characters kept of a text."""
_QUIET: Final = (e.TokensCounted, e.FileSeen, e.ThreadNamed)
"""Events after which nobody's state is another one."""


class Row(msgspec.Struct, frozen=True):
    """An entry of the timeline."""

    at: float
    who: str
    kind: str
    """`prompt`, `message`, `command`, `call`, `output`, `policy`, `turn`, `state`, `finding`."""
    text: str
    note: str = ""
    """How it ended, or what it is called."""
    bad: bool = False
    """Whether somebody should look at it."""


class Period(msgspec.Struct, frozen=True):
    """A state, and why, from a time on."""

    since: float
    state: State
    why: str


class Member(msgspec.Struct):
    """One worker of the family."""

    worker: Worker
    """As it was in the end."""
    periods: list[Period]
    found: dict[tuple[str, str], tuple[float, Finding]]
    """By kind and message: when each finding first showed, and how it was known last."""


class TimelineReport(msgspec.Struct):
    """A family's past."""

    thread: str
    begun: float
    ended: float
    members: list[Member]
    rows: list[Row]
    left_out: int
    """Rows in the middle that are not among them."""
    redacted: bool
    notes: list[str]
    """What is known to be missing."""

    @property
    def findings(self) -> list[tuple[float, Worker, Finding]]:
        """All findings of all members, by the time at which they first showed."""
        found = [
            (at, member.worker, finding) for member in self.members for at, finding in member.found.values()
        ]
        return sorted(found, key=lambda each: each[0])


class Scene(NamedTuple):
    """What was told at a moment, and what could be seen then."""

    at: float
    events: Sequence[e.Event]
    see: Callable[[], Snapshot]
    """Draws it: who skips a scene need not."""


def length(tape: MergedStream, gap: float) -> float:
    """Seconds that a tape takes to play.

    Args:
        gap: seconds that nothing happens for count as at most so many.
    """
    played, before = 0.0, None
    while (beat := tape.next()) is not None:
        played += min(gap, beat.at - before) if before is not None else 0.0
        before = beat.at
    return played


def scenes(tape: MergedStream, redaction: Redaction | None, *, over: bool) -> Iterator[Scene]:
    """The past, moment by moment.

    Args:
        over: whether nobody holds these threads any more; then one look behind the end says who was left.
    """
    cursor, cache = Cursor(tape), WorkerCache()

    def see() -> Snapshot:
        return build_snapshot(cursor.fleet, cursor.at, cache)

    while (beat := cursor.advance()) is not None:
        yield Scene(beat.at, redaction.events(beat.events) if redaction else beat.events, see)
    if over and cursor.number:
        cursor.close()
        yield Scene(cursor.at, (), see)


def build_report(
    thread: str, tape: MergedStream, *, redact: bool, over: bool, progress: Callable[[int], None]
) -> TimelineReport:
    """The whole story.

    Args:
        thread: whose.
        redact: whether what was said and printed is to be left out.
        progress: is told now and then how many bytes have been read.
    """
    redaction = Redaction() if redact else None
    teller = _ReportBuilder(redaction)
    began = at = 0.0
    snapshot = Snapshot(0.0)
    for number, scene in enumerate(scenes(tape, redaction, over=over)):
        if not scene.events or not all(isinstance(event, _QUIET) for event in scene.events):
            snapshot = scene.see()
        began, at = began or scene.at, scene.at
        teller.build_report(scene, snapshot)
        if number % 500 == 0:
            progress(tape.offset)
    members = [member for worker in snapshot.workers if (member := teller.members.get(worker.id)) is not None]
    rows = sorted(
        teller.rows, key=lambda row: row.at
    )  # what settled, and what was nested in a script, is told late
    left_out = max(0, len(rows) - _FIRST - _LAST)
    if left_out:
        rows = [*rows[:_FIRST], *rows[-_LAST:]]
    notes = [f"{member.worker.name}: {note}" for member in members for note in member.worker.notes]
    notes += [
        f"{source.name}: {source.detail}" for source in snapshot.sources if not source.ok and not redact
    ]
    return TimelineReport(thread, began, at, members, rows, left_out, redact, notes)


class _ReportBuilder:
    """Turns scenes into rows, and keeps what changed."""

    def __init__(self, redaction: Redaction | None) -> None:
        self._redaction = redaction
        self._seen: dict[str, tuple[Worker, Worker]] = {}
        """Each worker as it was seen last, and as it may be shown."""
        self._calls: dict[tuple[str, str], e.CallStarted] = {}
        self._policies: dict[str, str] = {}
        self.members: dict[str, Member] = {}
        self.rows: list[Row] = []

    def build_report(self, scene: Scene, snapshot: Snapshot) -> None:
        """One scene further."""
        shown = [(worker, self._shown(worker)) for worker in snapshot.workers]
        names = {worker.id: worker.name for _, worker in shown}
        for event in scene.events:
            if isinstance(event, e.ThreadEvent):
                self.rows += self._rows(event, names.get(event.thread, event.thread[:8]))
        for worker, as_shown in shown:
            self._follow(worker, as_shown, scene.at)

    def _shown(self, worker: Worker) -> Worker:
        if self._redaction is None:
            return worker
        known = self._seen.get(worker.id)
        if known is None or known[0] is not worker:
            self._seen[worker.id] = known = (worker, self._redaction.worker(worker))
        return known[1]

    def _follow(self, seen: Worker, worker: Worker, at: float) -> None:
        member = self.members.setdefault(worker.id, Member(worker, [], {}))
        member.worker = worker
        if not member.periods or member.periods[-1].state is not worker.state:
            bad = worker.state.needs_you or worker.state is State.EXITED
            period = worker.history[-1] if worker.history else None  # it may have settled some time ago
            since = min(at, period.since) if period and period.state == worker.state else at
            since = max(since, member.periods[-1].since if member.periods else since)
            member.periods.append(Period(since, worker.state, worker.assessment.why))
            self.rows.append(Row(since, worker.name, "state", worker.assessment.why, worker.state, bad))
        for original, finding in zip(seen.sandbox.findings, worker.sandbox.findings, strict=True):
            cause = (original.kind, original.message)
            if cause not in member.found:
                self.rows.append(
                    Row(at, worker.name, "finding", finding.message, finding.kind, finding.severity != "info")
                )
            member.found[cause] = (member.found[cause][0] if cause in member.found else at, finding)

    def _rows(self, event: e.ThreadEvent, who: str) -> Iterator[Row]:
        at = event.at
        match event:
            case e.MessageLogged():
                yield Row(at, who, "prompt" if event.who == "user" else "message", event.text[:_TEXT])
            case e.CallStarted() if event.kind != "poll":
                self._calls[event.thread, event.call] = event
                wish = (
                    f"asks to leave the sandbox: {event.escalation.reason or ''}" if event.escalation else ""
                )
                kind = "command" if event.kind == "command" else "call"
                yield Row(
                    at,
                    who,
                    kind,
                    event.text[:_TEXT],
                    wish if kind == "command" else event.tool,
                    bool(event.escalation),
                )
            case e.CallEnded():
                call = self._calls.pop((event.thread, event.call), None)
                if call is not None and (call.kind == "command" or event.outcome not in ("ended", "running")):
                    code = f"exit code {event.exit_code}" if event.exit_code is not None else event.outcome
                    failed = bool(event.exit_code) or event.outcome not in ("ended", "running")
                    yield Row(at, who, "output", event.output[-_TEXT:].strip(), code, failed)
            case e.PolicySet() if event.policy is not None:
                brief = f"files {event.policy.filesystem}, network {event.policy.network}, approval {event.policy.approval or 'not stated'}"
                if self._policies.get(event.thread) != brief:
                    self._policies[event.thread] = brief
                    yield Row(at, who, "policy", brief, event.origin)
            case e.TurnEnded():
                why = event.error or event.reason or ""
                yield Row(at, who, "turn", why[:_TEXT], event.how, event.error is not None)
            case e.LineSkipped():
                yield Row(at, who, "turn", event.detail, f"{event.what} line skipped")
