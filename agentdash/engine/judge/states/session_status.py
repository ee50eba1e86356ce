"""Rules for threads whose process writes its status into a session file (Claude Code, 2.1.197+)."""

from __future__ import annotations

from typing import Final

from agentdash.engine.judge.states import facts as short
from agentdash.engine.judge.states.assessments import assess_screen, conclude
from agentdash.engine.judge.states.thread_facts import ThreadFacts
from agentdash.model.events import ScreenRead
from agentdash.model.evidence import EvidenceSource
from agentdash.model.states import State
from agentdash.model.worker import Assessment

_WAITING: Final = (State.WAITING_APPROVAL, State.WAITING_INPUT)
_REST: Final = (State.COMPLETED, State.WAITING_INPUT, State.INTERRUPTED, State.FAILED_PROVIDER)
"""States of the screen that refine `idle`: how the turn ended."""
_RULE: Final = "session-status"


def waiting_by_session_file(facts: ThreadFacts) -> Assessment | None:
    """Return what its session file reports as waited for; the open call and the screen tell questions from
    permissions."""
    session = facts.session
    if session is None or session.status != "waiting":
        return None
    reading = _reading_since(facts, session.since)
    call = facts.newest_open_call
    is_question = (call is not None and call.kind == "question") or (
        reading is not None and reading.state == State.WAITING_INPUT
    )
    object_ = f": {call.text}" if call is not None and call.text else ""
    waiting_for = f" ({session.waiting_for})" if session.waiting_for else ""
    if is_question:
        asked = short.asks(call.text) if call is not None and call.kind == "question" else None
        if asked is None and reading is not None:
            asked = short.shown(reading)
        return conclude(
            State.WAITING_INPUT,
            since=session.since,
            why=f"asks{object_}",
            source=EvidenceSource.SESSION_FILE,
            rule=_RULE,
            text=f"status waiting{waiting_for}",
            fact=asked or short.asks(""),
        )
    on_screen = reading if reading is not None and reading.state in _WAITING else None
    return conclude(
        State.WAITING_APPROVAL,
        since=session.since,
        why=f"waits for an approval{object_}",
        source=EvidenceSource.SESSION_FILE,
        rule=_RULE,
        text=f"status waiting{waiting_for}",
        fact=short.wants(call, on_screen=on_screen),
    )


def beyond_the_log(facts: ThreadFacts) -> Assessment | None:
    """Return `running` where its session file is busy since its last turn, and how it rests where the file
    has been idle since its newest line.

    The log gets a line only when something is complete: nothing marks the beginning of an answer, and an
    interrupted request may leave no line.
    """
    session, turn = facts.session, facts.thread.turn
    if session is None or session.status is None or session.status == "waiting":
        return None
    if session.status == "busy":
        has_ended = turn is None or (turn.ended_at is not None and session.since > turn.ended_at)
        if not has_ended:
            return None
        return conclude(
            State.RUNNING,
            since=session.since,
            why="its session file: status busy",
            source=EvidenceSource.SESSION_FILE,
            rule=_RULE,
            text="status busy",
            fact=short.by_status("busy", ""),
        )
    if turn is None or turn.ended_at is not None or session.since < (facts.thread.last_at or 0.0):
        return None
    reading = _reading_since(facts, turn.since)
    if reading is not None and reading.state in _REST:
        return assess_screen(reading)
    return conclude(
        State.COMPLETED,
        since=session.since,
        why="its session file: status idle",
        source=EvidenceSource.SESSION_FILE,
        rule=_RULE,
        text="status idle",
        fact=short.done(turn.message or ""),
    )


def _reading_since(facts: ThreadFacts, since: float) -> ScreenRead | None:
    """Return the reading of its screen, if that is not older."""
    reading = facts.reading
    return reading if reading is not None and reading.at >= since - 1.0 else None
