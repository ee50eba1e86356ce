"""What the other sources say of a state that has been concluded: the same, or something else. Both are kept, neither changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.model.events import ScreenRead, SessionSeen, StatusPushed
from agentdash.model.evidence import Evidence
from agentdash.model.fleet import Thread
from agentdash.model.process import Process
from agentdash.model.states import State
from agentdash.model.worker import Assessment

Looks = frozenset[str]
_WORKS, _ASKS, _RESTS = "works", "asks", "rests"
_LOOKS: Final[dict[State, Looks]] = {
    State.RUNNING: frozenset((_WORKS,)),
    State.WAITING_APPROVAL: frozenset((_ASKS,)),
    State.WAITING_INPUT: frozenset((_ASKS, _RESTS)),
    State.BLOCKED_SANDBOX: frozenset((_WORKS, _RESTS)),
    State.FAILED_PERMISSION: frozenset((_RESTS,)),
    State.FAILED_PROVIDER: frozenset((_WORKS, _RESTS)),
    State.COMPLETED: frozenset((_RESTS,)),
    State.INTERRUPTED: frozenset((_RESTS,)),
}
"""What a state looks like to those who see less than its authority: two that have no look in common contradict each other."""
_WORD: Final = {
    "active": frozenset((_WORKS,)),
    "busy": frozenset((_WORKS,)),
    "waiting": frozenset((_ASKS,)),
    "idle": frozenset((_RESTS,)),
    "system-error": frozenset((_RESTS,)),
}
"""Likewise the words of Codex's feed and of Claude Code's session file."""
_NEVER: Final[Looks] = frozenset()


class Corroboration(NamedTuple):
    """What one source says."""

    looks: Looks
    """What the worker looks like to it; empty for what always speaks against the conclusion."""
    evidence: Evidence


def attach_corroboration(assessment: Assessment, claims: Iterable[Corroboration]) -> Assessment:
    """The conclusion with everybody else's word beside it."""
    mine = _LOOKS.get(assessment.state)
    if mine is None:
        return assessment
    known = {(e.source, e.rule, e.at) for e in assessment.evidence}
    sources = {e.source for e in assessment.evidence}
    more = [replace(claim.evidence, agrees=not mine.isdisjoint(claim.looks)) for claim in claims]
    more = [
        e for e in more if (e.source, e.rule, e.at) not in known and not (e.agrees and e.source in sources)
    ]
    return replace(assessment, evidence=(*assessment.evidence, *more)) if more else assessment


def screen_says(reading: ScreenRead | None) -> Iterator[Corroboration]:
    """The rules for its screen, and that not all of it is in sight."""
    if reading is not None and (looks := _LOOKS.get(State(reading.state or "unknown"))) is not None:
        yield Corroboration(
            looks,
            Evidence(shown_in(reading), reading.at, reading.rule or "", f"{reading.state}: {reading.text}"),
        )
    if reading is not None and reading.partial:
        yield Corroboration(
            _NEVER,
            Evidence(
                "screen", reading.at, reading.rule or "", f"part of a menu is out of sight: {reading.text}"
            ),
        )


def feed_says(pushed: StatusPushed | None) -> Iterator[Corroboration]:
    """Codex's own feed."""
    if pushed is not None and (looks := _WORD.get(pushed.status)) is not None:
        said = f"thread/status/changed {' '.join((pushed.status, *pushed.flags))}"
        yield Corroboration(
            frozenset((_ASKS,)) if pushed.flags else looks,
            Evidence("codex feed", pushed.at, "status-pushed", said),
        )


def session_says(session: SessionSeen | None) -> Iterator[Corroboration]:
    """Claude Code's own file."""
    if session is not None and session.status is not None:
        said = f"status {session.status}" + (
            f", waiting for {session.waiting_for}" if session.waiting_for else ""
        )
        yield Corroboration(
            _WORD[session.status], Evidence("session file", session.since, "session-status", said)
        )


def commands_say(commands: tuple[Process, ...]) -> Iterator[Corroboration]:
    """Live processes of its commands: a background terminal outlives its turn."""
    if commands:
        process = commands[-1]
        what = f"pid {process.pid} of its commands runs: {' '.join(process.argv)[:200] or process.name}"
        yield Corroboration(
            frozenset((_WORKS, _ASKS)), Evidence("process", process.key.started, "command-alive", what)
        )


def output_says(thread: Thread) -> Iterator[Corroboration]:
    """A denial in a turn that has ended, also one inside of a command that went on and exited with 0."""
    turn = thread.turn
    if turn is None or (turn.ended_at is None and not turn.inferred):
        return
    call = next(
        (c for c in reversed(thread.calls) if c.denial and c.denial.certain and c.at >= turn.since), None
    )
    if call is not None and call.denial is not None:
        text = f"`{call.text}` -> {call.denial.quote}"
        yield Corroboration(
            _NEVER, Evidence("output", call.ended_at or call.at, f"denied-{call.denial.what}", text)
        )


def shown_in(reading: ScreenRead) -> str:
    """Where a reading's words stood: `title` or `screen`."""
    return "title" if reading.rule and ".title" in reading.rule else "screen"
