"""What a full-text search has found, as it finds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual.message import Message

from agentdash.replay.library.library import Entry
from agentdash.replay.library.search import Hit
from agentdash.tui.format import clock, pad
from agentdash.tui.library.list import title, when
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, beside, fit
from agentdash.tui.theme import Look

_NAME: Final = 22
_TWO_LINES_BELOW: Final = 76


def text(hit: Hit) -> Line:
    """The words that matched, marked, and what stands around them."""
    spans: list[Span] = []
    at = 0
    for start, end in hit.marks:
        spans += [Span(hit.text[at:start], "muted"), Span(hit.text[start:end], "strong")]
        at = end
    return (*spans, Span(hit.text[at:], "muted"))


def lines(hit: Hit, entry: Entry | None, cells: int, look: Look) -> tuple[Line, ...]:
    """A hit on one line, or on two where there is little room."""
    dots = look.glyphs.ellipsis
    name = title(entry).text if entry else hit.thread
    at = when(hit.at, look.now) if cells >= _TWO_LINES_BELOW else clock(hit.at)
    where = Span(f" {pad(hit.what, 7)} {hit.line:>6}  ")
    if cells >= _TWO_LINES_BELOW:
        return (
            fit(
                (Span(at, "muted"), Span(" " + pad(name, _NAME, dots), "strong"), where, *text(hit)),
                cells,
                dots,
            ),
        )
    return beside((Span(name, "strong"),), (Span(at, "muted"),), cells, dots), fit(
        (where, *text(hit)), cells, dots
    )


class HitList(Choices):
    """The hits, one or two lines each."""

    class Opened(Message):
        """A hit was clicked twice."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.hits: Sequence[Hit] = ()
        self._entries: Mapping[str, Entry] = {}
        self._look: Look | None = None

    @property
    def total(self) -> int:
        """Hits."""
        return len(self.hits)

    @property
    def chosen(self) -> Hit | None:
        """The hit under the cursor."""
        return self.hits[self.cursor] if self.cursor < len(self.hits) else None

    def show_hits(self, hits: Sequence[Hit], entries: Mapping[str, Entry], look: Look) -> None:
        """Shows them; those of before stay where they are."""
        self.hits, self._entries, self._look = hits, entries, look
        self.tall = 1 if self.room - 1 >= _TWO_LINES_BELOW else 2
        self.redraw(len(hits) * self.tall)
        if self.cursor >= len(hits):
            self.place(0)

    def line_at(self, y: int) -> Line:
        """One line of a hit."""
        index, part = divmod(y, self.tall)
        if index >= len(self.hits) or self._look is None:
            return BLANK
        hit = self.hits[index]
        gutter = Span(self._look.glyphs.cursor if index == self.cursor and part == 0 else " ", "chosen")
        return (gutter, *lines(hit, self._entries.get(str(hit.path)), self.room - 1, self._look)[part])

    def opened(self) -> None:
        """Tells that it is to be opened."""
        self.post_message(self.Opened())
