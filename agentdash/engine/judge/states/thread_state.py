"""What a Codex thread is doing, and why: one authority for each fact, and the first that speaks decides (`PRECEDENCE`).

Each rule has a name, which the evidence carries. What other sources say of the same moment is heard too (`judge.witnesses`): it confirms
the conclusion or stands against it, and never decides. Where nothing decides, the state is `unknown`; where what should be seen cannot
be, `unreachable`. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from agentdash.engine.judge.states.corroboration import (
    Corroboration,
    attach_corroboration,
    commands_say,
    feed_says,
    output_says,
    screen_says,
)
from agentdash.engine.judge.states.pane_state import LASTING, half_a_menu, shown
from agentdash.model.events import ScreenRead, StatusPushed
from agentdash.model.evidence import Evidence
from agentdash.model.fleet import Call, ProviderTrouble, Thread, Turn
from agentdash.model.fleet_draft import FleetView
from agentdash.model.links import FleetLinks, ThreadOwner
from agentdash.model.process import Process
from agentdash.model.states import State
from agentdash.model.worker import Assessment

_SETTLING: Final = 1.0
"""Seconds that a process may take to show before its absence counts: a pass over all processes and a fork."""
_SCREEN_KNOWS: Final = (State.WAITING_APPROVAL, State.FAILED_PROVIDER)
"""What a screen may add while a turn is open. Questions are in the rollout; an idle prompt is only a screen that lags behind."""
_OWNERLESS: Final = 3.0
"""Seconds after its newest line from which a thread that nobody holds counts as left: open files are looked at every few passes."""

_TRIED: Final = 60.0
"""Seconds for which a failed request in Codex's log speaks of the present: it would have been tried, and have failed, again."""
_SLOW: Final = 10.0
"""Seconds without a first answer that are worth a word."""


class Case(msgspec.Struct, frozen=True):
    """All that a thread is judged by."""

    thread: Thread
    owner: ThreadOwner | None = None
    orphaned: float | None = None
    """When its owner was seen to have ended."""
    commands: tuple[Process, ...] = ()
    """Live processes of its commands."""
    processes_at: float | None = None
    """When processes were last looked at."""
    reading: ScreenRead | None = None
    """What its pane's screen was read as, where it has a pane."""
    pushed: StatusPushed | None = None
    """What Codex's own feed says, where there is one (0.160+)."""
    trouble: ProviderTrouble | None = None
    """The newest trouble with the provider that was seen while its turn was open."""


def case_of(fleet: FleetView, thread: Thread, links: FleetLinks) -> Case:
    """All that is known for judging a thread."""
    placed = links.panes.get(thread.id)
    pane, occupant = (
        (fleet.panes.get(placed.key), fleet.occupants.get(placed.key)) if placed else (None, None)
    )
    left = (pane is not None and pane.dead) or (occupant is not None and occupant.gone_at is not None)
    return Case(
        thread,
        links.owners.get(thread.id),
        links.orphans.get(thread.id),
        links.commands.get(thread.id, ()),
        fleet.processes_at,
        fleet.readings.get(placed.key) if placed and not left else None,
        fleet.pushed.get(thread.id),
        max(_troubles(fleet, thread), key=lambda trouble: trouble.at, default=None),
    )


def _troubles(fleet: FleetView, thread: Thread) -> Iterator[ProviderTrouble]:
    if (shown := fleet.troubles.get(thread.id)) is not None:
        yield shown
    if (logged := thread.trouble) is not None:
        yield ProviderTrouble(logged.at, "log", logged.text)


def judge_thread(case: Case) -> Assessment:
    """State of a Codex thread."""
    for rule in PRECEDENCE:
        if (assessment := rule.says(case)) is not None:
            return attach_corroboration(assessment, _witnesses(case))
    return Assessment(State.UNKNOWN, None, "the rollout does not tell")


def _witnesses(case: Case) -> Iterator[Corroboration]:
    yield from screen_says(case.reading)
    yield from feed_says(case.pushed)
    yield from commands_say(case.commands)
    yield from output_says(case.thread)


# ---------------------------------------------------------------- rules for threads


def _unreadable(case: Case) -> Assessment | None:
    file = case.thread.file
    if file is None or not file.unreadable:
        return None
    return _assessment(
        State.UNREACHABLE,
        file.modified,
        f"its rollout cannot be read: {file.unreadable}",
        "rollout",
        "rollout-unreadable",
    )


def _pushed(case: Case) -> Assessment | None:
    """Codex's own word on what it waits for: the authority where there is one."""
    if case.pushed is None or case.pushed.status != "active" or not case.pushed.flags:
        return None
    approval = "waitingOnApproval" in case.pushed.flags
    state = State.WAITING_APPROVAL if approval else State.WAITING_INPUT
    call = case.thread.open_calls[-1] if case.thread.open_calls else None
    what = f": {call.text}" if call else ""
    why = f"waits for an approval{what}" if approval else f"asks{what}"
    return _assessment(
        state,
        case.pushed.at,
        why,
        "codex feed",
        "status-pushed",
        f"thread/status/changed {', '.join(case.pushed.flags)}",
    )


def _on_screen(case: Case) -> Assessment | None:
    """What only the screen shows while a turn is open: prompts that write nothing, and trouble with the provider."""
    turn, reading = case.thread.turn, case.reading
    if turn is None or turn.ended_at is not None or reading is None or reading.state not in _SCREEN_KNOWS:
        return None
    if reading.state == State.WAITING_APPROVAL and _was_answered(case, reading.at):
        return None  # the menu has not been taken off the screen yet
    return shown(reading) if reading.at >= turn.since else None


def _logged(case: Case) -> Assessment | None:
    """Codex's log tells of failed requests that leave no line in the rollout; the next line in it means that one has got through."""
    turn, trouble = case.thread.turn, case.trouble
    if turn is None or turn.ended_at is not None or trouble is None or trouble.source != "log":
        return None
    if case.reading is not None and case.reading.state is not None:
        return None  # its screen would tell
    over = case.processes_at is not None and case.processes_at - trouble.at > _TRIED
    if over or trouble.at < turn.since or trouble.at < (case.thread.last_at or 0.0) or _alive(case) is False:
        return None
    return _assessment(
        State.FAILED_PROVIDER,
        trouble.at,
        f"its provider fails, it tries again: {trouble.text}",
        "log",
        "request-failed",
        trouble.text,
    )


def _half_seen(case: Case) -> Assessment | None:
    """No room for the whole of a menu in its pane, and nobody else who would know of it."""
    turn, reading = case.thread.turn, case.reading
    if (
        turn is None
        or turn.ended_at is not None
        or reading is None
        or reading.state is not None
        or not reading.partial
    ):
        return None
    if (
        case.pushed is not None
        or reading.at < turn.since
        or any(_runs(case, call) for call in case.thread.open_calls)
    ):
        return None
    return half_a_menu(reading, "its pane")


def _asks(case: Case) -> Assessment | None:
    if (call := _open(case, "question")) and _alive(case) is not False:
        return _assessment(State.WAITING_INPUT, call.at, f"asks: {call.text}", "rollout", "open-question")
    if (call := _open(case, "permission")) and _alive(case) is not False:
        return _assessment(
            State.WAITING_APPROVAL,
            call.at,
            f"asks for permissions: {call.text}",
            "rollout",
            "open-permission-request",
        )
    return None


def _awaits_approval(case: Case) -> Assessment | None:
    call = next((c for c in case.thread.open_calls if c.escalation and not _runs(case, c)), None)
    if (
        call is None
        or not _alive(case)
        or case.processes_at is None
        or case.processes_at - call.at < _SETTLING
    ):
        return None
    if _was_answered(case, call.at):
        return None
    reason = f" ({call.escalation.reason})" if call.escalation and call.escalation.reason else ""
    evidence = (
        Evidence(
            "rollout", call.at, "open-escalation", f"asked to run outside of the sandbox{reason}: {call.text}"
        ),
        Evidence(
            "process", call.at, "no-process-for-call", f"no process carries CODEX_TOOL_CALL_ID={call.id}"
        ),
    )
    return Assessment(
        State.WAITING_APPROVAL, call.at, f"wants to run outside of the sandbox: {call.text}", evidence
    )


def _left(case: Case) -> Assessment | None:
    turn = case.thread.turn
    if turn is None or turn.ended_at is not None or _alive(case) is not False:
        return None
    if turn.inferred and not case.thread.open_calls:
        return None  # files without turn marks: an answer may have been the end
    call = case.thread.open_calls[-1] if case.thread.open_calls else None
    doing = f" while `{call.text}` ran" if call else ""
    evidence = (
        Evidence("rollout", turn.since, "turn-open", "the turn has no end in the file"),
        Evidence(
            "process",
            case.thread.last_at or turn.since,
            "no-owner",
            "no process holds its writer lock or its rollout",
        ),
    )
    return Assessment(
        State.EXITED, _ownerless_since(case), f"its Codex is gone{doing}; the turn was never ended", evidence
    )


def _works(case: Case) -> Assessment | None:
    turn = case.thread.turn
    if turn is None or turn.ended_at is not None:
        return None
    if turn.inferred and not case.thread.open_calls and (turn.message or _alive(case) is False):
        return None  # files without turn marks: the last word, or the end
    call = case.thread.open_calls[-1] if case.thread.open_calls else None
    running = next((p for c in reversed(case.thread.open_calls) if (p := _runs(case, c))), None)
    evidence = [Evidence("rollout", turn.since, "turn-open", "the turn has begun and not ended")]
    if call:
        evidence.append(Evidence("rollout", call.at, "call-open", f"{call.tool}: {call.text}"))
    if running:
        evidence.append(
            Evidence(
                "process", running.key.started, "process-of-call", f"pid {running.pid} carries the call's id"
            )
        )
    if case.owner:
        evidence.append(Evidence("lock", turn.since, "owner-alive", case.owner.by))
    if call is None:
        why = "turn open, waiting for the model"
    elif running:
        why = f"`{call.text}` is running (pid {running.pid})"
    else:
        why = f"{_waits_for(call)} since the turn's last call"
    return Assessment(State.RUNNING, turn.since, why, tuple(evidence))


def _given_up(case: Case) -> Assessment | None:
    """Somebody stopped it, or it gave up, while its requests failed: that is not ready, whatever its prompt looks like."""
    turn, trouble = case.thread.turn, case.trouble
    if turn is None or turn.how != "aborted" or turn.error or trouble is None or not turn.since <= trouble.at:
        return None
    if any(m.at > trouble.at for m in case.thread.moments if m.kind in ("message", "call")):
        return None  # the model had answered after that
    if trouble.over is not None and (turn.ended_at or 0.0) - trouble.over > LASTING:
        return None
    evidence = (
        Evidence("rollout", turn.ended_at or trouble.at, "turn-aborted", turn.reason or "turn_aborted"),
        Evidence(trouble.source, trouble.at, "request-failed", trouble.text),
    )
    return Assessment(
        State.FAILED_PROVIDER, turn.ended_at, f"stopped while its provider failed: {trouble.text}", evidence
    )


def _interrupted(case: Case) -> Assessment | None:
    turn = case.thread.turn
    if turn is None or turn.how != "aborted":
        return None
    if turn.error:
        return _failed(turn)
    by = f" ({turn.reason})" if turn.reason and turn.reason != "interrupted" else ""
    waited = (turn.ended_at or turn.since) - turn.since
    silent = (
        f"; the model had not answered for {waited:.0f} s" if not turn.answered and waited >= _SLOW else ""
    )
    why = f"its turn was interrupted{by}{silent}"
    return _assessment(
        State.INTERRUPTED, turn.ended_at, why, "rollout", "turn-aborted", turn.reason or "turn_aborted"
    )


def _errored(case: Case) -> Assessment | None:
    turn = case.thread.turn
    return _failed(turn) if turn and turn.how == "completed" and turn.error else None


def _failed(turn: Turn) -> Assessment:
    """`codex_error_info` (0.145+): all but two of its kinds speak of the model or its provider."""
    kind, text = turn.error_kind or "other", turn.error or "error"
    if kind == "sandbox_error":
        return _assessment(
            State.BLOCKED_SANDBOX,
            turn.ended_at,
            f"the sandbox failed: {text}",
            "rollout",
            "turn-sandbox-error",
            text,
        )
    if kind == "too_many_denials":
        return _assessment(
            State.FAILED_PERMISSION,
            turn.ended_at,
            f"stopped after too many denials: {text}",
            "rollout",
            "turn-denials",
            text,
        )
    return _assessment(State.FAILED_PROVIDER, turn.ended_at, text, "rollout", "turn-error", f"{kind}: {text}")


def _retried(case: Case) -> Assessment | None:
    """Provider trouble in files that do not record errors (through 0.142): requests, and nothing new in answer to them."""
    turn = case.thread.turn
    if turn is None or case.thread.open_calls or turn.error:
        return None
    if (
        turn.how == "completed"
        and turn.message is None
        and not _tells_errors(case.thread)
        and case.thread.last_prompt
    ):
        said = "no answer" if not turn.answered else "no final answer"
        text = f"the turn ended with {said}; this Codex writes no errors into its file"
        return _assessment(
            State.FAILED_PROVIDER,
            turn.ended_at,
            text,
            "rollout",
            "turn-without-answer",
            "task_complete, last_agent_message null",
        )
    if turn.inferred and turn.unanswered >= 2 and _alive(case) is not True:
        text = f"the model was asked {turn.unanswered} times and gave nothing new; then the file stops"
        return _assessment(
            State.FAILED_PROVIDER, case.thread.last_at, text, "rollout", "requests-without-answer", text
        )
    return None


def _ended_denied(case: Case) -> Assessment | None:
    """The last thing that was tried was denied, and nothing that came after it succeeded."""
    if case.thread.turn is None or (case.thread.turn.ended_at is None and not case.thread.turn.inferred):
        return None
    call = _last_attempt(case.thread)
    if call is None:
        return None
    at = call.ended_at or call.at
    if call.denial and call.denial.certain and call.exit_code != 0:
        where = f" {call.denial.path}" if call.denial.path else ""
        why = f"its last command was denied{where}: {call.denial.quote}"
        return _assessment(
            State.BLOCKED_SANDBOX,
            at,
            why,
            "output",
            f"denied-{call.denial.what}",
            f"`{call.text}` -> {call.denial.quote}",
        )
    if call.outcome and call.outcome.startswith("refused"):
        by = {
            "refused-by-user": "the user",
            "refused-by-policy": "a rule",
            "refused-by-approval": "the approval policy",
        }[call.outcome]
        why = f"its last command was refused by {by}"
        return _assessment(
            State.FAILED_PERMISSION,
            at,
            why,
            "rollout",
            call.outcome,
            f"`{call.text}` -> {call.tail.strip()[:300]}",
        )
    return None


def _finished(case: Case) -> Assessment | None:
    turn = case.thread.turn
    if turn is None or turn.how != "completed":
        return None
    background = [c for c in case.thread.calls if c.outcome == "running" and c.ended_at]
    note = ""
    if background and case.commands:
        note = f"; `{background[-1].text}` goes on in the background"
    return _assessment(
        State.COMPLETED,
        turn.ended_at,
        f"its turn is complete{note}",
        "rollout",
        "turn-complete",
        turn.message or "task_complete",
    )


def _answered(case: Case) -> Assessment | None:
    """Files without turn marks (through 0.98): a last word that no call follows is the end of a turn."""
    turn = case.thread.turn
    if turn is None or not turn.inferred or case.thread.open_calls:
        return None
    if turn.message:
        return _assessment(
            State.COMPLETED,
            case.thread.last_at,
            "the model has given its answer",
            "rollout",
            "last-message",
            turn.message,
        )
    if _alive(case) is False:
        why = "its Codex is gone before the model answered"
        return _assessment(
            State.EXITED,
            _ownerless_since(case),
            why,
            "process",
            "no-owner",
            "the file ends without an answer, and nobody holds it",
        )
    return None


def _fresh(case: Case) -> Assessment | None:
    if case.thread.turn is not None:
        return None
    if _alive(case):
        return _assessment(
            State.WAITING_INPUT,
            case.thread.created_at,
            "has not been given anything yet",
            "rollout",
            "no-turn",
        )
    if _alive(case) is False:
        return _assessment(
            State.EXITED,
            _ownerless_since(case),
            "its Codex is gone; nothing was asked of it",
            "process",
            "no-owner",
        )
    return None


class Rule(NamedTuple):
    """Who decides what."""

    authority: str
    decides: str
    says: Callable[[Case], Assessment | None]


PRECEDENCE: Final = (
    # blockers first
    Rule("rollout", "that it cannot be read", _unreadable),
    Rule("codex feed", "that it waits for an approval or an answer (0.160+, not for exec)", _pushed),
    Rule("rollout", "that it asks: question and permission tools", _asks),
    Rule("screen", "prompts that write nothing, the provider's trouble while it is tried again", _on_screen),
    Rule("log", "the provider's trouble, where no screen shows it", _logged),
    Rule(
        "process",
        "that nothing runs what should run outside of the sandbox: it waits for an approval",
        _awaits_approval,
    ),
    Rule("screen", "that half of a menu is in sight: nobody can tell", _half_seen),
    Rule("rollout", "requests that got no answer (through 0.142, which writes no errors)", _retried),
    # then what goes on
    Rule("lock", "that nobody holds it any more while its turn is open", _left),
    Rule("rollout", "that its turn is open", _works),
    # then how it ended
    Rule("screen", "that it was stopped while its provider failed", _given_up),
    Rule("rollout", "that its turn was stopped", _interrupted),
    Rule("rollout", "that its turn failed", _errored),
    Rule("output", "the denial or refusal that it did not get past", _ended_denied),
    Rule("rollout", "that its turn is complete", _finished),
    Rule("rollout", "the last word, in files without turn marks (through 0.98)", _answered),
    Rule("rollout", "that nothing was asked of it yet", _fresh),
)
"""For each fact its one authority, in the order in which they are asked: the first answer is the state."""


# ---------------------------------------------------------------- questions that rules ask


def _alive(case: Case) -> bool | None:
    """Whether some process has the thread loaded; None where that cannot be known."""
    if case.owner or case.commands:
        return True
    if case.processes_at is None:
        return None
    ended = case.orphaned is not None and case.orphaned >= (case.thread.last_at or 0.0)
    return False if ended or case.processes_at - (case.thread.last_at or 0.0) >= _OWNERLESS else None


def _ownerless_since(case: Case) -> float | None:
    """When its owner ended; the time of its newest line, where nobody saw that, or where it is later."""
    return max((at for at in (case.orphaned, case.thread.last_at) if at is not None), default=None)


def _was_answered(case: Case, asked_at: float) -> bool:
    """Whether Codex's feed has said since then that nothing is waited for."""
    pushed = case.pushed
    return pushed is not None and pushed.status == "active" and not pushed.flags and pushed.at >= asked_at


def _open(case: Case, kind: str) -> Call | None:
    return next((c for c in case.thread.open_calls if c.kind == kind), None)


def _runs(case: Case, call: Call) -> Process | None:
    """The process that an open call runs in."""
    return next((p for p in case.commands if (p.env or {}).get("CODEX_TOOL_CALL_ID") == call.id), None)


def _last_attempt(thread: Thread) -> Call | None:
    turn = thread.turn
    since = turn.since if turn else 0.0
    return next(
        (
            c
            for c in reversed(thread.calls)
            if c.kind in ("command", "patch") and c.at >= since and not c.by_user
        ),
        None,
    )


def _waits_for(call: Call) -> str:
    if call.kind == "wait":
        return "waiting for its children"
    return f"`{call.text}` is open" if call.text else f"{call.tool} is open"


def _tells_errors(thread: Thread) -> bool:
    """Whether this Codex writes a failed turn's error into its rollout (seen from 0.150, in the schema from 0.145)."""
    parts = (thread.version or "").split(".")
    try:
        return (int(parts[0]), int(parts[1])) >= (0, 145)
    except (IndexError, ValueError):
        return False


def _assessment(
    state: State, since: float | None, why: str, source: str, rule: str, text: str | None = None
) -> Assessment:
    return Assessment(state, since, why, (Evidence(source, since or 0.0, rule, text or why),))
