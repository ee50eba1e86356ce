"""Reduce the events of one thread: what the lines of its rollout add up to."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentdash.engine.detect import platform
from agentdash.engine.reduce.calls import (
    abort_open_calls,
    add_moment,
    add_violation,
    drop_calls_without_output,
    end_call,
    start_call,
)
from agentdash.model import events as e
from agentdash.model.policy import Policy, with_grants
from agentdash.model.prompts import asked
from agentdash.model.thread import GRANT, GRANT_ENDED, Moment, PolicyPeriod, Thread, Tokens, Turn
from agentdash.model.times import DAY_S
from agentdash.model.versions import is_before

_MAX_POLICY_LINES: Final = 64
"""Times of lines that state a policy: the newest processes of a thread are compared with them."""
_MAX_SKIP_REASONS: Final = 20
"""Counted separately: a damaged or hostile file names a new type in each line."""
_MAX_GRANTS: Final = 64
"""Kept of a thread, the newest."""
_STATED_AT_START: Final = (
    *("agent", "cwd", "version", "originator", "source", "parent", "forked_from"),
    *("nickname", "role", "side_chat", "helper"),
)
"""Fields of a thread that its first line states."""
_STATED_AT_END: Final = ("how", "message", "reason", "error", "error_kind", "has_result")
"""Fields of a turn that its last line states."""
_OTHER_REASONS: Final = "for other reasons"
_TURNS_MARKED_SINCE: Final = (0, 99)
"""First Codex that writes where turns begin and end."""


def reduce_thread(thread: Thread, event: e.ThreadEvent, home: str | None = None) -> Thread:
    """Return `thread` after `event`.

    Args:
        thread: before.
        event: one of this thread.
        home: the home directory of its commands, where it is known.
    """
    match event:
        case e.FileSeen():
            return replace(thread, file=replace(event, at=event.modified))  # whenever it was looked at
        case e.FileReset():
            return _reset(thread)
        case e.FileGapSkipped():
            return _skip_gap(thread, event)
        case e.ThreadNamed(name=name):
            return replace(thread, name=name)
        case e.ViolationLogged():
            return add_violation(thread, event)
        case e.TroubleLogged():
            return replace(thread, trouble=event)
        case e.LineSkipped():
            return _count_skipped(thread, event)
    if thread.open_calls and _starts_turn(thread, event):  # its process has died, and it was resumed
        thread = abort_open_calls(thread, thread.last_at or event.at)
    last_at = max(thread.last_at or 0.0, event.at)
    thread = replace(thread, last_at=last_at, lines=max(thread.lines, event.line))
    return _reduce_line(thread, event, home)


def _reduce_line(thread: Thread, event: e.ThreadEvent, home: str | None) -> Thread:
    """Apply an event that is a line of the rollout, and so a sign of activity."""
    match event:
        case e.ThreadStarted():
            return _start(thread, event)
        case e.TurnStarted():
            thread = _end_grants(_apply_choice(thread, event), event)
            thread = replace(thread, turn=Turn(event.at, line=event.line), turns=thread.turns + 1)
            return add_moment(thread, Moment(event.at, "turn", "started"))
        case e.TurnEnded():
            return _end_grants(_apply_choice(_end_turn(thread, event), event), event)
        case e.PolicySet():
            return _set_policy(thread, event)
        case e.CallStarted():
            return start_call(thread, event)
        case e.CallEnded():
            return _grant(end_call(thread, event, home), event)
        case e.SandboxFailed():
            return replace(thread, sandbox_failed=event)
        case e.ChildSpawned(child=child):
            return thread if child in thread.children else replace(thread, children=(*thread.children, child))
        case e.MessageLogged(role="user"):
            return _add_prompt(thread, event)
        case e.MessageLogged():
            return _add_message(thread, event)
        case e.TokensCounted():
            return replace(thread, tokens=_merge_tokens(thread.tokens, event))
    return thread


# ---------------------------------------------------------------- the file


def _reset(thread: Thread) -> Thread:
    """Forget what the file contained; what other sources added stays."""
    return Thread(
        id=thread.id, file=thread.file, name=thread.name, violations=thread.violations, trouble=thread.trouble
    )


def _skip_gap(thread: Thread, event: e.FileGapSkipped) -> Thread:
    """Open a turn: files with turn marks contain the end of the turn that the tail belongs to. Its prompt is
    not known, unless the turn began before the gap."""
    is_unmarked = thread.agent == "codex" and is_before(thread.version, _TURNS_MARKED_SINCE) is True
    inferred = is_unmarked if thread.turn is None else thread.turn.inferred
    if event.same_turn and not inferred:
        return replace(thread, open_calls=())
    turn = Turn(thread.last_at or event.at, inferred=inferred)
    return replace(thread, open_calls=(), turn=turn, last_prompt=None)


def _count_skipped(thread: Thread, event: e.LineSkipped) -> Thread:
    skipped = dict(thread.skipped)
    reason = event.reason if event.reason in skipped or len(skipped) < _MAX_SKIP_REASONS else _OTHER_REASONS
    skipped[reason] = skipped.get(reason, 0) + event.count
    return replace(thread, skipped=tuple(skipped.items()))


# ---------------------------------------------------------------- its lines


def _start(thread: Thread, event: e.ThreadStarted) -> Thread:
    stated = {name: getattr(event, name) for name in _STATED_AT_START}
    return replace(thread, created_at=event.at, platform=platform(event.cwd or ""), **stated)


def _set_policy(thread: Thread, event: e.PolicySet) -> Thread:
    """Begin a policy period where the policy differs; each `turn_context` in an open turn is a request to the
    model.

    A turn keeps the policy of its `turn_context`: what is chosen meanwhile counts from its end on (0.169).
    """
    turn = thread.turn
    if event.origin == "turn_context" and turn is not None and turn.ended_at is None:
        turn = replace(turn, unanswered=turn.unanswered + 1)
    lines = thread.policy_lines if event.policy is None else (*thread.policy_lines, event.at)
    thread = replace(
        thread,
        turn=turn,
        cwd=event.cwd or thread.cwd,
        model=event.model or thread.model,
        policy_lines=lines[-_MAX_POLICY_LINES:],
    )
    if event.policy is None:
        return thread
    has_asked = turn is not None and turn.ended_at is None and (turn.unanswered > 0 or turn.answered)
    if event.origin == "thread_settings_applied" and turn is not None and has_asked:
        stated = thread.policies[-1].stated if thread.policies else None
        chosen = None if event.policy == stated else event.policy
        return replace(thread, turn=replace(turn, next_policy=chosen))
    return _begin_period(thread, event, policy=event.policy, origin=event.origin)


def _apply_choice(thread: Thread, event: e.TurnStarted | e.TurnEnded) -> Thread:
    """Put the policy in force that was chosen during the turn that is over."""
    turn = thread.turn
    if turn is None or turn.next_policy is None:
        return thread
    thread = replace(thread, turn=replace(turn, next_policy=None))
    return _begin_period(thread, event, policy=turn.next_policy, origin="thread_settings_applied")


def _grant(thread: Thread, event: e.CallEnded) -> Thread:
    """Add what was granted on request to the policy in force."""
    if event.grant is None or not thread.policies:
        return thread
    thread = replace(thread, grants=(*thread.grants, event.grant)[-_MAX_GRANTS:])
    return _begin_period(thread, event, policy=thread.policies[-1].stated, origin=GRANT)


def _end_grants(thread: Thread, event: e.TurnStarted | e.TurnEnded) -> Thread:
    """End the grants of the turn that is over; all of them where its process ended in it.

    Those of the session end with its process (0.171), which the log does not show.
    """
    turn = thread.turn
    if not thread.grants or not thread.policies:
        return thread
    has_died = isinstance(event, e.TurnStarted) and turn is not None and turn.ended_at is None
    kept = () if has_died else tuple(grant for grant in thread.grants if grant.scope == "session")
    thread = replace(thread, grants=tuple(replace(grant, earlier=True) for grant in kept))
    return _begin_period(thread, event, policy=thread.policies[-1].stated, origin=GRANT_ENDED)


def _begin_period(thread: Thread, event: e.ThreadEvent, *, policy: Policy, origin: str) -> Thread:
    """Begin a period with a policy that the log states, and with what was granted beyond it."""
    before = thread.policy
    stated, policy = policy, with_grants(policy, thread.grants)
    if policy == before and stated == thread.policies[-1].stated:
        return thread
    base = None if policy == stated else stated
    known = (period.policy for period in thread.policies if period.policy == policy)
    policy = next(known, policy)  # of many changes there and back few policies are kept
    period = PolicyPeriod(since=event.at, policy=policy, line=event.line, origin=origin, base=base)
    thread = replace(thread, policies=(*thread.policies, period))
    if before is None:
        return thread
    text = "policy changed in detail"
    if before.brief() != policy.brief():
        text = f"policy {before.brief()} -> {policy.brief()}"
    return add_moment(thread, Moment(event.at, "policy", text))


def _starts_turn(thread: Thread, event: e.ThreadEvent) -> bool:
    """Return whether a turn starts: in a file without turn marks (0.98 and older) each prompt starts one."""
    match event:
        case e.TurnStarted():
            return True
        case e.MessageLogged(role="user"):
            turn = thread.turn
            return turn is None or turn.inferred or turn.ended_at is not None
    return False


def _add_prompt(thread: Thread, event: e.MessageLogged) -> Thread:
    """Add a user message, which may start a turn."""
    is_start = _starts_turn(thread, event)
    thread = add_moment(thread, Moment(event.at, "prompt", event.text))
    if is_start:
        thread = replace(thread, turn=Turn(event.at, inferred=True, line=event.line), turns=thread.turns + 1)
    return replace(thread, prompt=thread.prompt or asked(event.text), last_prompt=event.text)


def _add_message(thread: Thread, event: e.MessageLogged) -> Thread:
    """Add a message of the model. One that repeats while requests are unanswered is not an answer."""
    thread = add_moment(drop_calls_without_output(thread, event.at), Moment(event.at, "message", event.text))
    turn = thread.turn
    if turn is not None:
        is_repeated = turn.message == event.text and turn.unanswered > 0
        unanswered = turn.unanswered if is_repeated else 0
        turn = replace(turn, message=event.text, answered=True, unanswered=unanswered)
    return replace(thread, turn=turn, last_message=event.text)


def _end_turn(thread: Thread, event: e.TurnEnded) -> Thread:
    was_ended = thread.turn is not None and thread.turn.how == event.how
    stated = {name: getattr(event, name) for name in _STATED_AT_END}
    turn = replace(thread.turn or Turn(event.at), ended_at=event.at, **stated)
    cause = event.error or event.reason
    text = f"{event.how}: {cause}" if cause else event.how
    if event.error or not was_ended:  # Claude Code may end it with each part of its last answer
        thread = add_moment(thread, Moment(event.at, "trouble" if event.error else "turn", text))
    thread = abort_open_calls(thread, event.at)
    return replace(thread, turn=turn, last_message=event.message or thread.last_message)


def _merge_tokens(old: Tokens, event: e.TokensCounted) -> Tokens:
    """Return the newest known count of each kind; a new day begins with what was used before."""
    names = Tokens.__struct_fields__
    counted = {name: getattr(event, name) for name in names if hasattr(event, name)}
    if (day := int(event.at // DAY_S)) != old.day and event.by_model:
        old = replace(old, day=day, before_day=old.by_model)
    return replace(old, **{name: value for name, value in counted.items() if value not in (None, ())})
