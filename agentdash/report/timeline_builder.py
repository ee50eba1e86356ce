"""Build the timeline report of a family by replaying its stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.engine.conversation import ConversationBuilder
from agentdash.engine.snapshot import WorkerCache
from agentdash.model import events as e
from agentdash.model.conversation import shown_tool
from agentdash.model.findings import Finding
from agentdash.model.fleet import NOT_RECORDED
from agentdash.model.sanitize import both_ends
from agentdash.model.secrets import mask_fields
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.cursor import Cursor
from agentdash.replay.streams import MergedStream
from agentdash.report.exports import DatedCall, DatedFinding, TimelineReport, TimelineRow
from agentdash.report.redact import Scrubber, map_texts, pseudonym, redacted

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


class _Frame(NamedTuple):
    """A step of a replay, and the snapshot after it."""

    at: float
    """Unix seconds."""
    events: Sequence[e.Event]
    snapshot: Callable[[], Snapshot]
    """Builds the snapshot; only valid until the next frame."""


def _frames(stream: MergedStream, *, ended: bool) -> Iterator[_Frame]:
    """Yield the frames of a stream; the last one shows which turns were abandoned if no process holds its
    threads (`ended`)."""
    cursor = Cursor(stream)
    snapshot = partial(cursor.snapshot, WorkerCache())
    while (step := cursor.advance()) is not None:
        yield _Frame(step.at, step.events, snapshot)
    if cursor.position:
        cursor.close() if ended else cursor.settle()
        yield _Frame(cursor.at, (), snapshot)


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
    builder = _Builder()
    begun = last = at = 0.0
    snapshot: Callable[[], Snapshot] = partial(Snapshot, 0.0)
    for number, frame in enumerate(_frames(stream, ended=ended)):
        at, snapshot = frame.at, frame.snapshot
        begun = begun or at
        if not stream.has_logs or any(isinstance(event, e.ThreadEvent) for event in frame.events):
            last = at  # a recording of a family goes on for a while
        is_stateless = frame.events and all(isinstance(event, _STATELESS_EVENTS) for event in frame.events)
        builder.add(frame, Snapshot(at) if is_stateless else frame.snapshot())
        if redact:
            for event in frame.events:
                scrubber.learn(event)
        if number % _PROGRESS_STEPS == 0:
            progress(stream.offset)
    whole = snapshot()
    builder.show(at, whole)
    timelines = {worker.id: builder.timelines[worker.id] for worker in builder.shown(whole)}
    names = _names([each.worker for each in timelines.values()], redact=redact)
    found = (replace(row, worker=names.get(row.worker, row.worker[:8])) for row in builder.rows())
    rows, omitted = _without_middle(found)
    workers = [replace(each.worker, name=names[ident]) for ident, each in timelines.items()]
    report = TimelineReport(
        thread=thread,
        begun=min((begun, *(worker.started for worker in workers if worker.started))),
        ended=max((last, *(row.at for row in rows))),
        workers=workers,
        findings=_findings(timelines, names),
        calls=_calls(builder.conversations, names),
        rows=rows,
        omitted=omitted,
        redacted=redact,
        notes=_notes(workers, whole),
        sources=stream.sources,
    )
    if redact:
        report = redacted(report)
    masked: TimelineReport = mask_fields(map_texts(report, scrubber.text if redact else scrubber.replaced))
    return masked


class _Timeline(msgspec.Struct):
    """One worker over time."""

    worker: Worker
    """As it was seen last."""
    states: list[tuple[float, State, str]] = msgspec.field(default_factory=list)
    """Begin (unix seconds) and reason of each, oldest first."""
    findings: dict[tuple[str, str], tuple[float, Finding]] = msgspec.field(default_factory=dict)
    """By kind and message: when the finding first showed (unix seconds), and its newest form."""


def _names(workers: Sequence[Worker], *, redact: bool) -> dict[str, str]:
    """Return names by id. Those that several workers have, as forks have that of their parent, get the end of
    the id."""
    names = {worker.id: pseudonym(worker.id) if redact else worker.name for worker in workers}
    shared = Counter(names.values())
    return {
        ident: f"{name} ({ident[-_ID_CHARS:]})" if shared[name] > 1 else name for ident, name in names.items()
    }


def _findings(timelines: Mapping[str, _Timeline], names: Mapping[str, str]) -> list[DatedFinding]:
    found = [
        DatedFinding(at, names[ident], finding)
        for ident, timeline in timelines.items()
        for at, finding in timeline.findings.values()
    ]
    return sorted(found, key=lambda dated: dated.at)


def _calls(conversations: Mapping[str, ConversationBuilder], names: Mapping[str, str]) -> list[DatedCall]:
    found = [
        DatedCall(names[ident], turn.number, call)
        for ident, builder in conversations.items()
        if ident in names
        for turn in builder.conversation().turns
        for call in turn.calls
    ]
    return sorted(found, key=lambda dated: dated.call.at)


def _without_middle(rows: Iterable[TimelineRow]) -> tuple[list[TimelineRow], int]:
    """Return the rows in the order of time without their middle, and how many were left out."""
    # settled states and commands nested in scripts become known after later rows
    ordered = sorted(rows, key=lambda row: row.at)
    omitted = max(0, len(ordered) - _MAX_FIRST_ROWS - _MAX_LAST_ROWS)
    if omitted:
        ordered = [*ordered[:_MAX_FIRST_ROWS], *ordered[-_MAX_LAST_ROWS:]]
    return ordered, omitted


def _notes(workers: Sequence[Worker], snapshot: Snapshot) -> list[str]:
    notes = [f"{worker.name}: {note}" for worker in workers for note in worker.notes]
    failed = [source for source in snapshot.sources if not source.ok and source.detail != NOT_RECORDED]
    return notes + [f"{source.name}: {source.detail}" for source in failed]


class _Builder:
    """Collects rows, states, findings and calls from frames."""

    def __init__(self) -> None:
        self._rows: list[TimelineRow] = []
        """With the ids of workers instead of their names, which may become known later."""
        self._open: dict[tuple[str, str], e.CallStarted] = {}
        """Open calls by thread and call id."""
        self._policies: dict[str, str] = {}
        """The newest policy row of each thread."""
        self.timelines: dict[str, _Timeline] = {}
        self.conversations: dict[str, ConversationBuilder] = {}

    def shown(self, snapshot: Snapshot) -> list[Worker]:
        """Return the workers of a snapshot, with those known ones whose panes are gone."""
        gone = (each.shown for each in snapshot.past if each.shown is not None)
        return [*snapshot.workers, *(worker for worker in gone if worker.id in self.timelines)]

    def add(self, frame: _Frame, snapshot: Snapshot) -> None:
        """Add one frame, and the workers that it has changed."""
        shown = self.shown(snapshot)
        for event in frame.events:
            if isinstance(event, e.ThreadEvent):
                self._converse(event, shown)
                self._rows += self._event_rows(event)
        self._show(frame.at, shown)

    def show(self, at: float, snapshot: Snapshot) -> None:
        """Add workers as they are at a time (unix seconds)."""
        self._show(at, self.shown(snapshot))

    def rows(self) -> Iterator[TimelineRow]:
        """Yield all rows, unordered."""
        yield from self._rows
        for worker, timeline in self.timelines.items():
            for since, state, why in timeline.states:
                yield TimelineRow(since, worker, "state", why, state)

    def _show(self, at: float, workers: Sequence[Worker]) -> None:
        for worker in workers:
            timeline = self.timelines.setdefault(worker.id, _Timeline(worker))
            timeline.worker = worker
            _add_state(timeline, at)
            self._add_findings(timeline, at)

    def _converse(self, event: e.ThreadEvent, workers: Sequence[Worker]) -> None:
        """Add an event to the conversation of its thread."""
        builder = self.conversations.setdefault(event.thread, ConversationBuilder(event.thread))
        denial = None
        if isinstance(event, e.CallEnded):
            calls = (call for worker in workers if worker.id == event.thread for call in worker.calls)
            ended = next((call for call in calls if call.id == event.call), None)
            denial = ended.denial.quote if ended and ended.denial else None
        builder.add(event, denial)

    def _add_findings(self, timeline: _Timeline, at: float) -> None:
        worker = timeline.worker
        for finding in worker.sandbox.findings:
            cause = (str(finding.kind), finding.message)
            if cause not in timeline.findings:
                self._rows.append(TimelineRow(at, worker.id, "finding", finding.message, finding.kind))
            first = timeline.findings[cause][0] if cause in timeline.findings else at
            timeline.findings[cause] = (first, finding)

    def _event_rows(self, event: e.ThreadEvent) -> Iterator[TimelineRow]:
        match event:
            case e.MessageLogged():
                yield _row(event, "prompt" if event.role == "user" else "message", event.text)
            case e.CallStarted() if event.kind != "poll":
                self._open[event.thread, event.call] = event
                yield _call_row(event)
            case e.CallEnded():
                call = self._open.pop((event.thread, event.call), None)
                if call is not None and (call.kind in _ANSWERED or event.outcome not in _SUCCESSFUL):
                    code = event.exit_code
                    how = event.outcome if code is None else f"exit code {code}"
                    yield _row(event, "output", event.output, how)
            case e.PolicySet() if event.policy is not None:
                policy = event.policy
                approval = policy.approval or "not stated"
                text = f"files {policy.filesystem}, network {policy.network}, approval {approval}"
                if self._policies.get(event.thread) != text:
                    self._policies[event.thread] = text
                    yield _row(event, "policy", text, event.origin)
            case e.TurnEnded():
                yield _row(event, "turn", event.error or event.reason or "", event.how)
            case e.LineSkipped():
                lines = "line" if event.count == 1 else f"{event.count} lines"
                yield _row(event, "turn", event.detail, f"{event.what} {lines} skipped")


def _row(event: e.ThreadEvent, kind: str, text: str, note: str = "") -> TimelineRow:
    return TimelineRow(event.at, event.thread, kind, both_ends(text, _MAX_TEXT_CHARS).strip(), note)


def _call_row(event: e.CallStarted) -> TimelineRow:
    if event.kind != "command":
        return _row(event, "call", event.text, shown_tool(event.kind, event.tool))
    escalation = f"asks to leave the sandbox: {event.escalation.reason or ''}" if event.escalation else ""
    return _row(event, "command", event.text, escalation)


def _add_state(timeline: _Timeline, at: float) -> None:
    worker, states = timeline.worker, timeline.states
    if states and states[-1][1] is worker.state:
        return
    since = at
    if worker.history and worker.history[-1].state == worker.state:
        since = min(at, worker.history[-1].since)  # a settled state began before this frame
    if states:
        since = max(since, states[-1][0])
    if _is_passing(states, since):
        states.pop()
    if not states or states[-1][1] is not worker.state:
        states.append((since, worker.state, worker.assessment.why))


def _is_passing(states: Sequence[tuple[float, State, str]], until: float) -> bool:
    """Return whether the newest state took no time, or is `unknown` while the first lines of a session were
    written: no worker had it."""
    if not states:
        return False
    since, state, _ = states[-1]
    return since == until or (len(states) == 1 and state is State.UNKNOWN and until - since < _START_S)
