"""Build the timeline report of a family by replaying its stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.engine.conversation import ConversationBuilder
from agentdash.model import events as e
from agentdash.model.conversation import Conversation, shown_tool
from agentdash.model.fleet import NOT_RECORDED
from agentdash.model.sanitize import both_ends
from agentdash.model.secrets import mask_fields
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.cursor import Cursor
from agentdash.replay.step_snapshots import StepSnapshots
from agentdash.replay.streams import MergedStream
from agentdash.report.exports import StateChange, TimelineReport, TimelineRow, WorkerTimeline
from agentdash.report.redact import Redaction, Scrubber, map_texts

_MAX_FIRST_ROWS: Final = 1_000
"""Rows kept from the beginning of a long timeline: how it was set up."""
_MAX_LAST_ROWS: Final = 4_000
"""Rows kept from its end: an export is usually made of how a session ended."""
_MAX_TEXT_CHARS: Final = 4_000
"""Longer texts are cut: browsers and issue trackers become slow with megabytes."""
_STATELESS_EVENTS: Final = (e.TokensCounted, e.FileSeen, e.ThreadNamed)
"""Events that change neither state nor finding: no snapshot is built for them."""
_ID_CHARS: Final = 6
"""Of the end of a thread's id, which is random (UUIDv7)."""
_START_S: Final = 1.0
"""Seconds for the first lines of a session: its header says nothing of its state."""
_PROGRESS_STEPS: Final = 500
"""Steps between two calls of `progress`."""
_ANSWERED: Final = ("command", "question")
"""Kinds of calls whose output is a part of the timeline."""
_SUCCESSFUL: Final = ("ended", "running")
"""Outcomes of a call that are not failures by themselves."""


class Frame(NamedTuple):
    """A step of a replay, and the snapshot after it."""

    at: float
    """Unix seconds."""
    events: Sequence[e.Event]
    """Redacted, if the replay is."""
    snapshot: Callable[[], Snapshot]
    """Builds the snapshot, not redacted; only valid until the next frame."""
    changed: Callable[[], Snapshot]
    """Builds one with at least the workers that have changed since it was called last."""


def frames(stream: MergedStream, redaction: Redaction | None, *, ended: bool) -> Iterator[Frame]:
    """Yield the frames of a stream.

    Args:
        ended: whether no process holds these threads; then the last frame shows which turns were abandoned.
    """
    cursor = Cursor(stream)
    snapshots = StepSnapshots(cursor)
    while (step := cursor.advance()) is not None:
        snapshots.touch(step.events)
        events = redaction.events(step.events) if redaction else step.events
        yield Frame(step.at, events, snapshots.whole, snapshots.changed)
    if cursor.position:
        cursor.close() if ended else cursor.settle()
        yield Frame(cursor.at, (), snapshots.whole, snapshots.whole)


def build_report(
    thread: str,
    stream: MergedStream,
    *,
    redact: bool,
    ended: bool,
    progress: Callable[[int], None],
    scrubber: Scrubber | None = None,
) -> TimelineReport:
    """Replay a stream and return its report, secrets masked.

    Args:
        thread: id of the requested thread.
        redact: whether prompts, messages and outputs are left out.
        ended: whether no process holds these threads.
        progress: called from time to time with the bytes read so far.
        scrubber: replaces what the user lists, and with `redact` homes, users and hosts.
    """
    scrubber = scrubber or Scrubber()
    redaction = Redaction(scrubber) if redact else None
    builder = _ReportBuilder(redaction)
    begun = last = at = 0.0
    snapshot: Callable[[], Snapshot] = partial(Snapshot, 0.0)
    for number, frame in enumerate(frames(stream, redaction, ended=ended)):
        is_stateless = frame.events and all(isinstance(event, _STATELESS_EVENTS) for event in frame.events)
        at = frame.at
        begun = begun or at
        if not stream.has_logs or any(isinstance(event, e.ThreadEvent) for event in frame.events):
            last = at  # a recording of a family goes on for a while
        builder.add(frame, Snapshot(at) if is_stateless else frame.changed())
        if number % _PROGRESS_STEPS == 0:
            progress(stream.offset)
        snapshot = frame.snapshot
    whole = snapshot()
    builder.show(at, whole)
    shown = _workers(whole, builder.workers)
    workers = [builder.workers[worker.id] for worker in shown if worker.id in builder.workers]
    _tell_apart(workers)
    names = {timeline.worker.id: timeline.worker.name for timeline in workers}
    found = [*builder.rows, *builder.state_rows()]
    found = [replace(row, worker=names.get(row.worker, row.worker[:8])) for row in found]
    for timeline in workers:
        timeline.conversation = builder.conversation(timeline.worker.id)
    rows, omitted = _without_middle(found)
    report = TimelineReport(
        thread=thread,
        begun=min((begun, *(each.worker.started for each in workers if each.worker.started))),
        ended=max((last, *(row.at for row in rows))),
        workers=workers,
        rows=rows,
        omitted=omitted,
        redacted=redact,
        notes=_notes(workers, whole, redact=redact),
        sources=stream.sources,
    )
    masked: TimelineReport = mask_fields(map_texts(report, scrubber.text if redact else scrubber.replaced))
    return masked


def _workers(snapshot: Snapshot, known: Container[str]) -> list[Worker]:
    """Return the workers of a snapshot, with those known ones whose panes are gone."""
    past = (each.shown for each in snapshot.past)
    return [*snapshot.workers, *(worker for worker in past if worker is not None and worker.id in known)]


def _tell_apart(workers: Sequence[WorkerTimeline]) -> None:
    """Add to names that several workers have, as forks have that of their parent, the end of their ids."""
    shared = Counter(timeline.worker.name for timeline in workers)
    for timeline in workers:
        worker = timeline.worker
        if shared[worker.name] > 1:
            timeline.worker = replace(worker, name=f"{worker.name} ({worker.id[-_ID_CHARS:]})")


def _without_middle(rows: Sequence[TimelineRow]) -> tuple[list[TimelineRow], int]:
    """Return the rows in the order of time without their middle, and how many were left out."""
    # settled states and commands nested in scripts become known after later rows
    ordered = sorted(rows, key=lambda row: row.at)
    omitted = max(0, len(ordered) - _MAX_FIRST_ROWS - _MAX_LAST_ROWS)
    if omitted:
        ordered = [*ordered[:_MAX_FIRST_ROWS], *ordered[-_MAX_LAST_ROWS:]]
    return ordered, omitted


def _notes(workers: Sequence[WorkerTimeline], snapshot: Snapshot, *, redact: bool) -> list[str]:
    notes = [f"{timeline.worker.name}: {note}" for timeline in workers for note in timeline.worker.notes]
    failed = [
        source
        for source in snapshot.sources
        if not source.ok and source.detail != NOT_RECORDED and not redact
    ]
    return notes + [f"{source.name}: {source.detail}" for source in failed]


class _ReportBuilder:
    """Collects rows, state changes and findings from frames."""

    def __init__(self, redaction: Redaction | None) -> None:
        self._redaction = redaction
        self._redacted: dict[str, tuple[Worker, Worker]] = {}
        """The newest form of each worker, and its redacted form."""
        self._calls: dict[tuple[str, str], e.CallStarted] = {}
        """Open calls by thread and call id."""
        self._policies: dict[str, str] = {}
        """The newest policy row of each thread."""
        self._conversations: dict[str, ConversationBuilder] = {}
        self.workers: dict[str, WorkerTimeline] = {}
        self.rows: list[TimelineRow] = []
        """With the ids of workers instead of their names, which may become known later."""

    def add(self, frame: Frame, snapshot: Snapshot) -> None:
        """Add one frame, and the workers that it has changed."""
        shown = [(worker, self._redact(worker)) for worker in _workers(snapshot, self.workers)]
        for event in frame.events:
            if isinstance(event, e.ThreadEvent):
                self._converse(event, shown)
                self.rows += self._event_rows(event, event.thread)
        self._show(frame.at, shown)

    def show(self, at: float, snapshot: Snapshot) -> None:
        """Add workers as they are at a time (unix seconds)."""
        self._show(at, [(worker, self._redact(worker)) for worker in _workers(snapshot, self.workers)])

    def _show(self, at: float, shown: Sequence[tuple[Worker, Worker]]) -> None:
        for original, worker in shown:
            timeline = self.workers.setdefault(worker.id, WorkerTimeline(worker))
            timeline.worker = worker
            self._add_state(timeline, at)
            self._add_findings(timeline, original, at)

    def _converse(self, event: e.ThreadEvent, shown: Sequence[tuple[Worker, Worker]]) -> None:
        """Add an event to the conversation of its thread."""
        builder = self._conversations.setdefault(event.thread, ConversationBuilder(event.thread))
        denial = None
        if isinstance(event, e.CallEnded):
            calls = (call for _, worker in shown if worker.id == event.thread for call in worker.calls)
            ended = next((call for call in calls if call.id == event.call), None)
            denial = ended.denial.quote if ended and ended.denial else None
        builder.add(event, denial)

    def conversation(self, thread: str) -> Conversation | None:
        """Return the conversation of a thread; None without one."""
        builder = self._conversations.get(thread)
        return builder.conversation() if builder else None

    def state_rows(self) -> Iterator[TimelineRow]:
        """Yield the rows of all states."""
        for worker, timeline in self.workers.items():
            yield from (_state_row(change, worker) for change in timeline.states)

    def _redact(self, worker: Worker) -> Worker:
        if self._redaction is None:
            return worker
        known = self._redacted.get(worker.id)
        if known is None or known[0] is not worker:
            self._redacted[worker.id] = known = (worker, self._redaction.worker(worker))
        return known[1]

    def _add_state(self, timeline: WorkerTimeline, at: float) -> None:
        worker = timeline.worker
        if timeline.states and timeline.states[-1].state is worker.state:
            return
        since = at
        if worker.history and worker.history[-1].state == worker.state:
            since = min(at, worker.history[-1].since)  # a settled state began before this frame
        if timeline.states:
            since = max(since, timeline.states[-1].since)
        if _is_passing(timeline.states, since):
            timeline.states.pop()
        if not timeline.states or timeline.states[-1].state is not worker.state:
            timeline.states.append(StateChange(since, worker.state, worker.assessment.why))

    def _add_findings(self, timeline: WorkerTimeline, original: Worker, at: float) -> None:
        """Add the findings of a worker. Redacted messages may be equal: `original` has those to compare
        by."""
        worker = timeline.worker
        for plain, finding in zip(original.sandbox.findings, worker.sandbox.findings, strict=True):
            cause = (str(plain.kind), plain.message)
            if cause not in timeline.findings:
                self.rows.append(
                    TimelineRow(
                        at=at,
                        worker=worker.id,
                        kind="finding",
                        text=finding.message,
                        note=finding.kind,
                        highlighted=finding.severity != "info",
                    )
                )
            first = timeline.findings[cause][0] if cause in timeline.findings else at
            timeline.findings[cause] = (first, finding)

    def _event_rows(self, event: e.ThreadEvent, worker: str) -> Iterator[TimelineRow]:
        match event:
            case e.MessageLogged():
                kind = "prompt" if event.role == "user" else "message"
                yield TimelineRow(event.at, worker, kind=kind, text=both_ends(event.text, _MAX_TEXT_CHARS))
            case e.CallStarted() if event.kind != "poll":
                self._calls[event.thread, event.call] = event
                yield _call_row(event, worker)
            case e.CallEnded():
                call = self._calls.pop((event.thread, event.call), None)
                if call is not None and (call.kind in _ANSWERED or event.outcome not in _SUCCESSFUL):
                    yield _output_row(event, worker)
            case e.PolicySet() if event.policy is not None:
                policy = event.policy
                approval = policy.approval or "not stated"
                text = f"files {policy.filesystem}, network {policy.network}, approval {approval}"
                if self._policies.get(event.thread) != text:
                    self._policies[event.thread] = text
                    yield TimelineRow(event.at, worker, kind="policy", text=text, note=event.origin)
            case e.TurnEnded():
                yield TimelineRow(
                    at=event.at,
                    worker=worker,
                    kind="turn",
                    text=both_ends(event.error or event.reason or "", _MAX_TEXT_CHARS),
                    note=event.how,
                    highlighted=event.error is not None,
                )
            case e.LineSkipped():
                lines = "line" if event.count == 1 else f"{event.count} lines"
                note = f"{event.what} {lines} skipped"
                yield TimelineRow(event.at, worker, kind="turn", text=event.detail, note=note)


def _is_passing(states: Sequence[StateChange], until: float) -> bool:
    """Return whether the newest state is none that a worker had: it took no time, or it is `unknown` while
    the first lines of a session were written."""
    if not states:
        return False
    lasted = until - states[-1].since
    return lasted == 0 or (len(states) == 1 and states[0].state is State.UNKNOWN and lasted < _START_S)


def _state_row(change: StateChange, worker: str) -> TimelineRow:
    return TimelineRow(
        at=change.since,
        worker=worker,
        kind="state",
        text=change.why,
        note=change.state,
        highlighted=change.state.needs_you or change.state is State.EXITED,
    )


def _call_row(event: e.CallStarted, worker: str) -> TimelineRow:
    escalation = f"asks to leave the sandbox: {event.escalation.reason or ''}" if event.escalation else ""
    return TimelineRow(
        at=event.at,
        worker=worker,
        kind="command" if event.kind == "command" else "call",
        text=both_ends(event.text, _MAX_TEXT_CHARS),
        note=escalation if event.kind == "command" else shown_tool(event.kind, event.tool),
        highlighted=bool(event.escalation),
    )


def _output_row(event: e.CallEnded, worker: str) -> TimelineRow:
    return TimelineRow(
        at=event.at,
        worker=worker,
        kind="output",
        text=both_ends(event.output, _MAX_TEXT_CHARS).strip(),
        note=f"exit code {event.exit_code}" if event.exit_code is not None else event.outcome,
        highlighted=bool(event.exit_code) or event.outcome not in _SUCCESSFUL,
    )
