"""The state of a Codex thread: one authority for each fact; the first rule that applies decides.

Each rule has a name, which its evidence carries. Other sources are attached as corroboration
(`assessments`): they agree with the conclusion or contradict it, and never decide. Where no rule applies,
the state is `unknown`; where what should be observable is not, `unreachable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from agentdash.engine.judge.states import facts as short
from agentdash.engine.judge.states.assessments import (
    RECOVERY_S,
    Corroboration,
    attach_corroboration,
    commands_corroborate,
    conclude,
    feed_corroborates,
    output_corroborates,
    screen_corroborates,
    session_corroborates,
)
from agentdash.engine.judge.states.thread_facts import ThreadFacts, stopping_denial
from agentdash.engine.judge.states.thread_open import (
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


def stopped_while_failing(facts: ThreadFacts) -> Assessment | None:
    """Return `failed-provider` for a turn that was aborted while its requests failed."""
    turn, trouble = facts.thread.turn, facts.trouble
    if turn is None or turn.how != "aborted" or turn.error or trouble is None or trouble.at < turn.since:
        return None
    if any(m.at > trouble.at for m in facts.thread.moments if m.kind in ("message", "call")):
        return None  # the model had answered after that
    if trouble.over is not None and (turn.ended_at or 0.0) - trouble.over > RECOVERY_S:
        return None
    evidence = (
        Evidence(
            source=EvidenceSource.ROLLOUT,
            at=turn.ended_at or trouble.at,
            rule="turn-aborted",
            text=turn.reason or "turn_aborted",
        ),
        Evidence(trouble.source, trouble.at, "request-failed", trouble.text),
    )
    return Assessment(
        state=State.FAILED_PROVIDER,
        since=turn.ended_at,
        why=f"stopped while its provider failed: {trouble.text}",
        evidence=evidence,
        fact=short.provider(trouble.text),
    )


def turn_aborted(facts: ThreadFacts) -> Assessment | None:
    """Return `interrupted`, or the failure that the abort records (0.160+)."""
    turn = facts.thread.turn
    if turn is None or turn.how != "aborted":
        return None
    if turn.error:
        return _failure(turn)
    by = f" ({turn.reason})" if turn.reason and turn.reason != "interrupted" else ""
    waited = (turn.ended_at or turn.since) - turn.since
    slow = not turn.answered and waited >= _SLOW_ANSWER_S
    silent = f"; the model had not answered for {waited:.0f} s" if slow else ""
    return conclude(
        State.INTERRUPTED,
        since=turn.ended_at,
        why=f"its turn was interrupted{by}{silent}",
        rule="turn-aborted",
        text=turn.reason or "turn_aborted",
        fact=short.stopped(f"{by}{silent}".strip(" ();"), turn.message or facts.thread.last_prompt or ""),
    )


def turn_failed(facts: ThreadFacts) -> Assessment | None:
    """Return the failure that a completed turn records (0.145+)."""
    turn = facts.thread.turn
    return _failure(turn) if turn and turn.how == "completed" and turn.error else None


def _failure(turn: Turn) -> Assessment:
    """Return the state of `codex_error_info` (0.145+): all but two kinds concern the provider."""
    kind, text = turn.error_kind or "other", turn.error or "error"
    if kind == "sandbox_error":
        state, why = State.BLOCKED_SANDBOX, f"the sandbox failed: {text}"
        rule, quote = "turn-sandbox-error", text
        fact = Fact(FactKind.SANDBOX, "sandbox failed:", clean_line(text))
    elif kind == "too_many_denials":
        state, why = State.FAILED_PERMISSION, f"stopped after too many denials: {text}"
        rule, quote = "turn-denials", text
        fact = Fact(FactKind.REFUSED, "stopped after too many denials:", text)
    else:
        state, why = State.FAILED_PROVIDER, text
        rule, quote = "turn-error", f"{kind}: {text}"
        fact = short.provider(text)
    return conclude(
        state,
        since=turn.ended_at,
        why=why,
        rule=rule,
        text=quote,
        fact=fact,
    )


def requests_without_answer(facts: ThreadFacts) -> Assessment | None:
    """Return `failed-provider` for unanswered requests, in files that record no errors (through 0.142)."""
    turn, thread = facts.thread.turn, facts.thread
    if turn is None or thread.open_calls or turn.error:
        return None
    silent = turn.how == "completed" and turn.message is None and thread.last_prompt
    if silent and not turn.has_result and not _records_errors(thread):
        missing = "no final answer" if turn.answered else "no answer"
        return conclude(
            State.FAILED_PROVIDER,
            since=turn.ended_at,
            why=f"the turn ended with {missing}; this Codex writes no errors into its file",
            rule="turn-without-answer",
            text="task_complete, last_agent_message null",
            fact=short.unanswered(thread.last_prompt or ""),
        )
    if turn.inferred and turn.unanswered >= 2 and facts.liveness is not Liveness.ALIVE:
        return conclude(
            State.FAILED_PROVIDER,
            since=thread.last_at,
            why=f"the model was asked {turn.unanswered} times and gave nothing new; then the file stops",
            rule="requests-without-answer",
            fact=short.unanswered(thread.last_prompt or ""),
        )
    return None


def _records_errors(thread: Thread) -> bool:
    """Return whether this version of Codex writes a failed turn's error into its rollout."""
    return is_before(thread.version, _ERRORS_RECORDED_SINCE) is False


def last_attempt_denied(facts: ThreadFacts) -> Assessment | None:
    """Return the denial or refusal of the last attempt, which nothing that succeeded came after."""
    turn = facts.thread.turn
    if turn is None or (turn.ended_at is None and not turn.inferred):
        return None
    call = _last_attempt(facts.thread, turn)
    if call is None:
        return None
    if (denial := stopping_denial(facts.thread, call)) is not None:
        return _denied(call, denial)
    by = _REFUSERS.get(call.outcome or "")
    return _refused(call, by) if by else None


def _last_attempt(thread: Thread, turn: Turn) -> Call | None:
    """Return the model's newest command, patch, or denied MCP call that was not repeated, of this turn."""
    repeated: set[str] = set()
    for call in reversed(thread.calls):
        if call.by_user or not turn.has(call):
            continue
        if call.kind in ("command", "patch") or (call.is_mcp and call.denial and call.tool not in repeated):
            return call
        repeated.add(call.tool)
    return None


def _denied(call: Call, denial: Denial) -> Assessment:
    where = f" {denial.target}" if denial.target else ""
    was = "was denied" if denial.is_certain else "was likely denied"
    last = "MCP call" if call.is_mcp else "command"
    return conclude(
        State.BLOCKED_SANDBOX,
        since=call.ended_at or call.at,
        why=f"its last {last} {was}{where}: {denial.quote}",
        source=denial.source,
        rule=f"denied-{denial.what}",
        text=f"`{call.text}` -> {denial.quote}",
        fact=short.denied(denial, call.text),
    )


def _refused(call: Call, by: str) -> Assessment:
    return conclude(
        State.FAILED_PERMISSION,
        since=call.ended_at or call.at,
        why=f"its last command was refused by {by}",
        rule=call.outcome or "refused",
        text=f"`{call.text}` -> {call.tail.strip()[:300]}",
        fact=short.refused(call.text, by),
    )


def turn_complete(facts: ThreadFacts) -> Assessment | None:
    """Return `completed` for a turn that was completed without an error."""
    turn = facts.thread.turn
    if turn is None or turn.how != "completed":
        return None
    background = [call for call in facts.thread.calls if _goes_on(facts, call)]
    note = f"; `{background[-1].text}` goes on in the background" if background else ""
    return conclude(
        State.COMPLETED,
        since=turn.ended_at,
        why=f"its turn is complete{note}",
        rule="turn-complete",
        text=turn.message or "task_complete",
        fact=short.done(turn.message or ""),
    )


def _goes_on(facts: ThreadFacts, call: Call) -> bool:
    """Return whether a command that was left in the background is alive: a process that began with it."""
    if call.outcome != "running" or call.ended_at is None:
        return False
    first, last = call.at - _CLOCKS_DIFFER_S, call.ended_at + _CLOCKS_DIFFER_S
    return any(first <= process.key.started <= last for process in facts.commands)


def last_message(facts: ThreadFacts) -> Assessment | None:
    """Return the state without turn marks (through 0.98): a message that no call follows ends a turn."""
    turn = facts.thread.turn
    if turn is None or not turn.inferred or facts.thread.open_calls:
        return None
    if turn.message:
        return conclude(
            State.COMPLETED,
            since=facts.thread.last_at,
            why="the model has given its answer",
            rule="last-message",
            text=turn.message,
            fact=short.done(turn.message),
        )
    if facts.liveness is not Liveness.GONE:
        return None
    return conclude(
        State.EXITED,
        since=facts.ownerless_since,
        why=f"its {facts.cli} is gone before the model answered",
        source=EvidenceSource.PROCESS,
        rule="no-owner",
        text="the file ends without an answer, and no process holds it",
        fact=short.crashed(None, facts.thread.last_prompt or ""),
    )


def no_turn_yet(facts: ThreadFacts) -> Assessment | None:
    """Return the state of a thread without a turn, as far as its liveness is known."""
    if facts.thread.turn is not None:
        return None
    if facts.liveness is Liveness.ALIVE:
        return conclude(
            State.WAITING_INPUT,
            since=facts.thread.created_at,
            why="has not been given anything yet",
            rule="no-turn",
            fact=short.idle(),
        )
    if facts.liveness is Liveness.GONE and not facts.thread.lines and facts.thread.file is not None:
        problem = without_record(facts.thread.file.size)
        return conclude(
            State.UNREACHABLE,
            since=facts.thread.file.modified,
            why=f"its file is {problem}",
            rule="no-session-log",
            fact=short.unclear("its file is", problem),
        )
    if facts.liveness is Liveness.GONE:
        return conclude(
            State.EXITED,
            since=facts.ownerless_since,
            why=f"its {facts.cli} is gone; nothing was asked of it",
            source=EvidenceSource.PROCESS,
            rule="no-owner",
            fact=short.ended("nothing was asked of it", in_a_turn=False),
        )
    return None


PRECEDENCE: Final[tuple[Callable[[ThreadFacts], Assessment | None], ...]] = (
    # what stops it, or makes it wait
    unreadable_rollout,
    waiting_by_feed,
    approval_of_sub_agent,
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
    turn_aborted,
    turn_failed,
    last_attempt_denied,
    turn_complete,
    last_message,
    no_turn_yet,
)
"""The rules in order of precedence: the first one that applies decides the state."""


def judge_thread(facts: ThreadFacts) -> Assessment:
    """Return the state of a Codex thread, with the evidence for and against it."""
    return attach_corroboration(conclude_thread(facts), _corroboration(facts))


def conclude_thread(facts: ThreadFacts) -> Assessment:
    """Return the state of a Codex thread, with the evidence of the authority alone: half of the cost."""
    concluded = (rule(facts) for rule in PRECEDENCE)
    found = next((assessment for assessment in concluded if assessment is not None), None)
    return found or Assessment(State.UNKNOWN, None, "the rollout does not decide it")


def _corroboration(facts: ThreadFacts) -> Iterator[Corroboration]:
    yield from screen_corroborates(facts.reading)
    yield from feed_corroborates(facts.pushed)
    yield from session_corroborates(facts.session)
    yield from commands_corroborate(facts.commands)
    yield from output_corroborates(facts.thread)
