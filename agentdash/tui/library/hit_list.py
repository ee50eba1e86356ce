"""The hits of a full-text search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual.message import Message

from agentdash.replay.library.entry import Entry
from agentdash.replay.library.search import Hit
from agentdash.tui.format import clock, pad
from agentdash.tui.library.cells import title, when
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, justify
from agentdash.tui.theme import Look

_TITLE_CELLS: Final = 22
_TWO_LINES_BELOW_CELLS: Final = 76
"""In a narrower list a hit takes two lines: one would leave less than half of it to the text."""


def text(hit: Hit) -> Line:
    """Return the line of the hit with its matches marked."""
    spans: list[Span] = []
    at = 0
    for start, end in hit.marks:
        spans += [Span(hit.text[at:start], "muted"), Span(hit.text[start:end], "strong")]
        at = end
    return (*spans, Span(hit.text[at:], "muted"))


def lines(hit: Hit, entry: Entry | None, cells: int, look: Look, height: int) -> tuple[Line, ...]:
    """Return a hit on one line, or on two."""
    dots = look.glyphs.ellipsis
    name = title(entry).text if entry else hit.thread
    found = (Span(f" {pad(hit.what, 9)} {hit.line:>6}  "), *text(hit))
    if height == 1:
        begun = Span(when(hit.at, look.now), "muted")
        return (fit((begun, Span(" " + pad(name, _TITLE_CELLS, dots), "strong"), *found), cells, dots),)
    head = justify((Span(name, "strong"),), (Span(clock(hit.at), "muted"),), cells, dots)
    return head, fit(found, cells, dots)


class HitList(Choices):
    """The hits, one or two lines each."""

    class Opened(Message):
        """A hit was double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.hits: Sequence[Hit] = ()
        self._entries: Mapping[str, Entry] = {}
        self._look: Look | None = None
        self._placeholder: Sequence[Line] = ()

    @property
    def total(self) -> int:
        """Number of hits."""
        return len(self.hits)

    @property
    def selected(self) -> Hit | None:
        """The hit under the cursor."""
        return self.hits[self.cursor] if self.cursor < len(self.hits) else None

    def show_hits(
        self, hits: Sequence[Hit], entries: Mapping[str, Entry], look: Look, placeholder: Sequence[Line]
    ) -> None:
        """Show these hits, or `placeholder` where there are none; the cursor keeps its index."""
        self.hits = hits
        self._placeholder = placeholder
        self._entries = entries
        self._look = look
        self.item_height = 1 if self.room - 1 >= _TWO_LINES_BELOW_CELLS else 2
        self.redraw(len(hits) * self.item_height or len(placeholder))
        if self.cursor >= len(hits):
            self.set_cursor(0)

    def line_at(self, y: int) -> Line:
        """Return one line of a hit, or of the placeholder."""
        if not self.hits:
            return self._placeholder[y] if y < len(self._placeholder) else BLANK
        index, part = divmod(y, self.item_height)
        if index >= len(self.hits) or self._look is None:
            return BLANK
        hit = self.hits[index]
        gutter = self.gutter_span(index, part, self._look.glyphs)
        entry = self._entries.get(str(hit.path))
        # the height is that of the width at which the hits were shown, until the screen is arranged anew
        return (gutter, *lines(hit, entry, self.room - 1, self._look, self.item_height)[part])

    def item_opened(self) -> None:
        """Post that a hit was double-clicked."""
        self.post_message(self.Opened())
