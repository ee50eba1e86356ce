"""The Screen tab: a tmux pane as it was last captured."""

from __future__ import annotations

import re
from typing import Final

from rich.cells import cell_len

from agentdash.model.pane import Pane
from agentdash.tui.format import age, wrap
from agentdash.tui.primitives.spans import BLANK, Line, Span, paragraph
from agentdash.tui.theme import ASCII, Look

_CONTINUED: Final = ("↪ ", "> ")
_GAP: Final = re.compile(" {4,}")
_FRAME: Final = re.compile("[ \u2500-\u257f▌▐]+$")
"""The right edge of a box, which has no words."""


def pane_view(pane: Pane | None, height: int, cells: int, look: Look) -> list[Line]:
    """Return a head line and the pane's screen, its last written line at the bottom of `height` lines.

    Lines that are wider than the panel lose their frame and wide gaps, and are wrapped if that is not enough.
    """
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
    lines: list[Line] = [line for text in written for line in _fitted(text, cells, look)]
    return [
        *paragraph(place + drawn + mode, cells, "muted", cap=2),
        *[BLANK] * max(0, height - 1 - len(lines)),
        *lines,
    ]


def _fitted(text: str, cells: int, look: Look) -> list[Line]:
    """Return a line of a screen in at most `cells`, without loss of words."""
    if cell_len(text) <= cells:
        return [(Span(text),)]
    short = _FRAME.sub("", text)
    if cell_len(short) > cells:
        indent = len(short) - len(short.lstrip())
        short = short[:indent] + _GAP.sub("   ", short[indent:])
    if cell_len(short) <= cells:
        return [(Span(short),)]
    first, *rest = wrap(short, cells - 2)
    mark = _CONTINUED[look.glyphs is ASCII]
    return [(Span(first),), *((Span(mark, "muted"), Span(line)) for line in rest)]
