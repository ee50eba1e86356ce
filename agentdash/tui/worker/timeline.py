"""What a worker did: its timeline, and its calls with what came of them."""

from __future__ import annotations

from agentdash.model.fleet import Call, Moment, StatePeriod
from agentdash.model.states import State
from agentdash.model.worker import Worker
from agentdash.tui.format import age, duration, stamp
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, beside, paragraph
from agentdash.tui.theme import TONES_OF_STATES, Look, word

_WHO = {"prompt": "you", "message": "agent", "turn": "turn", "policy": "policy", "trouble": "trouble"}
_TONES: dict[str, Tone] = {"prompt": "strong", "turn": "muted", "policy": "muted", "trouble": "stuck"}
_TAIL = 3
"""Lines shown of a call's output."""


def timeline(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Its moments, and the states it has been in, newest first."""
    calls = {call.id: call for call in worker.calls}
    told = [
        (moment.at, 0, _moment(moment, calls.get(moment.call or ""), cells, look))
        for moment in worker.moments
    ]
    told += [(period.since, 1, _period(period, cells, look)) for period in worker.history]
    told.sort(key=lambda entry: entry[:2])  # at the same time: what happened, then the state that it led to
    return [line for _, _, line in reversed(told)] or [(Span("Nothing has been read of it.", "muted"),)]


def calls(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Its calls: open ones first, then newest first; where from, what was asked for, what came of it."""
    lines: list[Line] = []
    for call in worker.calls:
        lines += [*_call(call, cells, look), BLANK]
    return lines[:-1] or [(Span("No calls are known of it.", "muted"),)]


def outcome(call: Call, now: float) -> Span:
    """`ok 0.2s`, `exit 1 2.0s`, `denied`, `running 9s` ..."""
    if call.outcome is None:
        return Span(f"running {age(now - call.at)}", "live")
    took = f" {duration(call.ended_at - call.at)}" if call.ended_at is not None else ""
    if call.outcome == "running":
        return Span("in the background", "live")
    if call.outcome == "ended":
        return Span(f"exit {call.exit_code}{took}", "stuck") if call.exit_code else Span(f"ok{took}", "muted")
    return Span(call.outcome.replace("-", " ") + took, "stuck")


def _moment(moment: Moment, call: Call | None, cells: int, look: Look) -> Line:
    at = Span(stamp(moment.at, look.now) + "  ", "muted")
    if moment.kind == "call":
        right = (outcome(call, look.now),) if call else ()
        return beside((at, *_command(call, moment.text)), right, cells, look.glyphs.ellipsis)
    who = Span(f"{_WHO[moment.kind]}: ", "muted")
    return beside((at, who, Span(moment.text, _TONES.get(moment.kind, ""))), (), cells, look.glyphs.ellipsis)


def _period(period: StatePeriod, cells: int, look: Look) -> Line:
    state = State(period.state)
    lasted = age((look.now if period.until is None else period.until) - period.since)
    sign = Span(f"{look.glyphs.states[state]} {word(state)}  ", TONES_OF_STATES[state])
    at = Span(stamp(period.since, look.now) + "  ", "muted")
    return beside(
        (at, sign, Span(period.why, "muted")), (Span(lasted, "muted"),), cells, look.glyphs.ellipsis
    )


def _command(call: Call | None, text: str) -> Line:
    if call is None or call.kind in ("command", "poll"):
        return Span("$ ", "muted"), Span(text)
    return Span(f"{call.tool} ", "muted"), Span(text)


def _call(call: Call, cells: int, look: Look) -> list[Line]:
    at = Span(stamp(call.at, look.now) + "  ", "muted")
    lines = [
        beside((at, *_command(call, call.text)), (outcome(call, look.now),), cells, look.glyphs.ellipsis)
    ]
    about = [f"in {call.cwd}"] if call.cwd else []
    if call.by_user:
        about.append("typed by the user: runs without a sandbox")
    if call.escalation:
        about.append(
            f"asked for more ({call.escalation.kind}): {call.escalation.reason or 'no reason given'}"
        )
    for text in about:
        lines += paragraph(text, cells, "muted", indent=10, cap=2)
    if call.denial:
        lines += paragraph(
            call.denial.quote, cells, "stuck", head=(Span(" " * 10 + "denied: ", "stuck"),), cap=2
        )
    for text in call.tail.splitlines()[-_TAIL:]:
        lines += paragraph(text, cells, indent=10, cap=1)
    return lines
