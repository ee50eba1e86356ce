"""The last line: the keys worth knowing here, or what the last one did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.events import Resize

from agentdash.tui.keys import BY_ID, Key
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span, fit, width
from agentdash.tui.theme import Glyphs

_STAY = 5.0
"""Seconds that a message stays."""


def hints(ids: Sequence[str], cells: int, glyphs: Glyphs, keys: Mapping[str, Key] = BY_ID) -> Line:
    """`a attention  w why  ... ? help`: as many whole hints as fit; the last one always, and a mark where some are missing."""
    all_hints = [_hint(keys[name]) for name in ids]
    *others, last = all_hints
    gap = (Span("  "),)
    for shown in range(len(others), -1, -1):
        missing = (Span(glyphs.ellipsis, "muted"), *gap) if shown < len(others) else ()
        line = (Span(" "), *(span for hint in others[:shown] for span in (*hint, *gap)), *missing, *last)
        if width(line) <= cells:
            return line
    return fit((Span(" "), *last), cells, glyphs.ellipsis)


def _hint(key: Key) -> Line:
    action = f"app.{key.action}" if key.on in ("app", "player", "library") else None
    return Span(key.shown[0], "key", action), Span(f" {key.label}", "muted", action)


class Footer(Lines):
    """Key hints, cut at whole ones."""

    def __init__(self, glyphs: Glyphs, *ids: str) -> None:
        super().__init__(id="footer", focusable=False)
        self._glyphs, self._ids, self._message = glyphs, ids, ""

    def say(self, message: str) -> None:
        """Shows a message in the hints' place for a while."""
        self._message = message
        self.set_class(bool(message), "-saying")
        self._draw()
        if message:
            self.set_timer(_STAY, lambda: self.say("") if self._message is message else None)

    def on_resize(self, _: Resize) -> None:
        """Fits the hints into the new width."""
        self._draw()

    def _draw(self) -> None:
        cells, keys = self.size.width, getattr(self.app, "keys", BY_ID)
        line = fit((Span(" "), Span(self._message, "strong")), cells, self._glyphs.ellipsis)
        self.show([line if self._message else hints(self._ids, cells, self._glyphs, keys)])
