"""The last line: key hints, or a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual.events import Resize

from agentdash.tui.keys import BY_ID, Key
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span, fit, width
from agentdash.tui.theme import Glyphs

_MESSAGE_DURATION_S: Final = 5.0
"""Long enough to read a line of 100 characters."""


def hints(ids: Sequence[str], cells: int, glyphs: Glyphs, keys: Mapping[str, Key] = BY_ID) -> Line:
    """Return as many whole hints as fit: `a attention  w why  ⋯  ? help`. The last one is always shown."""
    *others, last = (_hint(keys[name]) for name in ids)
    gap = (Span("  "),)
    for shown in range(len(others), -1, -1):
        missing = (Span(glyphs.ellipsis, "muted"), *gap) if shown < len(others) else ()
        line = (Span(" "), *(span for hint in others[:shown] for span in (*hint, *gap)), *missing, *last)
        if width(line) <= cells:
            return line
    return fit((Span(" "), *last), cells, glyphs.ellipsis)


def _hint(key: Key) -> Line:
    return Span(key.shown[0], "key", key.press), Span(f" {key.label}", "muted", key.press)


class Footer(Lines):
    """Key hints, replaced by a message for a few seconds."""

    def __init__(self, glyphs: Glyphs, *ids: str) -> None:
        super().__init__(id="footer", focusable=False)
        self._glyphs = glyphs
        self.ids: Sequence[str] = ids
        """The keys hinted at, also those that there is no room for."""
        self._message = ""

    def show_hints(self, ids: Sequence[str]) -> None:
        """Show the hints of these keys."""
        if ids != self.ids:
            self.ids = ids
            self._draw()

    def show_message(self, message: str) -> None:
        """Show a message in place of the hints; an empty one shows the hints again."""
        self._message = message
        self.set_class(bool(message), "-message")
        self._draw()
        if message:
            self.set_timer(_MESSAGE_DURATION_S, lambda: self._expire(message))

    def _expire(self, message: str) -> None:
        if self._message is message:  # else another one has replaced it
            self.show_message("")

    def on_resize(self, _: Resize) -> None:
        """Fit the hints into the new width."""
        self._draw()

    def _draw(self) -> None:
        cells, keys = self.size.width, getattr(self.app, "keys", BY_ID)
        message = fit((Span(" "), Span(self._message, "strong")), cells, self._glyphs.ellipsis)
        self.show([message if self._message else hints(self.ids, cells, self._glyphs, keys)])
