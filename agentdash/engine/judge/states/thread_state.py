"""The state of a thread: one authority for each fact; the first rule that applies decides.

Each rule has a name, which its evidence carries. Where no rule applies, the state is `unknown`; where what
should be observable is not, `unreachable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.states import facts
from agentdash.engine.judge.states.facts import conclude
from agentdash.engine.judge.states.thread_facts import PROCESS_START_GRACE_S, ThreadFacts, stopping_denial
from agentdash.model.events import ScreenRead
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.prompts import question_of
from agentdash.model.sanitize import clean_line
from agentdash.model.states import Liveness, State
from agentdash.model.thread import Call, without_record
from agentdash.model.versions import is_before
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
_SLOW_ANSWER_S: Final = 10.0
"""Time without a first answer from which the reason of an aborted turn mentions it."""
_CLOCKS_DIFFER_S: Final = 1.0
"""Between the clock of a session file and the start times of processes."""
_ERRORS_RECORDED_SINCE: Final = (0, 145)
"""First Codex with `error` in `task_complete` of its rollout schema; seen in files from 0.150."""
_REFUSERS: Final[dict[str, str]] = {
    "refused-by-user": "the user",
    "refused-by-policy": "a rule",
    "refused-by-approval": "the approval policy",
}
_REFUSED_AT_ALL: Final = ("refused-by-user", "refused-by-approval")
"""Refusals of what was to be done. A rule forbids one way of doing it, and the model answers by another."""


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
    since, text = pushed.at, f"thread/status/changed {', '.join(pushed.flags)}"
    if call is not None and reading is not None and reading.state == state and reading.at >= call.at:
        since = min(since, reading.at)  # the feed was connected to later than the prompt was drawn
    since = _asked_since(case, since) if is_approval else since
    why, fact = _waited_for(case, state, reading)
    return conclude(state, since, "status-pushed", why, EvidenceSource.CODEX_FEED, text, fact)


def waiting_by_session_file(case: ThreadFacts) -> Assessment | None:
    """Return what a session file (Claude Code 2.1.197+) reports as waited for; the open call and the screen
    tell questions from permissions."""
    session, call = case.session, case.newest_open_call
    if session is None or session.status != "waiting":
        return None
    reading = _reading_since(case, session.since)
    is_asked = reading is not None and reading.state == State.WAITING_INPUT
    is_question = is_asked or (call is not None and call.kind == "question")
    state = State.WAITING_INPUT if is_question else State.WAITING_APPROVAL
    text = f"status waiting{f' ({session.waiting_for})' if session.waiting_for else ''}"
    why, fact = _waited_for(case, state, reading)
    return conclude(state, session.since, _STATUS_RULE, why, EvidenceSource.SESSION_FILE, text, fact)


def _waited_for(case: ThreadFacts, state: State, reading: ScreenRead | None) -> tuple[str, Fact]:
    """Return what a thread waits for, in words and in short: by its open call, or else by the screen."""
    call, waits = case.newest_open_call, (State.WAITING_APPROVAL, State.WAITING_INPUT)
    on_screen = reading if reading is not None and reading.state in waits else None
    tool = f"{call.tool} " if call is not None and call.kind == "other" else ""
    object_ = f": {tool}{call.text}" if call is not None and (tool or call.text) else ""
    if state is State.WAITING_APPROVAL:
        return f"waits for an approval{object_}", facts.wants(call, on_screen=on_screen)
    if on_screen is not None and (call is None or call.kind != "question"):
        return f"asks{object_}", facts.shown(on_screen)
    return f"asks{object_}", facts.asks(call.text if call else "")


def approval_of_sub_agent(case: ThreadFacts) -> Assessment | None:
    """Return that a thread below it waits for an approval, whose dialog its own pane shows."""
    asker, reading, session = case.asker, case.reading, case.session
    evidence = []
    if session is not None and session.status == "waiting":
        evidence.append(Evidence(EvidenceSource.SESSION_FILE, session.since, _STATUS_RULE, "status waiting"))
    if reading is not None and reading.state == State.WAITING_APPROVAL:
        evidence.append(facts.screen_evidence(reading))
    if asker is None or not evidence:
        return None
    call, name = asker.open_calls[-1] if asker.open_calls else None, asker.nickname or asker.id
    why, since = f"its sub-agent {name} waits for an approval", evidence[0].at
    asks = Evidence(EvidenceSource.ROLLOUT, since, "sub-agent-asks", f"{name} ({asker.id}) waits for it")
    return Assessment(
        state=State.WAITING_APPROVAL,
        since=since,
        why=f"{why}: {call.text}" if call else why,
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
    if not turn.inferred and not facts.is_heard(reading, "open"):
        return None
    if reading.state == State.FAILED_PROVIDER:
        is_old = case.trouble is not None and case.trouble.at < turn.since
        return None if is_old else facts.assess_screen(reading)
    if case.is_answered_since(reading.at):
        return None  # the menu has not been removed from the screen yet
    return replace(facts.assess_screen(reading), since=_asked_since(case, reading.at))


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
    why = f"wants to run outside the sandbox: {call.text}"
    reason = f" ({call.escalation.reason})" if call.escalation and call.escalation.reason else ""
    text = f"asked to leave the sandbox{reason}: {call.text}"
    found = conclude(
        State.WAITING_APPROVAL, call.at, "open-escalation", why, text=text, fact=facts.wants(call)
    )
    absent = f"no process carries CODEX_TOOL_CALL_ID={call.id}"
    no_process = Evidence(EvidenceSource.PROCESS, call.at, "no-process-for-call", absent)
    return replace(found, evidence=(*found.evidence, no_process))


def half_visible_menu(case: ThreadFacts) -> Assessment | None:
    """Return `unknown` where the pane has no room for a whole menu and no other source knows of it."""
    turn, reading = case.open_turn, case.reading
    if turn is None or reading is None or reading.state is not None or not reading.partial:
        return None
    is_known = case.pushed is not None or any(map(case.process_of, case.thread.open_calls))
    return None if is_known or reading.at < turn.since else facts.assess_half_menu(reading, "its pane")


def requests_without_answer(case: ThreadFacts) -> Assessment | None:
    """Return `failed-provider` for unanswered requests, in files that record no errors (through 0.142)."""
    turn, thread = case.thread.turn, case.thread
    if turn is None or thread.open_calls or turn.error:
        return None
    state, prompt = State.FAILED_PROVIDER, clean_line(thread.last_prompt or "")
    fact = Fact(FactKind.PROVIDER, "no answer to", prompt)
    is_silent = turn.how == "completed" and turn.message is None and not turn.has_result
    records_errors = is_before(thread.version, _ERRORS_RECORDED_SINCE) is False
    if is_silent and thread.last_prompt and not records_errors:
        missing = "no final answer" if turn.answered else "no answer"
        why = f"the turn ended with {missing}; this Codex writes no errors into its file"
        text = "task_complete, last_agent_message null"
        return conclude(state, turn.ended_at, "turn-without-answer", why, text=text, fact=fact)
    if turn.inferred and turn.unanswered >= 2 and case.liveness is not Liveness.ALIVE:
        why = f"the model was asked {turn.unanswered} times and gave nothing new; then the file stops"
        return conclude(state, thread.last_at, "requests-without-answer", why, fact=fact)
    return None


# ---------------------------------------------------------------- what goes on


def owner_gone(case: ThreadFacts) -> Assessment | None:
    """Return `exited` where the turn is open and no process holds the thread any more."""
    turn, call = case.open_turn, case.newest_open_call
    if turn is None or case.liveness is not Liveness.GONE:
        return None
    if turn.inferred and (call is None or turn.message):
        return None  # files without turn marks: an answer may have been the end
    during, has_run = "", False
    if call is not None:
        policy = case.thread.policy_of(call)
        unasked = _RUN_UNASKED if case.thread.agent == "codex" else ("never",)
        has_run = call.escalation is None and policy is not None and policy.approval in unasked
        during = f" while `{call.text}` ran"
        if not has_run:
            during = f"; `{call.text}` was asked for, and whether it was allowed is not known"
    last_at, unowned = case.thread.last_at or turn.since, "no process holds its writer lock or its rollout"
    why = f"its {case.cli} is gone{during}; the turn was never ended"
    evidence = (
        Evidence(EvidenceSource.ROLLOUT, turn.since, "turn-open", "the turn has no end in the file"),
        Evidence(EvidenceSource.PROCESS, last_at, "no-owner", unowned),
    )
    fact = facts.crashed(call, case.thread.last_prompt or "", has_run=has_run)
    return Assessment(State.EXITED, case.ownerless_since, why, evidence, fact)


def beyond_the_record(case: ThreadFacts) -> Assessment | None:
    """Return `running` where its CLI says that it works although no turn is open in its record.

    The record gets a line only when something is complete: nothing marks the beginning of an answer. Claude
    Code ends its turn when only agents in the background work, and begins the next one by itself.
    """
    turn, session, evidence = case.thread.turn, case.session, []
    if case.open_turn is not None:
        return None
    # a file that was not changed by the beginning or the end of the newest turn is an old one; but with
    # agents in the background it stays busy from turn to turn
    is_old = session is None or (turn is not None and session.since < turn.since - _STATUS_LATENESS_S)
    is_rested = turn is None or turn.how != "completed" or case.liveness is not Liveness.ALIVE
    if session is not None and session.status == "busy" and (not is_old or case.thread.children):
        evidence.append(Evidence(EvidenceSource.SESSION_FILE, session.since, _STATUS_RULE, "status busy"))
    elif not case.agents or is_rested or (session is not None and session.status == "idle"):
        return None
    why, fact = "its session file: status busy", facts.WORKS
    if case.agents:
        why = f"waits for {case.agents} background agent{'s' * (case.agents != 1)}"
        fact = Fact(FactKind.WORK, why)
    if case.agents and turn is not None:
        text = f"{case.agents} of the agents that it started have an open turn"
        at = turn.ended_at or turn.since
        evidence.append(Evidence(EvidenceSource.ROLLOUT, at, "agents-open", text))
    return Assessment(State.RUNNING, evidence[0].at, why, tuple(evidence), fact)


def resting_by_session_file(case: ThreadFacts) -> Assessment | None:
    """Return how it rests where its session file has been idle since the newest line of an open turn: an
    interrupted request may leave no line."""
    session, turn = case.session, case.open_turn
    if session is None or session.status != "idle" or turn is None:
        return None
    if session.since < (case.thread.last_at or 0.0):
        return None
    reading = _reading_since(case, turn.since)
    if reading is not None and facts.is_heard(reading, "idle"):
        return facts.assess_screen(reading)
    why, source = "its session file: status idle", EvidenceSource.SESSION_FILE
    fact = facts.done(turn.message or "")
    return conclude(State.COMPLETED, session.since, _STATUS_RULE, why, source, fact=fact)


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
        open_call = f"`{call.text}` is open" if call.text else f"{call.tool} is open"
        open_call = "waiting for its children" if call.kind == "wait" else open_call
        why = f"{open_call} since the turn's last call"
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


def _newest_trouble(case: ThreadFacts, since: float) -> Evidence | None:
    """Return the failed request since a time after which it tries again: by its screen, or by Codex's log
    where no screen shows anything.

    Failed requests leave no line in the rollout; a newer line in it means that a request has succeeded since.
    """
    reading, trouble = case.reading, case.trouble
    if trouble is None or trouble.at < since:
        return None
    if reading is not None and reading.state is not None:
        return facts.screen_evidence(reading) if reading.is_retrying and reading.at >= since else None
    is_outdated = case.processes_at is not None and case.processes_at - trouble.at > _LOGGED_FAILURE_VALID_S
    is_logged = trouble.source is EvidenceSource.CODEX_LOG
    if not is_logged or is_outdated or trouble.at < (case.thread.last_at or 0.0):
        return None
    return facts.trouble_evidence(trouble)


# ---------------------------------------------------------------- how a turn failed


def stopped_while_failing(case: ThreadFacts) -> Assessment | None:
    """Return `failed-provider` for a turn that was aborted while its requests failed."""
    turn, trouble = case.thread.turn, case.trouble
    if turn is None or turn.how != "aborted" or turn.error or trouble is None or trouble.at < turn.since:
        return None
    if any(m.at > trouble.at for m in case.thread.moments if m.kind in ("message", "call")):
        return None  # the model had answered after that
    if trouble.over is not None and (turn.ended_at or 0.0) - trouble.over > facts.RECOVERY_S:
        return None
    at, reason = turn.ended_at or trouble.at, turn.reason or "turn_aborted"
    aborted = Evidence(EvidenceSource.ROLLOUT, at, "turn-aborted", reason)
    return facts.stopped_while_failing(trouble, turn.ended_at, aborted)


def turn_failed(case: ThreadFacts) -> Assessment | None:
    """Return the failure that the end of a turn records: completed (0.145+) or aborted (0.160+).

    All but two kinds of `codex_error_info` concern the provider.
    """
    turn = case.thread.turn
    if turn is None or turn.how is None or not turn.error:
        return None
    kind, text, since = turn.error_kind or "other", turn.error, turn.ended_at
    if kind == "sandbox_error":
        why, fact = f"the sandbox failed: {text}", Fact(FactKind.SANDBOX, "sandbox failed:", clean_line(text))
        return conclude(State.BLOCKED_SANDBOX, since, "turn-sandbox-error", why, text=text, fact=fact)
    if kind == "too_many_denials":
        stopped = "stopped after too many denials:"
        why, fact = f"{stopped} {text}", Fact(FactKind.REFUSED, stopped, text)
        return conclude(State.FAILED_PERMISSION, since, "turn-denials", why, text=text, fact=fact)
    fact, quote = facts.provider(text), f"{kind}: {text}"
    return conclude(State.FAILED_PROVIDER, since, "turn-error", text, text=quote, fact=fact)


def turn_aborted(case: ThreadFacts) -> Assessment | None:
    """Return `interrupted` for a turn that was aborted without an error."""
    turn = case.thread.turn
    if turn is None or turn.how != "aborted":
        return None
    by = f" ({turn.reason})" if turn.reason and turn.reason != "interrupted" else ""
    waited = (turn.ended_at or turn.since) - turn.since
    is_slow = not turn.answered and waited >= _SLOW_ANSWER_S
    silent = f"; the model had not answered for {waited:.0f} s" if is_slow else ""
    why, text = f"interrupted{by}{silent}", turn.reason or "turn_aborted"
    fact = facts.stopped(f"{by}{silent}".strip(" ();"), turn.message or case.thread.last_prompt or "")
    return conclude(State.INTERRUPTED, turn.ended_at, "turn-aborted", why, text=text, fact=fact)


# ---------------------------------------------------------------- what its last attempt came to


def last_attempt_denied(case: ThreadFacts) -> Assessment | None:
    """Return the denial of the last attempt, which nothing that succeeded came after."""
    call = _last_attempt(_attempts(case))
    denial = stopping_denial(case.thread, call) if call is not None else None
    if call is None or denial is None:
        return None
    where = f" {denial.target}" if denial.target else ""
    was = "was denied" if denial.is_certain else "was likely denied"
    return conclude(
        State.BLOCKED_SANDBOX,
        call.ended_at or call.at,
        f"denied-{denial.what}",
        f"its last {_in_words(call)} {was}{where}: {denial.quote}",
        denial.source,
        f"`{call.text}` -> {denial.quote}",
        facts.denied(denial, call.text),
    )


def last_attempt_refused(case: ThreadFacts) -> Assessment | None:
    """Return the refusal of the last attempt, which nothing that succeeded came after.

    An answer ends a turn well in spite of that, unless nothing that the turn tried was allowed.
    """
    turn, attempts = case.thread.turn, _attempts(case)
    call = _last_attempt(attempts)
    by = _REFUSERS.get(call.outcome or "") if call is not None else None
    if turn is None or call is None or by is None:
        return None
    if turn.message and not all(each.outcome in _REFUSED_AT_ALL for each in attempts):
        return None
    what = f"{call.tool} {call.text}" if call.is_mcp else call.text
    return conclude(
        State.FAILED_PERMISSION,
        call.ended_at or call.at,
        call.outcome or "refused",
        f"its last {_in_words(call)} was refused by {by}: {what}",
        text=f"`{what}` -> {call.output}",
        fact=Fact(FactKind.REFUSED, f"refused by {by}:", clean_line(what), ObjectForm.COMMAND),
    )


def _attempts(case: ThreadFacts) -> list[Call]:
    """Return what the model tried to do in a turn that is over; looking around and planning do not count."""
    turn = case.thread.turn
    if turn is None or (turn.ended_at is None and not turn.inferred):
        return []
    by_model = (call for call in case.thread.calls if turn.has(call) and not call.by_user)
    return [call for call in by_model if call.kind in ("command", "patch") or call.is_mcp]


def _last_attempt(attempts: Sequence[Call]) -> Call | None:
    """Return the newest command or patch, or MCP call that was stopped and not repeated."""
    repeated: set[str] = set()
    for call in reversed(attempts):
        is_stopped = bool(call.denial) or call.outcome in _REFUSERS
        if not call.is_mcp or (is_stopped and call.tool not in repeated):
            return call
        repeated.add(call.tool)
    return None


def _in_words(call: Call) -> str:
    return "MCP call" if call.is_mcp else "command"


# ---------------------------------------------------------------- at rest


def asks_in_text(case: ThreadFacts) -> Assessment | None:
    """Return `waiting-input` where its last message ends with a question that can be answered.

    Of 1,099 threads of other people 32 end so: 9 need an answer, 23 offer more work.
    """
    turn, thread = case.thread.turn, case.thread
    if turn is None or not (turn.how == "completed" or (turn.inferred and not thread.open_calls)):
        return None
    question = question_of(turn.message or "") if case.can_be_answered else ""
    return facts.asks_in_text(question, turn.ended_at or thread.last_at) if question else None


def turn_complete(case: ThreadFacts) -> Assessment | None:
    """Return `completed` for a turn that was completed without an error."""
    turn = case.thread.turn
    if turn is None or turn.how != "completed":
        return None
    background = [call for call in case.thread.calls if _goes_on(case, call)]
    note = f"; `{background[-1].text}` goes on in the background" if background else ""
    why = f"finished{note}{_refusals(case)}"
    if question := question_of(turn.message or ""):
        why = f"{why}; it ended with a question: {clean_line(question)}"
    text, fact = turn.message or "task_complete", facts.done(turn.message or "")
    return conclude(State.COMPLETED, turn.ended_at, "turn-complete", why, text=text, fact=fact)


def _refusals(case: ThreadFacts) -> str:
    """Return a note of what was refused in a turn that went on, or nothing."""
    turn, calls = case.thread.turn, case.thread.calls
    refused = [call for call in calls if call.outcome in _REFUSERS and turn is not None and turn.has(call)]
    if not refused:
        return ""
    last, more = refused[-1], len(refused) - 1
    others = f", and {more} more call{'s' * (more > 1)}" if more else ""
    return f"; `{last.text or last.tool}` was refused by {_REFUSERS[last.outcome or '']}{others}"


def _goes_on(case: ThreadFacts, call: Call) -> bool:
    """Return whether a command that was left in the background is alive: a process that began with it."""
    if call.outcome != "running" or call.ended_at is None:
        return False
    first, last = call.at - _CLOCKS_DIFFER_S, call.ended_at + _CLOCKS_DIFFER_S
    return any(first <= process.key.started <= last for process in case.commands)


def last_message(case: ThreadFacts) -> Assessment | None:
    """Return the state without turn marks (Codex through 0.98): a message that no call follows ends a turn.

    A call before it that is still open may run on, as long as anybody is there to read its output.
    """
    turn, thread = case.thread.turn, case.thread
    if turn is None or not turn.inferred:
        return None
    if thread.open_calls and (not turn.message or case.liveness is Liveness.ALIVE):
        return None
    if turn.message:
        why, fact = f"the model has given its answer{_refusals(case)}", facts.done(turn.message)
        return conclude(State.COMPLETED, thread.last_at, "last-message", why, text=turn.message, fact=fact)
    if case.liveness is not Liveness.GONE:
        return None
    why, since = f"its {case.cli} is gone before the model answered", case.ownerless_since
    text = "the file ends without an answer, and no process holds it"
    fact = facts.crashed(None, thread.last_prompt or "")
    return conclude(State.EXITED, since, "no-owner", why, EvidenceSource.PROCESS, text, fact)


def no_turn_yet(case: ThreadFacts) -> Assessment | None:
    """Return the state of a thread without a turn, as far as its liveness is known."""
    thread = case.thread
    if thread.turn is not None or case.liveness is Liveness.UNKNOWN:
        return None
    if case.liveness is Liveness.ALIVE:
        why = "has not been given anything yet"
        return conclude(State.WAITING_INPUT, thread.created_at, "no-turn", why, fact=facts.IDLE)
    if not thread.lines and thread.file is not None:
        problem = without_record(thread.file.size)
        why, fact = f"its file is {problem}", facts.unclear("its file is", problem)
        return conclude(State.UNREACHABLE, thread.file.modified, "no-session-log", why, fact=fact)
    why = f"its {case.cli} is gone; nothing was asked of it"
    fact, source = facts.ended("nothing was asked of it", in_a_turn=False), EvidenceSource.PROCESS
    return conclude(State.EXITED, case.ownerless_since, "no-owner", why, source, fact=fact)


PRECEDENCE: Final[tuple[Callable[[ThreadFacts], Assessment | None], ...]] = (
    # what stops it, or makes it wait
    unreadable_rollout,
    waiting_by_feed,
    approval_of_sub_agent,
    approval_in_pane_of_session,
    waiting_by_session_file,
    open_question_or_permission,
    prompt_or_end_on_screen,
    escalation_without_process,
    half_visible_menu,
    requests_without_answer,
    # what is going on
    owner_gone,
    beyond_the_record,
    resting_by_session_file,
    turn_open,
    # how it ended
    stopped_while_failing,
    turn_failed,
    turn_aborted,
    last_attempt_denied,
    asks_in_text,
    last_attempt_refused,
    turn_complete,
    last_message,
    no_turn_yet,
)
"""The rules in order of precedence: the first one that applies decides the state."""


def judge_thread(case: ThreadFacts) -> Assessment:
    """Return the state of a thread, with its evidence."""
    concluded = (rule(case) for rule in PRECEDENCE)
    found = next((assessment for assessment in concluded if assessment is not None), None)
    return found or Assessment(State.UNKNOWN, None, "the rollout does not decide it")
