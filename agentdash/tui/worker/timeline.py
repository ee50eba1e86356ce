"""The Timeline tab: what a worker did, and the calls of a worker without a session file."""

from __future__ import annotations

from typing import Final

from agentdash.model.conversation import shown_tool
from agentdash.model.events import Escalation
from agentdash.model.fleet import StatePeriod
from agentdash.model.limits import SHOWN_OUTPUT_LINES
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.thread import Call, Moment
from agentdash.model.worker import Worker
from agentdash.tui.format import age, duration, pad, stamp, stamp_cells
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, justify, paragraph
from agentdash.tui.theme import TONES_OF_STATES, Look, state_name

_LABELS: Final = {
    "prompt": "you",
    "message": "agent",
    "turn": "turn",
    "policy": "policy",
    "trouble": "trouble",
}
_TONES: Final[dict[str, Tone]] = {
    "prompt": "strong",
    "turn": "muted",
    "policy": "muted",
    "trouble": "stuck",
}


def escalation_words(escalation: Escalation) -> str:
    """Return what a call asked for beyond its policy, and why."""
    for_what = "to run outside of the sandbox" if escalation.kind == "escalated" else "for more permissions"
    return f"asked {for_what}: {escalation.reason or 'no reason given'}"


def timeline(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the moments of a worker and the periods of its states, newest first."""
    calls = {call.id: call for call in worker.calls}
    times = (*(moment.at for moment in worker.moments), *(period.since for period in worker.history))
    column = stamp_cells(times, look.now)
    entries = [
        (moment.at, 0, _moment(moment, calls.get(moment.call or ""), cells, look, column))
        for moment in worker.moments
    ]
    entries += [(period.since, 1, _period(period, cells, look, column)) for period in worker.history]
    entries.sort(key=lambda entry: entry[:2])  # at the same time: the moment, then the state that it led to
    return [line for _, _, line in reversed(entries)] or [(Span("No events have been read.", "muted"),)]


def calls(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the calls with directory, escalation, outcome, denial and output, the open ones first."""
    lines: list[Line] = []
    for call in worker.calls:
        lines += [*_call(call, cells, look), BLANK]
    return lines[:-1] or [(Span("No calls have been read.", "muted"),)]


def outcome(call: Call, now: float) -> Span:
    """Return how a call ended and how long it took: `ok 0.2s`, `exit 1 2.0s`, `denied`, `running 9s`."""
    if call.outcome is None:
        return Span(f"running {age(now - call.at)}", "live")
    if call.outcome == "running":
        return Span("in the background", "live")
    took = f" {duration(call.ended_at - call.at)}" if call.ended_at is not None else ""
    if call.outcome == "ended":
        return Span(f"exit {call.exit_code}{took}", "stuck") if call.exit_code else Span(f"ok{took}", "muted")
    return Span(call.outcome.replace("-", " ") + took, "stuck")


def _moment(moment: Moment, call: Call | None, cells: int, look: Look, column: int) -> Line:
    at = _at(moment.at, look, column)
    if moment.kind == "call":
        right = (outcome(call, look.now),) if call else ()
        return justify((at, *_command(call, moment.text)), right, cells, look.glyphs.ellipsis)
    label = Span(f"{_LABELS[moment.kind]}: ", "muted")
    text = Span(clean_line(moment.text), _TONES.get(moment.kind, ""))
    return justify((at, label, text), (), cells, look.glyphs.ellipsis)


def _period(period: StatePeriod, cells: int, look: Look, column: int) -> Line:
    state = State(period.state)
    lasted = age((look.now if period.until is None else period.until) - period.since)
    left = (
        _at(period.since, look, column),
        Span(f"{look.glyphs.states[state]} {state_name(state)}  ", TONES_OF_STATES[state]),
        Span(period.why, "muted"),
    )
    return justify(left, (Span(lasted, "muted"),), cells, look.glyphs.ellipsis)


def _at(at: float, look: Look, column: int) -> Span:
    return Span(pad(stamp(at, look.now), column) + "  ", "muted")


def _command(call: Call | None, text: str) -> Line:
    if call is None or call.kind in ("command", "poll"):
        return Span("$ ", "muted"), Span(text)
    return Span(f"{shown_tool(call.kind, call.tool)} ", "muted"), Span(text)


def _call(call: Call, cells: int, look: Look) -> list[Line]:
    at = _at(call.at, look, stamp_cells((call.at,), look.now))
    head = (at, *_command(call, call.text))
    lines = [justify(head, (outcome(call, look.now),), cells, look.glyphs.ellipsis)]
    about = [f"in {call.cwd}"] if call.cwd else []
    if call.by_user:
        about.append("typed by the user: runs without a sandbox")
    if call.escalation:
        about.append(escalation_words(call.escalation))
    for text in about:
        lines += paragraph(text, cells, "muted", indent=10, cap=2)
    if call.denial:
        denied = (Span(" " * 10 + "denied: ", "stuck"),)
        lines += paragraph(call.denial.quote, cells, "stuck", head=denied, cap=4)
    for text in call.tail.splitlines()[-SHOWN_OUTPUT_LINES:]:
        lines += paragraph(text, cells, indent=10, cap=1)
    return lines
