"""The state of a thread: one authority for each fact; the first rule that applies decides.

Each rule has a name, which its evidence carries. Where no rule applies, the state is `unknown`; where what
should be observable is not, `unreachable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from agentdash.engine.judge.states import facts
from agentdash.engine.judge.states.assessments import RECOVERY_S, conclude
from agentdash.engine.judge.states.thread_facts import ThreadFacts, stopping_denial
from agentdash.engine.judge.states.thread_open import (
    approval_in_pane_of_session,
    approval_of_sub_agent,
    beyond_the_record,
    escalation_without_process,
    half_visible_menu,
    open_question_or_permission,
    owner_gone,
    prompt_or_end_on_screen,
    resting_by_session_file,
    turn_open,
    unreadable_rollout,
    waiting_by_feed,
    waiting_by_session_file,
)
from agentdash.model.denials import Denial
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind
from agentdash.model.prompts import question_of
from agentdash.model.sanitize import clean_line
from agentdash.model.states import Liveness, State
from agentdash.model.thread import Call, Thread, Turn, without_record
from agentdash.model.versions import is_before
from agentdash.model.worker import Assessment

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


# ---------------------------------------------------------------- how a turn failed


def stopped_while_failing(case: ThreadFacts) -> Assessment | None:
    """Return `failed-provider` for a turn that was aborted while its requests failed."""
    turn, trouble = case.thread.turn, case.trouble
    if turn is None or turn.how != "aborted" or turn.error or trouble is None or trouble.at < turn.since:
        return None
    if any(m.at > trouble.at for m in case.thread.moments if m.kind in ("message", "call")):
        return None  # the model had answered after that
    if trouble.over is not None and (turn.ended_at or 0.0) - trouble.over > RECOVERY_S:
        return None
    at, reason = turn.ended_at or trouble.at, turn.reason or "turn_aborted"
    why, failed = f"stopped while its provider failed: {trouble.text}", facts.provider(trouble.text)
    aborted = Evidence(EvidenceSource.ROLLOUT, at, "turn-aborted", reason)
    request = Evidence(trouble.source, trouble.at, "request-failed", trouble.text)
    return Assessment(State.FAILED_PROVIDER, turn.ended_at, why, (aborted, request), failed)


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


def requests_without_answer(case: ThreadFacts) -> Assessment | None:
    """Return `failed-provider` for unanswered requests, in files that record no errors (through 0.142)."""
    turn, thread = case.thread.turn, case.thread
    if turn is None or thread.open_calls or turn.error:
        return None
    is_silent = turn.how == "completed" and turn.message is None and not turn.has_result
    records_errors = is_before(thread.version, _ERRORS_RECORDED_SINCE) is False
    if is_silent and thread.last_prompt and not records_errors:
        missing = "no final answer" if turn.answered else "no answer"
        why = f"the turn ended with {missing}; this Codex writes no errors into its file"
        rule, text = "turn-without-answer", "task_complete, last_agent_message null"
        fact = facts.unanswered(thread.last_prompt)
        return conclude(State.FAILED_PROVIDER, turn.ended_at, rule, why, text=text, fact=fact)
    if turn.inferred and turn.unanswered >= 2 and case.liveness is not Liveness.ALIVE:
        why = f"the model was asked {turn.unanswered} times and gave nothing new; then the file stops"
        rule, fact = "requests-without-answer", facts.unanswered(thread.last_prompt or "")
        return conclude(State.FAILED_PROVIDER, thread.last_at, rule, why, fact=fact)
    return None


# ---------------------------------------------------------------- what its last attempt came to


def last_attempt_denied(case: ThreadFacts) -> Assessment | None:
    """Return the denial of the last attempt, which nothing that succeeded came after."""
    call = _last_attempt(_attempts(case.thread))
    denial = stopping_denial(case.thread, call) if call is not None else None
    return _denied(call, denial) if call is not None and denial is not None else None


def last_attempt_refused(case: ThreadFacts) -> Assessment | None:
    """Return the refusal of the last attempt, which nothing that succeeded came after.

    An answer ends a turn well in spite of that, unless nothing that the turn tried was allowed.
    """
    turn, attempts = case.thread.turn, _attempts(case.thread)
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
        fact=facts.refused(what, by),
    )


def _attempts(thread: Thread) -> list[Call]:
    """Return what the model tried to do in a turn that is over; looking around and planning do not count."""
    turn = thread.turn
    if turn is None or (turn.ended_at is None and not turn.inferred):
        return []
    by_model = (call for call in thread.calls if turn.has(call) and not call.by_user)
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


def _denied(call: Call, denial: Denial) -> Assessment:
    where = f" {denial.target}" if denial.target else ""
    was = "was denied" if denial.is_certain else "was likely denied"
    return conclude(
        State.BLOCKED_SANDBOX,
        call.ended_at or call.at,
        f"denied-{denial.what}",
        f"its last {_in_words(call)} {was}{where}: {denial.quote}",
        source=denial.source,
        text=f"`{call.text}` -> {denial.quote}",
        fact=facts.denied(denial, call.text),
    )


# ---------------------------------------------------------------- at rest


def asks_in_text(case: ThreadFacts) -> Assessment | None:
    """Return `waiting-input` where its last message ends with a question that can be answered.

    Of 1,099 threads of other people 32 end so: 9 need an answer, 23 offer more work.
    """
    turn, thread = case.thread.turn, case.thread
    if turn is None or not (turn.how == "completed" or (turn.inferred and not thread.open_calls)):
        return None
    question = question_of(turn.message or "")
    if not question or not case.can_be_answered:
        return None
    since, fact = turn.ended_at or thread.last_at, facts.asks(question)
    why = f"asks: {fact.object}"
    return conclude(State.WAITING_INPUT, since, "asks-in-text", why, text=question, fact=fact)


def turn_complete(case: ThreadFacts) -> Assessment | None:
    """Return `completed` for a turn that was completed without an error."""
    turn = case.thread.turn
    if turn is None or turn.how != "completed":
        return None
    background = [call for call in case.thread.calls if _goes_on(case, call)]
    note = f"; `{background[-1].text}` goes on in the background" if background else ""
    why = f"finished{note}{_refusals(case.thread, turn)}"
    if question := question_of(turn.message or ""):
        why = f"{why}; it ended with a question: {clean_line(question)}"
    text = turn.message or "task_complete"
    fact = facts.done(turn.message or "")
    return conclude(State.COMPLETED, turn.ended_at, "turn-complete", why, text=text, fact=fact)


def _refusals(thread: Thread, turn: Turn) -> str:
    """Return a note of what was refused in a turn that went on, or nothing."""
    refused = [call for call in thread.calls if call.outcome in _REFUSERS and turn.has(call)]
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
    turn = case.thread.turn
    if turn is None or not turn.inferred:
        return None
    if case.thread.open_calls and (not turn.message or case.liveness is Liveness.ALIVE):
        return None
    if turn.message:
        why = f"the model has given its answer{_refusals(case.thread, turn)}"
        fact = facts.done(turn.message)
        return conclude(
            State.COMPLETED, case.thread.last_at, "last-message", why, text=turn.message, fact=fact
        )
    if case.liveness is not Liveness.GONE:
        return None
    why, source = f"its {case.cli} is gone before the model answered", EvidenceSource.PROCESS
    text = "the file ends without an answer, and no process holds it"
    fact = facts.crashed(None, case.thread.last_prompt or "")
    return conclude(State.EXITED, case.ownerless_since, "no-owner", why, source=source, text=text, fact=fact)


def no_turn_yet(case: ThreadFacts) -> Assessment | None:
    """Return the state of a thread without a turn, as far as its liveness is known."""
    thread = case.thread
    if thread.turn is not None or case.liveness is Liveness.UNKNOWN:
        return None
    if case.liveness is Liveness.ALIVE:
        why = "has not been given anything yet"
        return conclude(State.WAITING_INPUT, thread.created_at, "no-turn", why, fact=facts.idle())
    if not thread.lines and thread.file is not None:
        problem = without_record(thread.file.size)
        why, fact = f"its file is {problem}", facts.unclear("its file is", problem)
        return conclude(State.UNREACHABLE, thread.file.modified, "no-session-log", why, fact=fact)
    why = f"its {case.cli} is gone; nothing was asked of it"
    fact, source = facts.ended("nothing was asked of it", in_a_turn=False), EvidenceSource.PROCESS
    return conclude(State.EXITED, case.ownerless_since, "no-owner", why, source=source, fact=fact)


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
