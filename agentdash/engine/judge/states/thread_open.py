"""Rules for threads with an open turn: what stops them or makes them wait, and what goes on."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.states import facts
from agentdash.engine.judge.states.assessments import (
    assess_half_menu,
    assess_screen,
    conclude,
    is_heard,
    screen_evidence,
)
from agentdash.engine.judge.states.thread_facts import PROCESS_START_GRACE_S, ThreadFacts
from agentdash.model.events import ScreenRead, SessionSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind
from agentdash.model.fleet import ProviderTrouble
from agentdash.model.states import Liveness, State
from agentdash.model.thread import Call, Thread
from agentdash.model.worker import Assessment

_STATES_FROM_SCREEN: Final = (State.WAITING_APPROVAL, State.FAILED_PROVIDER)
"""States that only a screen shows while a turn is open. Questions are in the rollout; an idle prompt is a
screen that lags."""
_RUN_UNASKED: Final = ("never", "on-request", "on-failure")
"""Approval policies of Codex under which a command that is not escalated runs at once, in the sandbox."""
_LOGGED_FAILURE_VALID_S: Final = 60.0
"""Age up to which a failed request in Codex's log describes the present: a retry would have failed again
within it."""
_STATUS_LATENESS_S: Final = 1.0
"""How much earlier than the line of a prompt its status may say that it works."""
_STATUS_RULE: Final = "session-status"


def unreadable_rollout(case: ThreadFacts) -> Assessment | None:
    """Return `unreachable` where the rollout cannot be opened."""
    file = case.thread.file
    if file is None or not file.unreadable:
        return None
    why = f"its rollout cannot be read: {file.unreadable}"
    fact = facts.unclear("its rollout cannot be read", file.path, why=file.unreadable)
    return conclude(State.UNREACHABLE, file.modified, "rollout-unreadable", why, fact=fact)


# ---------------------------------------------------------------- what waits for the user


def waiting_by_feed(case: ThreadFacts) -> Assessment | None:
    """Return what Codex's own feed reports as waited for: the authority where there is a feed."""
    pushed, call, reading = case.pushed, case.newest_open_call, case.reading
    if pushed is None or pushed.status != "active" or not pushed.flags:
        return None
    is_approval = "waitingOnApproval" in pushed.flags
    state = State.WAITING_APPROVAL if is_approval else State.WAITING_INPUT
    since = pushed.at
    if call is not None and reading is not None and reading.state == state and reading.at >= call.at:
        since = min(since, reading.at)  # the feed was connected to later than the prompt was drawn
    return _wait(
        case,
        state,
        _asked_since(case, since) if is_approval else since,
        "status-pushed",
        EvidenceSource.CODEX_FEED,
        f"thread/status/changed {', '.join(pushed.flags)}",
        reading,
    )


def waiting_by_session_file(case: ThreadFacts) -> Assessment | None:
    """Return what a session file (Claude Code 2.1.197+) reports as waited for; the open call and the screen
    tell questions from permissions."""
    session, call = case.session, case.newest_open_call
    if session is None or session.status != "waiting":
        return None
    reading = _reading_since(case, session.since)
    is_asked = reading is not None and reading.state == State.WAITING_INPUT
    is_question = is_asked or (call is not None and call.kind == "question")
    return _wait(
        case,
        State.WAITING_INPUT if is_question else State.WAITING_APPROVAL,
        session.since,
        _STATUS_RULE,
        EvidenceSource.SESSION_FILE,
        f"status waiting{f' ({session.waiting_for})' if session.waiting_for else ''}",
        reading,
    )


def _wait(
    case: ThreadFacts,
    state: State,
    since: float,
    rule: str,
    source: EvidenceSource,
    text: str,
    reading: ScreenRead | None,
) -> Assessment:
    """Return what a thread waits for: by its open call, or else as the screen quotes it."""
    call, on_screen = case.newest_open_call, reading
    if on_screen is not None and on_screen.state not in (State.WAITING_APPROVAL, State.WAITING_INPUT):
        on_screen = None
    tool = f"{call.tool} " if call is not None and call.kind == "other" else ""
    object_ = f": {tool}{call.text}" if call is not None and (tool or call.text) else ""
    if state is State.WAITING_APPROVAL:
        why, fact = f"waits for an approval{object_}", facts.wants(call, on_screen=on_screen)
    elif on_screen is not None and (call is None or call.kind != "question"):
        why, fact = f"asks{object_}", facts.shown(on_screen)
    else:
        why, fact = f"asks{object_}", facts.asks(call.text if call else "")
    return conclude(state, since, rule, why, source=source, text=text, fact=fact)


def approval_of_sub_agent(case: ThreadFacts) -> Assessment | None:
    """Return that a thread below it waits for an approval, whose dialog its own pane shows."""
    asker, reading, session = case.asker, case.reading, case.session
    is_waiting = session is not None and session.status == "waiting"
    is_shown = reading is not None and reading.state == State.WAITING_APPROVAL
    if asker is None or not (is_shown or is_waiting):
        return None
    call, name = asker.open_calls[-1] if asker.open_calls else None, asker.nickname or asker.id
    evidence = []
    if session is not None and is_waiting:
        evidence.append(Evidence(EvidenceSource.SESSION_FILE, session.since, _STATUS_RULE, "status waiting"))
    if reading is not None and is_shown:
        evidence.append(screen_evidence(reading, reading.text))
    since = evidence[0].at
    asks = Evidence(EvidenceSource.ROLLOUT, since, "sub-agent-asks", f"{name} ({asker.id}) waits for it")
    return Assessment(
        state=State.WAITING_APPROVAL,
        since=since,
        why=f"its sub-agent {name} waits for an approval{f': {call.text}' if call else ''}",
        evidence=(asks, *evidence),
        fact=facts.wants(call, on_screen=reading),
        asker=asker.id,
    )


def approval_in_pane_of_session(case: ThreadFacts) -> Assessment | None:
    """Return that a sub-agent of Claude Code waits for an approval: the dialog stands in another pane."""
    call, dialog = case.newest_open_call, case.dialog
    if call is None or dialog is None:
        return None
    opened = Evidence(EvidenceSource.ROLLOUT, call.at, "call-open", f"{call.tool}: {call.text}")
    why, since = f"waits for an approval in the pane of its session: {call.text}", max(call.at, dialog.at)
    return Assessment(State.WAITING_APPROVAL, since, why, (dialog, opened), facts.wants(call))


def open_question_or_permission(case: ThreadFacts) -> Assessment | None:
    """Return what an open question tool or permission tool waits for."""
    if case.liveness is Liveness.GONE:
        return None
    if call := case.open_call("question"):
        why, fact = f"asks: {call.text}", facts.asks(call.text)
        return conclude(State.WAITING_INPUT, call.at, "open-question", why, fact=fact)
    if call := case.open_call("permission"):
        why, fact = f"asks for permissions: {call.text}", facts.wants(call)
        return conclude(State.WAITING_APPROVAL, call.at, "open-permission-request", why, fact=fact)
    return None


def prompt_or_end_on_screen(case: ThreadFacts) -> Assessment | None:
    """Return what only the screen shows: prompts that write nothing, and, of a turn that is inferred, the
    error of the provider that ended it."""
    turn, reading = case.open_turn, case.reading
    if turn is None or reading is None or reading.state not in _STATES_FROM_SCREEN or reading.at < turn.since:
        return None
    if not turn.inferred and not is_heard(reading, "open"):
        return None
    if reading.state == State.FAILED_PROVIDER:
        return None if _is_of_turn_before(case.trouble, turn.since) else assess_screen(reading)
    if case.is_answered_since(reading.at):
        return None  # the menu has not been removed from the screen yet
    return replace(assess_screen(reading), since=_asked_since(case, reading.at))


def _asked_since(case: ThreadFacts, seen: float) -> float:
    """Return since when an approval is waited for that was seen at this time: of an escalated command, for
    which Codex asks at once, since its call."""
    call = case.newest_open_call
    asks_at_once = call is not None and call.escalation is not None and not case.process_of(call)
    return min(seen, call.at) if call is not None and asks_at_once else seen


def escalation_without_process(case: ThreadFacts) -> Assessment | None:
    """Return `waiting-approval` for an escalated command that has no process although its Codex lives."""
    if case.thread.agent != "codex":
        return None  # of other CLIs no process has the id of its call
    calls = (call for call in case.thread.open_calls if call.escalation and not case.process_of(call))
    call = next(calls, None)
    if call is None or case.liveness is not Liveness.ALIVE or case.is_answered_since(call.at):
        return None
    if case.processes_at is None or case.processes_at - call.at < PROCESS_START_GRACE_S:
        return None
    reason = f" ({call.escalation.reason})" if call.escalation and call.escalation.reason else ""
    absent = f"no process carries CODEX_TOOL_CALL_ID={call.id}"
    return conclude(
        State.WAITING_APPROVAL,
        call.at,
        "open-escalation",
        f"wants to run outside the sandbox: {call.text}",
        text=f"asked to leave the sandbox{reason}: {call.text}",
        fact=facts.wants(call),
        more=[Evidence(EvidenceSource.PROCESS, call.at, "no-process-for-call", absent)],
    )


def half_visible_menu(case: ThreadFacts) -> Assessment | None:
    """Return `unknown` where the pane has no room for a whole menu and no other source knows of it."""
    turn, reading = case.open_turn, case.reading
    if turn is None or reading is None or reading.state is not None or not reading.partial:
        return None
    is_known = case.pushed is not None or any(map(case.process_of, case.thread.open_calls))
    return None if is_known or reading.at < turn.since else assess_half_menu(reading, "its pane")


# ---------------------------------------------------------------- what goes on


def owner_gone(case: ThreadFacts) -> Assessment | None:
    """Return `exited` where the turn is open and no process holds the thread any more."""
    turn, call = case.open_turn, case.newest_open_call
    if turn is None or case.liveness is not Liveness.GONE:
        return None
    if turn.inferred and (call is None or turn.message):
        return None  # files without turn marks: an answer may have been the end
    has_run = call is not None and _runs_unasked(case.thread, call)
    during = f" while `{call.text}` ran" if call else ""
    if call is not None and not has_run:
        during = f"; `{call.text}` was asked for, and whether it was allowed is not known"
    last_at, unowned = case.thread.last_at or turn.since, "no process holds its writer lock or its rollout"
    why = f"its {case.cli} is gone{during}; the turn was never ended"
    evidence = (
        Evidence(EvidenceSource.ROLLOUT, turn.since, "turn-open", "the turn has no end in the file"),
        Evidence(EvidenceSource.PROCESS, last_at, "no-owner", unowned),
    )
    fact = facts.crashed(call, case.thread.last_prompt or "", has_run=has_run)
    return Assessment(State.EXITED, case.ownerless_since, why, evidence, fact)


def _runs_unasked(thread: Thread, call: Call) -> bool:
    """Return whether a call runs without an approval: one that waits for it is open as well."""
    policy = thread.policy_of(call)
    approval = policy.approval if policy is not None else None
    unasked = _RUN_UNASKED if thread.agent == "codex" else ("never",)
    return call.escalation is None and approval in unasked


def beyond_the_record(case: ThreadFacts) -> Assessment | None:
    """Return `running` where its CLI says that it works although no turn is open in its record.

    The record gets a line only when something is complete: nothing marks the beginning of an answer. Claude
    Code ends its turn when only agents in the background work, and begins the next one by itself.
    """
    turn, session, evidence = case.thread.turn, case.session, []
    if case.open_turn is not None:
        return None
    if session is not None and _is_busy(session, case.thread):
        busy = Evidence(EvidenceSource.SESSION_FILE, session.since, _STATUS_RULE, "status busy")
        evidence.append(busy)
    elif not _agents_go_on(case):
        return None
    why, fact = "its session file: status busy", facts.by_status("busy", "")
    if case.agents:
        why = f"waits for {case.agents} background agent{'s' * (case.agents != 1)}"
        fact = Fact(FactKind.WORK, why)
    if case.agents and turn is not None:
        text = f"{case.agents} of the agents that it started have an open turn"
        at = turn.ended_at or turn.since
        evidence.append(Evidence(EvidenceSource.ROLLOUT, at, "agents-open", text))
    if trouble := _newest_trouble(case, (turn.ended_at if turn else None) or 0.0):
        why, fact = f"tries again: {trouble.text}", facts.retries(trouble.text)
        evidence.append(trouble)
    return Assessment(State.RUNNING, evidence[0].at, why, tuple(evidence), fact)


def _is_busy(session: SessionSeen, thread: Thread) -> bool:
    """Return whether a session file is busy, and still written.

    A file that was not changed by the beginning or the end of the newest turn is an old one; but with agents
    in the background it stays busy from turn to turn.
    """
    turn = thread.turn
    is_older = turn is not None and session.since < turn.since - _STATUS_LATENESS_S
    return session.status == "busy" and (not is_older or bool(thread.children))


def _agents_go_on(case: ThreadFacts) -> bool:
    """Return whether agents that it left in the background work on, by their own records."""
    turn, session = case.thread.turn, case.session
    is_idle = session is not None and session.status == "idle"
    has_answered = turn is not None and turn.how == "completed"
    return case.agents > 0 and has_answered and not is_idle and case.liveness is Liveness.ALIVE


def resting_by_session_file(case: ThreadFacts) -> Assessment | None:
    """Return how it rests where its session file has been idle since the newest line of an open turn: an
    interrupted request may leave no line."""
    session, turn = case.session, case.open_turn
    if session is None or session.status != "idle" or turn is None:
        return None
    if session.since < (case.thread.last_at or 0.0):
        return None
    reading = _reading_since(case, turn.since)
    if reading is not None and is_heard(reading, "idle"):
        return assess_screen(reading)
    why, source = "its session file: status idle", EvidenceSource.SESSION_FILE
    fact = facts.done(turn.message or "")
    return conclude(State.COMPLETED, session.since, _STATUS_RULE, why, source=source, fact=fact)


def _reading_since(case: ThreadFacts, since: float) -> ScreenRead | None:
    """Return the reading of its screen, if that is not older."""
    reading = case.reading
    return reading if reading is not None and reading.at >= since - 1.0 else None


def turn_open(case: ThreadFacts) -> Assessment | None:
    """Return `running` while the turn is open."""
    turn, call = case.open_turn, case.newest_open_call
    if turn is None:
        return None
    trouble = _newest_trouble(case, turn.since)
    shows_work = case.reading is not None and case.reading.state == State.RUNNING
    is_waited_for = call is not None and case.liveness is Liveness.ALIVE
    has_answered = bool(turn.message) and not (trouble or shows_work or is_waited_for)
    if turn.inferred and (has_answered or (call is None and case.liveness is Liveness.GONE)):
        return None  # files without turn marks: the last message, or the end
    log, process = EvidenceSource.ROLLOUT, EvidenceSource.PROCESS
    evidence = [Evidence(log, turn.since, "turn-open", "the turn has begun and not ended")]
    why, fact = "thinking", facts.works(call, turn.message or "")
    if call is not None:
        why = f"{_open_call_in_words(call)} since the turn's last call"
        evidence.append(Evidence(log, call.at, "call-open", f"{call.tool}: {call.text}"))
        newest_first = reversed(case.thread.open_calls)
        if running := next((p for each in newest_first if (p := case.process_of(each))), None):
            why = f"`{call.text}` is running (pid {running.pid})"
            text = f"pid {running.pid} carries the call's id"
            evidence.append(Evidence(process, running.key.started, "process-of-call", text))
    if case.owner:
        evidence.append(Evidence(case.owner.source, turn.since, "owner-alive", case.owner.by))
    if trouble is not None:
        why, fact = f"tries again: {trouble.text}", facts.retries(trouble.text)
        evidence.append(trouble)
    return Assessment(State.RUNNING, turn.since, why, tuple(evidence), fact)


def _open_call_in_words(call: Call) -> str:
    if call.kind == "wait":
        return "waiting for its children"
    return f"`{call.text}` is open" if call.text else f"{call.tool} is open"


def _newest_trouble(case: ThreadFacts, since: float) -> Evidence | None:
    """Return the failed request since a time after which it tries again: by its screen, or by Codex's log
    where no screen shows anything.

    Failed requests leave no line in the rollout; a newer line in it means that a request has succeeded since.
    """
    reading, trouble = case.reading, case.trouble
    if trouble is None or _is_of_turn_before(trouble, since):
        return None
    if reading is not None and reading.state is not None:
        is_shown = reading.is_retrying and reading.at >= since
        return screen_evidence(reading, reading.text) if is_shown else None
    is_outdated = case.processes_at is not None and case.processes_at - trouble.at > _LOGGED_FAILURE_VALID_S
    is_logged = trouble.source is EvidenceSource.CODEX_LOG
    if not is_logged or is_outdated or trouble.at < (case.thread.last_at or 0.0):
        return None
    return Evidence(trouble.source, trouble.at, "request-failed", trouble.text)


def _is_of_turn_before(trouble: ProviderTrouble | None, since: float) -> bool:
    """Return whether the trouble was seen before a turn: its screen may have shown nothing of that yet."""
    return trouble is not None and trouble.at < since
