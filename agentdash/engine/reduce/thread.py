"""One thread, one event further: what a rollout's lines add up to."""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from agentdash.engine.detect.denials import denial
from agentdash.engine.detect.env_output import flags, platform, restraints
from agentdash.engine.detect.escalation import granted
from agentdash.model import events as e
from agentdash.model.fleet import (
    Call,
    Denial,
    Moment,
    PolicyPeriod,
    RolloutFile,
    SandboxObservation,
    Thread,
    Tokens,
    Turn,
)
from agentdash.model.policy import Filesystem, Network, Policy, Rule

_SOME_SANDBOX: Final = Policy(Filesystem.READ_ONLY, Network.UNKNOWN, (Rule("/", "read"),))
"""For files that state no policy, where Codex itself says that its sandbox denied a command (through 0.36)."""
_READ_ONLY: Final = "read_only_file_system"
"""The one reason in Codex's log that no plain failure looks like."""
_T = TypeVar("_T")

CALLS: Final = 100
"""Ended calls kept of a thread."""
MOMENTS: Final = 200
"""Timeline entries kept."""
MAX_OBSERVATIONS: Final = 64
"""Distinct sightings kept; equal ones are counted, so few threads have more than five."""
_TAIL: Final = 1_500
"""Characters kept of a call's output."""
VIOLATIONS: Final = 50
"""Logged violations kept."""
_NEWEST: Final = 8
"""Call ids and pids kept of a sighting."""


def advance(thread: Thread, event: e.ThreadEvent) -> Thread:
    """`thread` after `event`."""
    match event:
        case e.FileSeen():
            file = RolloutFile(
                event.path,
                event.size,
                event.modified,
                event.archived,
                event.compressed,
                event.skimmed,
                unreadable=event.unreadable,
            )
            return replace(thread, file=file)
        case e.FileReset():
            return Thread(
                thread.id,
                file=thread.file,
                name=thread.name,
                violations=thread.violations,
                trouble=thread.trouble,
            )
        case e.ViolationLogged():
            return _violated(thread, event)
        case e.TroubleLogged():
            return replace(thread, trouble=event)
        case e.FileGapSkipped():
            # files with turn marks say when the turn of the tail ends; until then it is open
            turn = Turn(thread.last_at or event.at, inferred=thread.turn is not None and thread.turn.inferred)
            return replace(thread, open_calls=(), turn=turn)
        case e.ThreadNamed(name=name):
            return replace(thread, name=name)
        case e.LineSkipped():
            skipped = dict(thread.skipped)
            key = f"{event.what} {event.detail}" if event.what == "unknown" else event.what
            skipped[key] = skipped.get(key, 0) + 1
            return replace(thread, skipped=tuple(skipped.items()))
    thread = replace(
        thread, last_at=max(thread.last_at or 0.0, event.at), lines=max(thread.lines, event.line)
    )
    match event:
        case e.ThreadStarted():
            return _started(thread, event)
        case e.TurnStarted():
            thread = replace(thread, turn=Turn(event.at, event.turn), turns=thread.turns + 1)
            return _note(thread, Moment(event.at, "turn", "started"))
        case e.TurnEnded():
            return _turn_ended(thread, event)
        case e.PolicySet():
            return _policy_set(thread, event)
        case e.CallStarted():
            return _call_started(thread, event)
        case e.CallEnded():
            return _call_ended(thread, event)
        case e.ChildSpawned(child=child):
            return thread if child in thread.children else replace(thread, children=(*thread.children, child))
        case e.MessageLogged():
            return _said(thread, event)
        case e.TokensCounted():
            return replace(thread, tokens=_tokens(thread.tokens, event))
    return thread


def policy_at(thread: Thread, at: float) -> int:
    """Index of the policy in force at a time; -1 before the first."""
    index = -1
    for i, period in enumerate(thread.policies):
        if period.since <= at:
            index = i
    return index if index >= 0 or not thread.policies else 0


def policy_of(thread: Thread, call: Call) -> Policy | None:
    """The policy in force when a call was made."""
    return thread.policies[i].policy if (i := policy_at(thread, call.at)) >= 0 else None


def see(thread: Thread, new: SandboxObservation) -> Thread:
    """Adds a sighting: one that equals an earlier one is counted there."""
    for i, old in enumerate(thread.observations):
        if _same(old, new):
            merged = replace(
                old,
                last=max(old.last, new.last),
                count=old.count + (not new.pids or new.pids[0] not in old.pids),
                calls=_newest(old.calls, new.calls),
                pids=_newest(old.pids, new.pids),
            )
            return replace(
                thread, observations=(*thread.observations[:i], *thread.observations[i + 1 :], merged)
            )
    return replace(thread, observations=(*thread.observations, new)[-MAX_OBSERVATIONS:])


def _same(a: SandboxObservation, b: SandboxObservation) -> bool:
    def essence(s: SandboxObservation) -> SandboxObservation:
        return replace(s, first=0.0, last=0.0, count=0, calls=(), pids=(), quote="")

    return essence(a) == essence(b)


def _newest(old: tuple[_T, ...], new: tuple[_T, ...]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys((*old, *new)))[-_NEWEST:]


def _note(thread: Thread, moment: Moment) -> Thread:
    return replace(thread, moments=(*thread.moments, moment)[-MOMENTS:])


def _started(thread: Thread, event: e.ThreadStarted) -> Thread:
    return replace(
        thread,
        created_at=event.at,
        cwd=event.cwd,
        version=event.version,
        originator=event.originator,
        source=event.source,
        provider=event.provider,
        parent=event.parent,
        forked_from=event.forked_from,
        nickname=event.nickname,
        role=event.role,
        path=event.path,
        helper=event.helper,
        platform=platform(event.cwd or ""),
    )


def _policy_set(thread: Thread, event: e.PolicySet) -> Thread:
    turn = thread.turn
    if event.origin == "turn_context" and turn is not None and turn.ended_at is None:
        turn = replace(turn, unanswered=turn.unanswered + 1)
    thread = replace(
        thread,
        turn=turn,
        cwd=event.cwd or thread.cwd,
        model=event.model or thread.model,
        effort=event.effort or thread.effort,
    )
    now = thread.policy
    if event.policy is None or event.policy == now:
        return thread
    period = PolicyPeriod(event.at, event.policy, event.line, event.origin, turn.id if turn else None)
    if now is None:
        return replace(thread, policies=(period,))
    text = (
        f"policy {now.brief()} -> {event.policy.brief()}"
        if now.brief() != event.policy.brief()
        else "policy changed in detail"
    )
    return _note(replace(thread, policies=(*thread.policies, period)), Moment(event.at, "policy", text))


def _said(thread: Thread, event: e.MessageLogged) -> Thread:
    thread = _note(thread, Moment(event.at, "prompt" if event.who == "user" else "message", event.text))
    if event.who == "user":
        turn = thread.turn
        if (
            turn is None or turn.inferred or turn.ended_at is not None
        ):  # no turn marks in this file: the prompt begins one
            thread = replace(thread, turn=Turn(event.at, inferred=True), turns=thread.turns + 1)
        return replace(thread, prompt=thread.prompt or event.text, last_prompt=event.text)
    repeated = thread.turn is not None and thread.turn.message == event.text and thread.turn.unanswered > 0
    turn = None if thread.turn is None else replace(thread.turn, message=event.text, answered=True)
    if turn is not None and not repeated:
        turn = replace(turn, unanswered=0)
    return replace(thread, turn=turn, last_message=event.text)


def _call_started(thread: Thread, event: e.CallStarted) -> Thread:
    call = Call(
        event.call,
        event.at,
        event.line,
        event.kind,
        event.tool,
        event.text,
        event.cwd or thread.cwd,
        event.escalation,
        event.by_user,
    )
    thread = _answered(replace(thread, open_calls=(*(c for c in thread.open_calls if c.id != call.id), call)))
    if event.kind == "command" and "tmux" in event.text:
        thread = replace(thread, tmux=_newest(thread.tmux, (event.call,)))
    return thread if event.kind == "poll" else _note(thread, Moment(event.at, "call", event.text, event.call))


def _answered(thread: Thread) -> Thread:
    if thread.turn is None or thread.turn.ended_at is not None:
        return thread
    return replace(thread, turn=replace(thread.turn, answered=True, unanswered=0, message=None))


def _call_ended(thread: Thread, event: e.CallEnded) -> Thread:
    call = next((c for c in thread.open_calls if c.id == event.call), None)
    # one that went on in the background ends a second time
    earlier = next((c for c in reversed(thread.calls) if c.id == event.call), None) if call is None else None
    known = call or earlier or Call(event.call, event.at, event.line, "other", "", "")
    ended = replace(
        known,
        ended_at=event.at,
        outcome=event.outcome,
        exit_code=event.exit_code,
        tail=event.output[-_TAIL:],
        session=event.session or known.session,
        denial=_denial(known, event, policy_of(thread, known)) or _logged(thread.violations, known.id),
    )
    thread = replace(
        thread,
        open_calls=tuple(c for c in thread.open_calls if c.id != ended.id),
        calls=(*(thread.calls if earlier is None else (c for c in thread.calls if c is not earlier)), ended)[
            -CALLS:
        ],
    )
    if thread.platform is None:
        thread = replace(thread, platform=platform(event.output))
    return _see_printed(thread, known, event) if known.kind == "command" else thread


def _see_printed(thread: Thread, known: Call, event: e.CallEnded) -> Thread:
    """Adds what the command printed of its own environment and restraints."""
    found, kernel = flags(known.text, event.output, thread.id), restraints(known.text, event.output)
    if not found and not kernel:
        return thread
    observation = SandboxObservation(
        source="output",
        policy=policy_at(thread, known.at),
        network_flag=found.network,
        sandbox_flag=found.sandbox,
        granted=granted(thread, known),
        by_user=known.by_user,
        seccomp=kernel.seccomp,
        no_new_privs=kernel.no_new_privs,
        sandboxed=kernel.sandboxed,
        first=event.at,
        last=event.at,
        calls=(event.call,),
        quote="; ".join(filter(None, (found.quote, kernel.quote))),
    )
    return see(thread, observation)


def _denial(call: Call, event: e.CallEnded, policy: Policy | None) -> Denial | None:
    if call.kind not in ("command", "patch") or call.by_user:
        return None
    if policy is None and event.outcome == "denied":
        policy = _SOME_SANDBOX
    return denial(call.text, event.output, policy, call.cwd)


def _violated(thread: Thread, event: e.ViolationLogged) -> Thread:
    """The log comes later than the call's end: a denial that its output did not tell is added then."""
    if event in thread.violations:
        return thread
    violations = (*thread.violations, event)[-VIOLATIONS:]
    calls = tuple(
        replace(c, denial=_logged((event,), c.id)) if c.id == event.call and c.denial is None else c
        for c in thread.calls
    )
    return replace(thread, violations=violations, calls=calls)


def _logged(violations: tuple[e.ViolationLogged, ...], call: str) -> Denial | None:
    """The denial of a call that Codex has logged."""
    if (found := next((v for v in reversed(violations) if v.call == call), None)) is None:
        return None
    quote = f"recorded sandbox violation: resource={found.resource} reason={found.reason} path={found.path} host={found.host}"
    certain = (
        found.resource == "network" or found.reason == _READ_ONLY
    )  # of the network its own proxy speaks; of files a command's words
    return Denial(found.resource, quote, found.path, certain=certain, source="log")


def _turn_ended(thread: Thread, event: e.TurnEnded) -> Thread:
    turn = thread.turn or Turn(event.at, event.turn)
    turn = replace(
        turn,
        ended_at=event.at,
        how=event.how,
        message=event.message,
        reason=event.reason,
        error=event.error,
        error_kind=event.error_kind,
    )
    text = event.how + (f": {event.error or event.reason}" if event.error or event.reason else "")
    thread = _note(thread, Moment(event.at, "trouble" if event.error else "turn", text))
    # what the turn left open will not be answered any more; a command in the background keeps its own entry
    left = tuple(replace(c, ended_at=event.at, outcome="aborted") for c in thread.open_calls)
    return replace(
        thread,
        turn=turn,
        open_calls=(),
        calls=(*thread.calls, *left)[-CALLS:],
        last_message=event.message or thread.last_message,
    )


def _tokens(old: Tokens, event: e.TokensCounted) -> Tokens:
    return Tokens(
        old.total if event.total is None else event.total,
        old.context if event.context is None else event.context,
        old.window if event.window is None else event.window,
        old.limit_used if event.limit_used is None else event.limit_used,
        old.limit_resets_at if event.limit_resets_at is None else event.limit_resets_at,
    )
