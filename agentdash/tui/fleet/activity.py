"""The activity of a worker in the last minutes, as a sparkline: how much it did, and in which state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentdash.model.activity import MINUTES
from agentdash.model.states import State
from agentdash.model.worker import Worker
from agentdash.tui.lanes.model import Axis, states_per_cell
from agentdash.tui.primitives.spans import Line, Span, Tone
from agentdash.tui.theme import TONES_OF_STATES, Look

_MINUTE_S: Final = 60.0
_TONES: Final[Mapping[Tone, Tone]] = {"live": "live", "ask": "waited", "stuck": "stopped"}
"""Tones of the bars by that of the state, of those in which a silent minute is drawn, too."""


def activity(worker: Worker, look: Look) -> Line:
    """Return a bar for each of the last minutes: its height is what the worker did, its tone the state.

    The state is the most urgent one of that minute. A minute without an event has a dot while the worker ran
    or waited, and nothing after it came to rest, or before it began.
    """
    end = (look.now // _MINUTE_S + 1) * _MINUTE_S
    states = states_per_cell(worker, Axis(end=end, length=MINUTES * _MINUTE_S, cells=MINUTES))
    levels = worker.activity.levels(look.now) if worker.activity else (0,) * MINUTES
    spans: list[Span] = []
    for state, level in zip(states, levels, strict=True):
        text, tone = _minute(state, level, look)
        if spans and spans[-1].tone == tone:
            spans[-1] = Span(spans[-1].text + text, tone)
        else:
            spans.append(Span(text, tone))
    return tuple(spans)


def _minute(state: State | None, level: int, look: Look) -> tuple[str, Tone]:
    tone = _TONES.get(TONES_OF_STATES[state]) if state is not None else None
    if level:
        return look.glyphs.bars[level], tone or "live"
    return (look.glyphs.dot, tone) if tone else (" ", "")
