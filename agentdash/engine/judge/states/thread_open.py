"""Rules for threads with an open turn: what stops them or makes them wait, and what goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.states import facts as short
from agentdash.engine.judge.states.assessments import (
    assess_half_menu,
    assess_screen,
    conclude,
    is_heard,
    screen_evidence,
)
from agentdash.engine.judge.states.thread_facts import ThreadFacts
from agentdash.model.events import ScreenRead
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind
from agentdash.model.fleet import ProviderTrouble
from agentdash.model.states import Liveness, State
from agentdash.model.thread import Call, Thread
from agentdash.model.worker import Assessment

_PROCESS_START_GRACE_S: Final = 1.0
"""Time that a call's process may take to appear before its absence counts: a scan of all processes and a
fork."""
_WAITING: Final = (State.WAITING_APPROVAL, State.WAITING_INPUT)
_STATES_FROM_SCREEN: Final = (State.WAITING_APPROVAL, State.FAILED_PROVIDER)
"""States that only a screen shows while a turn is open. Questions are in the rollout; an idle prompt is a
screen that lags."""
_RUN_UNASKED: Final = ("never", "on-request", "on-failure")
"""Approval policies of Codex under which a command that is not escalated runs at once, in the sandbox."""
_LOGGED_FAILURE_VALID_S: Final = 60.0
"""Age up to which a failed request in Codex's log describes the present: a retry would have failed again
within it."""


def unreadable_rollout(facts: ThreadFacts) -> Assessment | None:
    """Return `unreachable` where the rollout cannot be opened."""
    file = facts.thread.file
    if file is None or not file.unreadable:
        return None
    return conclude(
        State.UNREACHABLE,
        since=file.modified,
        why=f"its rollout cannot be read: {file.unreadable}",
        rule="rollout-unreadable",
        fact=short.unclear("its rollout cannot be read", file.path, why=file.unreadable),
    )


def waiting_by_feed(facts: ThreadFacts) -> Assessment | None:
    """Return what Codex's own feed reports as waited for: the authority where there is a feed."""
    if facts.pushed is None or facts.pushed.status != "active" or not facts.pushed.flags:
        return None
    call = facts.newest_open_call
    tool = f"{call.tool} " if call and call.kind == "other" else ""
    object_ = f": {tool}{call.text}" if call else ""
    approval = "waitingOnApproval" in facts.pushed.flags
    state = State.WAITING_APPROVAL if approval else State.WAITING_INPUT
    since, reading = facts.pushed.at, facts.reading
    if call is not None and reading is not None and reading.state == state and reading.at >= call.at:
        since = min(since, reading.at)  # the feed was connected to later than the prompt was drawn
    if approval:
        since = _asked_since(facts, since)
    return conclude(
        state,
        since=since,
        why=f"waits for an approval{object_}" if approval else f"asks{object_}",
        source=EvidenceSource.CODEX_FEED,
        rule="status-pushed",
        text=f"thread/status/changed {', '.join(facts.pushed.flags)}",
        fact=_waits_for(call, reading, approval=approval),
    )


def approval_of_sub_agent(facts: ThreadFacts) -> Assessment | None:
    """Return that a thread below it waits for an approval, whose dialog its own pane shows."""
    asking, reading = facts.asking, facts.reading
    if asking is None or reading is None or reading.state != State.WAITING_APPROVAL:
        return None
    call = asking.open_calls[-1] if asking.open_calls else None
    name = asking.nickname or asking.id
    return Assessment(
        state=State.WAITING_APPROVAL,
        since=reading.at,
        why=f"its sub-agent {name} waits for an approval" + (f": {call.text}" if call else ""),
        evidence=(
            Evidence(
                source=EvidenceSource.CODEX_FEED,
                at=reading.at,
                rule="sub-agent-asks",
                text=f"thread/status/changed waitingOnApproval of {asking.id}",
            ),
            screen_evidence(reading, reading.text),
        ),
        fact=short.wants(call, on_screen=reading),
    )


def _asked_since(facts: ThreadFacts, seen: float) -> float:
    """Return since when an approval is waited for that was seen at this time: of an escalated command, for
    which Codex asks at once, since its call."""
    call = facts.newest_open_call
    asks_at_once = call is not None and call.escalation is not None and not facts.process_of(call)
    return min(seen, call.at) if call is not None and asks_at_once else seen


def _waits_for(call: Call | None, reading: ScreenRead | None, *, approval: bool) -> Fact:
    """Return what is waited for: by the open call, or else as the screen quotes it."""
    on_screen = reading if reading is not None and reading.state in _WAITING else None
    if approval:
        return short.wants(call, on_screen=on_screen)
    if call is None and on_screen is not None:
        return short.shown(on_screen)
    return short.asks(call.text if call else "")


def prompt_or_end_on_screen(facts: ThreadFacts) -> Assessment | None:
    """Return what only the screen shows: prompts that write nothing, and, of a turn that is inferred, the
    error of the provider that ended it."""
    turn, reading = facts.open_turn, facts.reading
    if turn is None or reading is None or reading.state not in _STATES_FROM_SCREEN or reading.at < turn.since:
        return None
    if not turn.inferred and not is_heard(reading, "open"):
        return None
    if reading.state == State.WAITING_APPROVAL and facts.is_answered_since(reading.at):
        return None  # the menu has not been removed from the screen yet
    if reading.state == State.FAILED_PROVIDER and _is_of_turn_before(facts.trouble, turn.since):
        return None
    assessment = assess_screen(reading)
    if reading.state == State.WAITING_APPROVAL:
        return replace(assessment, since=_asked_since(facts, reading.at))
    return assessment


def newest_trouble(facts: ThreadFacts, since: float) -> Evidence | None:
    """Return the failed request since a time after which it tries again: by its screen, or by Codex's log
    where no screen shows anything.

    Failed requests leave no line in the rollout; a newer line in it means that a request has succeeded since.
    """
    reading, trouble = facts.reading, facts.trouble
    if trouble is None or _is_of_turn_before(trouble, since):
        return None
    if reading is not None and reading.state is not None:
        is_shown = reading.is_retrying and reading.at >= since
        return screen_evidence(reading, reading.text) if is_shown else None
    outdated = facts.processes_at is not None and facts.processes_at - trouble.at > _LOGGED_FAILURE_VALID_S
    if trouble.source is not EvidenceSource.CODEX_LOG or outdated:
        return None
    if trouble.at < (facts.thread.last_at or 0.0):
        return None
    return Evidence(trouble.source, trouble.at, "request-failed", trouble.text)


def _is_of_turn_before(trouble: ProviderTrouble | None, since: float) -> bool:
    """Return whether the trouble was seen before a turn: its screen may have shown nothing of that yet."""
    return trouble is not None and trouble.at < since


def half_visible_menu(facts: ThreadFacts) -> Assessment | None:
    """Return `unknown` where the pane has no room for a whole menu and no other source knows of it."""
    turn, reading = facts.open_turn, facts.reading
    if turn is None or reading is None or reading.state is not None or not reading.partial:
        return None
    known_otherwise = facts.pushed is not None or any(map(facts.process_of, facts.thread.open_calls))
    return None if known_otherwise or reading.at < turn.since else assess_half_menu(reading, "its pane")


def open_question_or_permission(facts: ThreadFacts) -> Assessment | None:
    """Return what an open question tool or permission tool waits for."""
    if facts.liveness is Liveness.GONE:
        return None
    if call := facts.open_call("question"):
        return conclude(
            State.WAITING_INPUT,
            since=call.at,
            why=f"asks: {call.text}",
            rule="open-question",
            fact=short.asks(call.text),
        )
    if call := facts.open_call("permission"):
        return conclude(
            State.WAITING_APPROVAL,
            since=call.at,
            why=f"asks for permissions: {call.text}",
            rule="open-permission-request",
            fact=short.wants(call),
        )
    return None


def escalation_without_process(facts: ThreadFacts) -> Assessment | None:
    """Return `waiting-approval` for an escalated command that has no process although its Codex lives."""
    if facts.thread.agent != "codex":
        return None  # of other CLIs no process has the id of its call
    calls = (call for call in facts.thread.open_calls if call.escalation and not facts.process_of(call))
    call = next(calls, None)
    if call is None or facts.liveness is not Liveness.ALIVE or facts.is_answered_since(call.at):
        return None
    if facts.processes_at is None or facts.processes_at - call.at < _PROCESS_START_GRACE_S:
        return None
    reason = f" ({call.escalation.reason})" if call.escalation and call.escalation.reason else ""
    evidence = (
        Evidence(
            source=EvidenceSource.ROLLOUT,
            at=call.at,
            rule="open-escalation",
            text=f"asked to run outside of the sandbox{reason}: {call.text}",
        ),
        Evidence(
            source=EvidenceSource.PROCESS,
            at=call.at,
            rule="no-process-for-call",
            text=f"no process carries CODEX_TOOL_CALL_ID={call.id}",
        ),
    )
    return Assessment(
        state=State.WAITING_APPROVAL,
        since=call.at,
        why=f"wants to run outside of the sandbox: {call.text}",
        evidence=evidence,
        fact=short.wants(call),
    )


def owner_gone(facts: ThreadFacts) -> Assessment | None:
    """Return `exited` where the turn is open and no process holds the thread any more."""
    turn = facts.open_turn
    if turn is None or facts.liveness is not Liveness.GONE:
        return None
    if turn.inferred and not facts.thread.open_calls:
        return None  # files without turn marks: an answer may have been the end
    call = facts.newest_open_call
    is_certain = call is not None and _runs_unasked(facts.thread, call)
    during = f" while `{call.text}` ran" if call else ""
    if call is not None and not is_certain:
        during = f"; `{call.text}` was asked for, and whether it was allowed is not known"
    evidence = (
        Evidence(EvidenceSource.ROLLOUT, turn.since, "turn-open", "the turn has no end in the file"),
        Evidence(
            source=EvidenceSource.PROCESS,
            at=facts.thread.last_at or turn.since,
            rule="no-owner",
            text="no process holds its writer lock or its rollout",
        ),
    )
    return Assessment(
        state=State.EXITED,
        since=facts.ownerless_since,
        why=f"its {facts.cli} is gone{during}; the turn was never ended",
        evidence=evidence,
        fact=short.crashed(call, facts.thread.last_prompt or "", has_run=is_certain),
    )


def _runs_unasked(thread: Thread, call: Call) -> bool:
    """Return whether a call runs without an approval: one that waits for it is open as well."""
    policy = thread.policy_of(call)
    approval = policy.approval if policy is not None else None
    unasked = _RUN_UNASKED if thread.agent == "codex" else ("never",)
    return call.escalation is None and approval in unasked


def turn_open(facts: ThreadFacts) -> Assessment | None:
    """Return `running` while the turn is open."""
    turn, call = facts.open_turn, facts.newest_open_call
    if turn is None:
        return None
    trouble = newest_trouble(facts, turn.since)
    has_answered = bool(turn.message) and trouble is None
    if turn.inferred and call is None and (has_answered or facts.liveness is Liveness.GONE):
        return None  # files without turn marks: the last message, or the end
    evidence = [Evidence(EvidenceSource.ROLLOUT, turn.since, "turn-open", "the turn has begun and not ended")]
    why = "turn open, waiting for the model"
    if call is not None:
        why = f"{_open_call_in_words(call)} since the turn's last call"
        evidence.append(Evidence(EvidenceSource.ROLLOUT, call.at, "call-open", f"{call.tool}: {call.text}"))
        newest_first = reversed(facts.thread.open_calls)
        if running := next((p for each in newest_first if (p := facts.process_of(each))), None):
            why = f"`{call.text}` is running (pid {running.pid})"
            evidence.append(
                Evidence(
                    source=EvidenceSource.PROCESS,
                    at=running.key.started,
                    rule="process-of-call",
                    text=f"pid {running.pid} carries the call's id",
                )
            )
    if facts.owner:
        evidence.append(Evidence(facts.owner.source, turn.since, "owner-alive", facts.owner.by))
    fact = short.works(call, turn.message or "")
    if trouble is not None:
        why, fact = f"tries again: {trouble.text}", short.retries(trouble.text)
        evidence.append(trouble)
    return Assessment(state=State.RUNNING, since=turn.since, why=why, evidence=tuple(evidence), fact=fact)


def _open_call_in_words(call: Call) -> str:
    if call.kind == "wait":
        return "waiting for its children"
    return f"`{call.text}` is open" if call.text else f"{call.tool} is open"


_STATUS_LATENESS_S: Final = 1.0
"""How much earlier than the line of a prompt its status may say that it works."""
_RULE: Final = "session-status"


# ---------------------------------------------------------------- session files (Claude Code 2.1.197+)


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
    why, fact = "its session file: status busy", short.by_status("busy", "")
    if facts.agents:
        why = f"waits for {facts.agents} background agent{'s' * (facts.agents != 1)}"
        fact = Fact(FactKind.WORK, why)
    if trouble := newest_trouble(facts, (turn.ended_at if turn else None) or 0.0):
        why, fact = f"tries again: {trouble.text}", short.retries(trouble.text)
        evidence.append(trouble)
    return Assessment(State.RUNNING, since=evidence[0].at, why=why, evidence=tuple(evidence), fact=fact)


def _evidence_of_work(facts: ThreadFacts, busy_since: float | None) -> Iterator[Evidence]:
    if busy_since is not None:
        yield Evidence(EvidenceSource.SESSION_FILE, busy_since, _RULE, "status busy")
    if facts.agents and facts.thread.turn is not None:
        text = f"{facts.agents} of the agents that it started have an open turn"
        at = facts.thread.turn.ended_at or facts.thread.turn.since
        yield Evidence(EvidenceSource.ROLLOUT, at, "agents-open", text)


def _busy_since(facts: ThreadFacts) -> float | None:
    """Return since when its session file is busy, or None if that is no longer written.

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
