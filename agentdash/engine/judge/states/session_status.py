"""Rules for threads whose process writes its status into a session file (Claude Code, 2.1.197+)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentdash.engine.judge.states import facts as short
from agentdash.engine.judge.states.assessments import assess_screen, conclude, is_heard
from agentdash.engine.judge.states.thread_facts import ThreadFacts
from agentdash.engine.judge.states.thread_open import newest_trouble
from agentdash.model.events import ScreenRead
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.states import Liveness, State
from agentdash.model.worker import Assessment

_WAITING: Final = (State.WAITING_APPROVAL, State.WAITING_INPUT)
_STATUS_LATENESS_S: Final = 1.0
"""How much earlier than the line of a prompt its status may say that it works."""
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


def beyond_the_record(facts: ThreadFacts) -> Assessment | None:
    """Return `running` where its CLI says that it works although no turn is open in its record.

    The record gets a line only when something is complete: nothing marks the beginning of an answer. Claude
    Code ends its turn when only agents in the background work, and begins the next one by itself.
    """
    turn, since = facts.thread.turn, _busy_since(facts)
    if facts.open_turn is not None or (since is None and not _agents_go_on(facts)):
        return None
    evidence = list(_evidence_of_work(facts, since))
    fact = short.awaits_agents(facts.agents) if facts.agents else short.by_status("busy", "")
    why = fact.text if facts.agents else "its session file: status busy"
    if trouble := newest_trouble(facts, (turn.ended_at if turn else None) or 0.0):
        why, fact = f"tries again: {trouble.text}", short.retries(trouble.text)
        evidence.append(trouble)
    return Assessment(State.RUNNING, since=evidence[0].at, why=why, evidence=tuple(evidence), fact=fact)


def _evidence_of_work(facts: ThreadFacts, busy_since: float | None) -> Iterator[Evidence]:
    if busy_since is not None:
        yield Evidence(EvidenceSource.SESSION_FILE, busy_since, rule=_RULE, text="status busy")
    if facts.agents and facts.thread.turn is not None:
        text = f"{facts.agents} of the agents that it started have an open turn"
        at = facts.thread.turn.ended_at or facts.thread.turn.since
        yield Evidence(EvidenceSource.ROLLOUT, at, rule="agents-open", text=text)


def _busy_since(facts: ThreadFacts) -> float | None:
    """Return since when its session file is busy; None where that is not written any more.

    A file that was not changed by the beginning or the end of the newest turn is an old one; but with agents
    in the background it stays busy from turn to turn.
    """
    session, turn = facts.session, facts.thread.turn
    if session is None or session.status != "busy":
        return None
    is_older = turn is not None and session.since < turn.since - _STATUS_LATENESS_S
    return None if is_older and not facts.thread.children else session.since


def _agents_go_on(facts: ThreadFacts) -> bool:
    """Return whether agents that it left in the background work on, by their own records."""
    turn, session = facts.thread.turn, facts.session
    is_idle = session is not None and session.status == "idle"
    has_answered = turn is not None and turn.how == "completed"
    return facts.agents > 0 and has_answered and not is_idle and facts.liveness is Liveness.ALIVE


def resting_by_session_file(facts: ThreadFacts) -> Assessment | None:
    """Return how it rests where its session file has been idle since the newest line of an open turn: an
    interrupted request may leave no line."""
    session, turn = facts.session, facts.open_turn
    if session is None or session.status != "idle" or turn is None:
        return None
    if session.since < (facts.thread.last_at or 0.0):
        return None
    reading = _reading_since(facts, turn.since)
    if reading is not None and is_heard(reading, "idle"):
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
