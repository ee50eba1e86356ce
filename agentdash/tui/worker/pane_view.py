"""A pane's screen as it was last seen."""

from __future__ import annotations

from agentdash.model.pane import Pane
from agentdash.tui.format import age
from agentdash.tui.primitives.spans import BLANK, Line, Span
from agentdash.tui.theme import Look


def pane_view(pane: Pane | None, height: int, look: Look) -> list[Line]:
    """The screen, its last written line at the bottom, under a line that says whose it is."""
    if pane is None:
        return [(Span("No tmux pane is known to be its own.", "muted"),)]
    written = list(pane.screen)
    while written and not written[-1]:
        written.pop()
    if not written:
        return [(Span(f"Pane {pane.key} shows nothing.", "muted"),)]
    drawn = f", drawn {age(look.now - pane.drawn_at)} ago" if pane.drawn_at is not None else ""
    mode = ", in copy mode: its own screen is hidden" if pane.in_mode else ""
    about = (
        Span(
            f"pane {pane.key} in {pane.session}:{pane.window}, {pane.width}x{pane.height}{drawn}{mode}",
            "muted",
        ),
    )
    lines: list[Line] = [(Span(text),) for text in written]
    return [about, *[BLANK] * max(0, height - 1 - len(lines)), *lines]
