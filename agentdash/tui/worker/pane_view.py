"""The Screen tab: a tmux pane as it was last captured."""

from __future__ import annotations

from agentdash.model.pane import Pane
from agentdash.tui.format import age
from agentdash.tui.primitives.spans import BLANK, Line, Span
from agentdash.tui.theme import Look


def pane_view(pane: Pane | None, height: int, look: Look) -> list[Line]:
    """Return a head line and the pane's screen, its last written line at the bottom of `height` lines."""
    if pane is None:
        return [(Span("No tmux pane is linked to this worker.", "muted"),)]
    written = list(pane.screen)
    while written and not written[-1]:
        written.pop()
    if not written:
        return [(Span(f"Pane {pane.key} is empty.", "muted"),)]
    place = f"pane {pane.key} in {pane.session}:{pane.window}, {pane.width}x{pane.height}"
    drawn = f", drawn {age(look.now - pane.drawn_at)} ago" if pane.drawn_at is not None else ""
    mode = ", in copy mode: its own screen is hidden" if pane.in_mode else ""
    lines: list[Line] = [(Span(text),) for text in written]
    return [(Span(place + drawn + mode, "muted"),), *[BLANK] * max(0, height - 1 - len(lines)), *lines]
