"""What a worker is doing, and why: the first rule that applies decides, in the order in which they stand here.

Each rule has a name, which the evidence carries. Where nothing decides, the state is `unknown`; where what should be seen cannot be,
`unreachable`. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.facts.events import ScreenRead, StatusPushed
from agentdash.facts.fleet import Call, Fleet, Tenant, Thread, Turn
from agentdash.facts.pane import Pane
from agentdash.facts.process import Process
from agentdash.facts.worker import Evidence, Judged, State
from agentdash.judge.kinship import Owned

_SETTLING: Final = 1.0
"""Seconds that a process may take to show before its absence counts: a pass over all processes and a fork."""
_SCREEN_KNOWS: Final = (State.WAITING_APPROVAL, State.FAILED_PROVIDER)
"""What a screen may add while a turn is open. Questions are in the rollout; an idle prompt is only a screen that lags behind."""
_OWNERLESS: Final = 3.0
"""Seconds after its newest line from which a thread that nobody holds counts as left: open files are looked at every few passes."""


class Case(msgspec.Struct, frozen=True):
    """All that a thread is judged by."""

    thread: Thread
    owner: Owned | None
    commands: tuple[Process, ...]
    """Live processes of its commands."""
    processes_at: float | None
    """When processes were last looked at."""
    reading: ScreenRead | None = None
    """What its pane's screen was read as, where it has a pane."""
    pushed: StatusPushed | None = None
    """What Codex's own feed says, where there is one (0.160+)."""


def judge_thread(case: Case) -> Judged:
    """State of a Codex thread."""
    for rule in _THREAD_RULES:
        if (judged := rule(case)) is not None:
            return judged
    return Judged(State.UNKNOWN, None, "the rollout does not tell")


def judge_pane(fleet: Fleet, pane: Pane, tenant: Tenant | None) -> Judged:
    """State of a worker CLI that is known by its pane only."""
    source = fleet.sources.get("tmux" if pane.key.server == "default" else f"tmux {pane.key.server.removeprefix('-L ')}")
    if source is not None and not source.ok:
        text = f"its tmux server cannot be asked: {source.detail}"
        return Judged(State.UNREACHABLE, source.at, text, (Evidence("tmux", source.at, "server-gone", source.detail),))
    at = pane.drawn_at or pane.titled_at or 0.0
    if pane.dead:
        how = _died(pane)
        return Judged(State.EXITED, at, how, (Evidence("tmux", at, "pane-dead", f"pane_dead=1, {how}"),))
    if tenant is not None and tenant.gone_at is not None:
        text = f"{tenant.agent} (pid {tenant.key.pid}) is gone from the pane"
        return Judged(State.EXITED, tenant.gone_at, text, (Evidence("process", tenant.gone_at, "worker-gone", text),))
    reading = fleet.readings.get(pane.key)
    if reading is not None and reading.state is not None:
        return _shown(reading)
    if reading is not None and reading.partial:
        why = f"part of a menu is out of sight in its {pane.width}x{pane.height} pane: {reading.text}"
        return Judged(State.UNKNOWN, reading.at, why, (Evidence("screen", reading.at, reading.rule or "", reading.text),))
    return Judged(State.UNKNOWN, None, "its process runs; nothing that it shows is understood here")


def _shown(reading: ScreenRead) -> Judged:
    """A state as the rules for the worker's screen read it."""
    half = " (part of it is out of sight)" if reading.partial else ""
    hidden = " (behind a view that hides its prompt)" if reading.frozen else ""
    evidence = Evidence("title" if reading.rule and ".title" in reading.rule else "screen", reading.at, reading.rule or "", reading.text)
    return Judged(State(reading.state or "unknown"), reading.at, f"its screen shows {reading.text}{half}{hidden}", (evidence,))


def _died(pane: Pane) -> str:
    if pane.dead_signal:
        return f"killed by signal {pane.dead_signal}"
    return "exit code unknown" if pane.dead_status is None else f"exit code {pane.dead_status}"


# ---------------------------------------------------------------- rules for threads


def _unreadable(case: Case) -> Judged | None:
    file = case.thread.file
    if file is None or not file.unreadable:
        return None
    return _judged(State.UNREACHABLE, file.modified, f"its rollout cannot be read: {file.unreadable}", "rollout", "rollout-unreadable")


def _pushed(case: Case) -> Judged | None:
    """Codex's own word on what it waits for: the authority where there is one."""
    if case.pushed is None or case.pushed.status != "active" or not case.pushed.flags:
        return None
    approval = "waitingOnApproval" in case.pushed.flags
    state = State.WAITING_APPROVAL if approval else State.WAITING_INPUT
    call = case.thread.open_calls[-1] if case.thread.open_calls else None
    what = f": {call.text}" if call else ""
    why = f"waits for an approval{what}" if approval else f"asks{what}"
    return _judged(state, case.pushed.at, why, "codex feed", "status-pushed", f"thread/status/changed {', '.join(case.pushed.flags)}")


def _on_screen(case: Case) -> Judged | None:
    """What only the screen shows while a turn is open: prompts that write nothing, and trouble with the provider."""
    turn, reading = case.thread.turn, case.reading
    if turn is None or turn.ended_at is not None or reading is None or reading.state not in _SCREEN_KNOWS:
        return None
    return _shown(reading) if reading.at >= turn.since else None


def _asks(case: Case) -> Judged | None:
    if (call := _open(case, "question")) and _alive(case) is not False:
        return _judged(State.WAITING_INPUT, call.at, f"asks: {call.text}", "rollout", "open-question")
    if (call := _open(case, "permission")) and _alive(case) is not False:
        return _judged(State.WAITING_APPROVAL, call.at, f"asks for permissions: {call.text}", "rollout", "open-permission-request")
    return None


def _awaits_approval(case: Case) -> Judged | None:
    call = next((c for c in case.thread.open_calls if c.escalation and not _runs(case, c)), None)
    if call is None or not _alive(case) or case.processes_at is None or case.processes_at - call.at < _SETTLING:
        return None
    reason = f" ({call.escalation.reason})" if call.escalation and call.escalation.reason else ""
    evidence = (
        Evidence("rollout", call.at, "open-escalation", f"asked to run outside of the sandbox{reason}: {call.text}"),
        Evidence("process", call.at, "no-process-for-call", f"no process carries CODEX_TOOL_CALL_ID={call.id}"),
    )
    return Judged(State.WAITING_APPROVAL, call.at, f"wants to run outside of the sandbox: {call.text}", evidence)


def _left(case: Case) -> Judged | None:
    turn = case.thread.turn
    if turn is None or turn.ended_at is not None or _alive(case) is not False:
        return None
    if turn.inferred and not case.thread.open_calls:
        return None  # files without turn marks: an answer may have been the end
    call = case.thread.open_calls[-1] if case.thread.open_calls else None
    doing = f" while `{call.text}` ran" if call else ""
    evidence = (
        Evidence("rollout", turn.since, "turn-open", "the turn has no end in the file"),
        Evidence("process", case.thread.last_at or turn.since, "no-owner", "no process holds its writer lock or its rollout"),
    )
    return Judged(State.EXITED, case.thread.last_at, f"its Codex is gone{doing}; the turn was never ended", evidence)


def _works(case: Case) -> Judged | None:
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
        evidence.append(Evidence("process", running.key.started, "process-of-call", f"pid {running.pid} carries the call's id"))
    if case.owner:
        evidence.append(Evidence("lock", turn.since, "owner-alive", case.owner.by))
    if call is None:
        why = "turn open, waiting for the model"
    elif running:
        why = f"`{call.text}` is running (pid {running.pid})"
    else:
        why = f"{_waits_for(call)} since the turn's last call"
    return Judged(State.RUNNING, turn.since, why, tuple(evidence))


def _interrupted(case: Case) -> Judged | None:
    turn = case.thread.turn
    if turn is None or turn.how != "aborted":
        return None
    if turn.error:
        return _failed(turn)
    by = f" ({turn.reason})" if turn.reason and turn.reason != "interrupted" else ""
    return _judged(
        State.INTERRUPTED, turn.ended_at, f"its turn was interrupted{by}", "rollout", "turn-aborted", turn.reason or "turn_aborted"
    )


def _errored(case: Case) -> Judged | None:
    turn = case.thread.turn
    return _failed(turn) if turn and turn.how == "completed" and turn.error else None


def _failed(turn: Turn) -> Judged:
    """`codex_error_info` (0.145+): all but two of its kinds speak of the model or its provider."""
    kind, text = turn.error_kind or "other", turn.error or "error"
    if kind == "sandbox_error":
        return _judged(State.BLOCKED_SANDBOX, turn.ended_at, f"the sandbox failed: {text}", "rollout", "turn-sandbox-error", text)
    if kind == "too_many_denials":
        return _judged(State.FAILED_PERMISSION, turn.ended_at, f"stopped after too many denials: {text}", "rollout", "turn-denials", text)
    return _judged(State.FAILED_PROVIDER, turn.ended_at, text, "rollout", "turn-error", f"{kind}: {text}")


def _retried(case: Case) -> Judged | None:
    """Provider trouble in files that do not record errors (through 0.142): requests, and nothing new in answer to them."""
    turn = case.thread.turn
    if turn is None or case.thread.open_calls or turn.error:
        return None
    if turn.how == "completed" and turn.message is None and not _tells_errors(case.thread) and case.thread.last_prompt:
        said = "no answer" if not turn.answered else "no final answer"
        text = f"the turn ended with {said}; this Codex writes no errors into its file"
        return _judged(
            State.FAILED_PROVIDER, turn.ended_at, text, "rollout", "turn-without-answer", "task_complete, last_agent_message null"
        )
    if turn.inferred and turn.unanswered >= 2 and _alive(case) is not True:
        text = f"the model was asked {turn.unanswered} times and gave nothing new; then the file stops"
        return _judged(State.FAILED_PROVIDER, case.thread.last_at, text, "rollout", "requests-without-answer", text)
    return None


def _ended_denied(case: Case) -> Judged | None:
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
        return _judged(State.BLOCKED_SANDBOX, at, why, "output", f"denied-{call.denial.what}", f"`{call.text}` -> {call.denial.quote}")
    if call.outcome and call.outcome.startswith("refused"):
        by = {"refused-by-user": "the user", "refused-by-policy": "a rule", "refused-by-approval": "the approval policy"}[call.outcome]
        why = f"its last command was refused by {by}"
        return _judged(State.FAILED_PERMISSION, at, why, "rollout", call.outcome, f"`{call.text}` -> {call.tail.strip()[:300]}")
    return None


def _finished(case: Case) -> Judged | None:
    turn = case.thread.turn
    if turn is None or turn.how != "completed":
        return None
    background = [c for c in case.thread.calls if c.outcome == "running" and c.ended_at]
    note = ""
    if background and case.commands:
        note = f"; `{background[-1].text}` goes on in the background"
    return _judged(
        State.COMPLETED, turn.ended_at, f"its turn is complete{note}", "rollout", "turn-complete", turn.message or "task_complete"
    )


def _answered(case: Case) -> Judged | None:
    """Files without turn marks (through 0.98): a last word that no call follows is the end of a turn."""
    turn = case.thread.turn
    if turn is None or not turn.inferred or case.thread.open_calls:
        return None
    if turn.message:
        return _judged(State.COMPLETED, case.thread.last_at, "the model has given its answer", "rollout", "last-message", turn.message)
    if _alive(case) is False:
        why = "its Codex is gone before the model answered"
        return _judged(
            State.EXITED, case.thread.last_at, why, "process", "no-owner", "the file ends without an answer, and nobody holds it"
        )
    return None


def _fresh(case: Case) -> Judged | None:
    if case.thread.turn is not None:
        return None
    if _alive(case):
        return _judged(State.WAITING_INPUT, case.thread.created_at, "has not been given anything yet", "rollout", "no-turn")
    if _alive(case) is False:
        return _judged(State.EXITED, case.thread.last_at, "its Codex is gone; nothing was asked of it", "process", "no-owner")
    return None


_THREAD_RULES: Final[tuple[Callable[[Case], Judged | None], ...]] = (
    _unreadable,
    _pushed,
    _asks,
    _on_screen,
    _awaits_approval,
    _retried,
    _left,
    _works,
    _interrupted,
    _errored,
    _ended_denied,
    _finished,
    _answered,
    _fresh,
)
"""Blockers first, then working, then how it ended."""


# ---------------------------------------------------------------- questions that rules ask


def _alive(case: Case) -> bool | None:
    """Whether some process has the thread loaded; None where that cannot be known."""
    if case.owner or case.commands:
        return True
    if case.processes_at is None or case.processes_at - (case.thread.last_at or 0.0) < _OWNERLESS:
        return None
    return False


def _open(case: Case, kind: str) -> Call | None:
    return next((c for c in case.thread.open_calls if c.kind == kind), None)


def _runs(case: Case, call: Call) -> Process | None:
    """The process that an open call runs in."""
    return next((p for p in case.commands if (p.env or {}).get("CODEX_TOOL_CALL_ID") == call.id), None)


def _last_attempt(thread: Thread) -> Call | None:
    turn = thread.turn
    since = turn.since if turn else 0.0
    return next((c for c in reversed(thread.calls) if c.kind in ("command", "patch") and c.at >= since and not c.by_user), None)


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


def _judged(state: State, since: float | None, why: str, source: str, rule: str, text: str | None = None) -> Judged:
    return Judged(state, since, why, (Evidence(source, since or 0.0, rule, text or why),))
