"""The lanes: the states of a worker as one sign for each cell of a time axis. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agentdash.model.states import NEEDS_YOU, State
from agentdash.model.worker import Worker
from agentdash.tui.format import clock
from agentdash.tui.primitives.spans import Line, Span, Tone
from agentdash.tui.theme import ASCII, TONES_OF_STATES, Glyphs, Look

ZOOMS_S: Final = (600.0, 3_600.0, 86_400.0)
"""Lengths of the axis (seconds): ten minutes, an hour, a day."""
_SHORTER_S: Final = (5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Lengths of the axis where nothing older is known."""
_NAMES: Final = {
    5.0: "5 seconds",
    10.0: "10 seconds",
    30.0: "30 seconds",
    60.0: "1 minute",
    120.0: "2 minutes",
    300.0: "5 minutes",
    600.0: "10 minutes",
    3_600.0: "1 hour",
    86_400.0: "1 day",
}
_URGENCY: Final = {
    state: rank
    for rank, state in enumerate(
        (
            *NEEDS_YOU,
            State.RUNNING,
            State.INTERRUPTED,
            State.COMPLETED,
            State.EXITED,
            State.UNREACHABLE,
            State.UNKNOWN,
        )
    )
}
"""Which state is shown where several share a cell: the most urgent one."""
_RUNNING: Final = ("━", "=")
_DONE: Final = ("╌", ".")
_DENIED: Final = ("⊘", "#")
_CURSOR: Final = ("│", "|")
_TICK: Final = ("┊", "|")
_AT_REST: Final = (State.COMPLETED, State.INTERRUPTED)
_LABEL_CELLS: Final = 9
"""A time of day and a space."""
_TICK_STEPS_S: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600)
"""Distances of the times on the axis."""


class Axis(NamedTuple):
    """A span of time on a number of cells; the last cell ends now."""

    end: float
    """Unix seconds."""
    length: float
    """Seconds."""
    cells: int

    @property
    def begin(self) -> float:
        """Return where the first cell begins."""
        return self.end - self.length

    @property
    def step(self) -> float:
        """Return the seconds of one cell."""
        return self.length / max(1, self.cells)

    def cell(self, at: float) -> int:
        """Return the cell of a time; it may be outside of the axis."""
        return (
            min(self.cells - 1, math.floor((at - self.begin) / self.step)) if at <= self.end else self.cells
        )

    def time(self, cell: int) -> float:
        """Return the time at the end of a cell."""
        return self.begin + (cell + 1) * self.step


def length_of(zoom: float, workers: Sequence[Worker], now: float) -> float:
    """Return the length of the axis: that of the zoom, or the shortest that shows all that is known."""
    begun = min((worker.history[0].since for worker in workers if worker.history), default=now)
    return next((length for length in (*_SHORTER_S, *ZOOMS_S) if length >= min(zoom, now - begun)), zoom)


def length_in_words(length: float) -> str:
    """Return the name of a length of the axis."""
    return _NAMES[length]


def states_per_cell(worker: Worker, axis: Axis) -> list[State | None]:
    """Return the most urgent state in each cell; None before the worker is known."""
    states: list[State | None] = [None] * axis.cells
    for period in worker.history:
        state = State(period.state)
        until = axis.end if period.until is None else min(period.until, axis.end)
        if until < axis.begin or period.since > axis.end:
            continue
        for cell in range(max(0, axis.cell(period.since)), axis.cell(until) + 1):
            if cell < axis.cells and _is_more_urgent(state, states[cell]):
                states[cell] = state
    return states


def denials_per_cell(worker: Worker, axis: Axis) -> set[int]:
    """Return the cells in which a sandbox denied something: the first and the last time of each denial."""
    times = (at for entry in worker.sandbox.denials for at in (entry.first, entry.last))
    return {axis.cell(at) for at in times if axis.begin <= at <= axis.end}


def lane(worker: Worker, axis: Axis, glyphs: Glyphs, cursor: int | None = None) -> Line:
    """Return the lane of a worker; `cursor` is the cell under the time cursor."""
    denied = denials_per_cell(worker, axis)
    spans: list[Span] = []
    for cell, state in enumerate(states_per_cell(worker, axis)):
        sign, tone = _sign(state, glyphs)
        if cell in denied:
            sign, tone = _DENIED[glyphs is ASCII], "stuck"
        if cell == cursor:
            sign, tone = (sign if sign != " " else _CURSOR[glyphs is ASCII]), "marked"
        if spans and spans[-1].tone == tone:
            spans[-1] = Span(spans[-1].text + sign, tone)
        else:
            spans.append(Span(sign, tone))
    return tuple(spans)


def axis_line(axis: Axis, look: Look) -> Line:
    """Return the times below which the cells stand, as many as fit; the right end is now."""
    text = [" "] * axis.cells
    tick = _TICK[look.glyphs is ASCII]
    for at in _ticks(axis):
        start = axis.cell(at)
        label = tick + (clock(at) if axis.length <= ZOOMS_S[0] else clock(at)[:5])
        if start + len(label) < axis.cells - len(" now"):
            text[start : start + len(label)] = label
    text[-3:] = "now"
    return (Span("".join(text), "title"),)


def _ticks(axis: Axis) -> Iterator[float]:
    """Yield round times, far enough from each other for their labels."""
    least = axis.step * (_LABEL_CELLS + 2)
    step = next((each for each in _TICK_STEPS_S if each >= least), _TICK_STEPS_S[-1])
    at = math.ceil(axis.begin / step) * step
    while at < axis.end:
        yield at
        at += step


def _is_more_urgent(state: State, than: State | None) -> bool:
    return than is None or _URGENCY[state] < _URGENCY[than]


def _sign(state: State | None, glyphs: Glyphs) -> tuple[str, Tone]:
    if state is None:
        return " ", ""
    if state is State.RUNNING:
        return _RUNNING[glyphs is ASCII], "live"
    if state in _AT_REST:
        return _DONE[glyphs is ASCII], "ready"
    return glyphs.states[state], TONES_OF_STATES[state]


def legend(glyphs: Glyphs) -> Sequence[tuple[str, Tone, str]]:
    """Return each sign with its tone and its meaning."""
    is_ascii = glyphs is ASCII
    states = glyphs.states
    return (
        (_RUNNING[is_ascii], "live", "running"),
        (states[State.WAITING_APPROVAL], "ask", "waits for approval"),
        (states[State.WAITING_INPUT], "ask", "waits for input"),
        (_DENIED[is_ascii], "stuck", "denied, blocked"),
        (states[State.FAILED_PERMISSION], "stuck", "refused"),
        (states[State.FAILED_PROVIDER], "stuck", "provider failed"),
        (_DONE[is_ascii], "ready", "done"),
        (states[State.EXITED], "gone", "exited"),
    )
