"""The session list by day, and the hits of a full-text search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual.message import Message

from agentdash.replay.library.entry import Entry
from agentdash.replay.library.search import Hit
from agentdash.tui.format import clock, pad
from agentdash.tui.library.cells import LibraryRow, day, row_height, row_lines, title, when
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, justify
from agentdash.tui.theme import Look


class PlacedList(Choices):
    """A list whose items have one or two lines, with heads between them. Subclasses define `lines_of`."""

    class CursorMoved(Message):
        """Another item was selected by key or mouse."""

    class Opened(Message):
        """An item was double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self._look: Look | None = None
        self._placeholder: Sequence[Line] = ()
        self._tops: list[int] = []
        """The first line of each item."""
        self._places: list[tuple[int, int] | str] = []
        """What each line is: a part of an item, or the head of a day."""

    @property
    def total(self) -> int:
        """Number of items."""
        return len(self._tops)

    def lines_of(self, index: int, look: Look) -> list[Line]:
        """Return the lines of an item."""
        raise NotImplementedError

    def place(
        self, heads: Sequence[str], heights: Sequence[int], look: Look, placeholder: Sequence[Line]
    ) -> None:
        """Lay out the items, and repaint what changed.

        Args:
            heads: what stands above each item; empty: nothing.
            heights: how many lines each item has.
            look: what drawing depends on beside the items.
            placeholder: lines to show without items.
        """
        self._look, self._placeholder = look, placeholder
        self._tops, self._places = [], []
        for index, (head, height) in enumerate(zip(heads, heights, strict=True)):
            self._places += [head] if head else []
            self._tops.append(len(self._places))
            self._places += [(index, part) for part in range(height)]
        self.redraw(len(self._places) or len(placeholder))

    def top_of(self, index: int) -> int:
        """Return the first line of an item."""
        return self._tops[index] if index < self.total else 0

    def height_of(self, index: int) -> int:
        """Return how many lines an item has."""
        top = self.top_of(index)
        return sum(not isinstance(place, str) and place[0] == index for place in self._places[top : top + 2])

    def index_at(self, y: int) -> int | None:
        """Return the item that has a line; None for heads, and below the last item."""
        place = self._places[y] if y < len(self._places) else ""
        return None if isinstance(place, str) else place[0]

    def line_at(self, y: int) -> Line:
        """Return one line of an item, a head, or of the placeholder."""
        if self._look is None or not self.total:
            return self._placeholder[y] if y < len(self._placeholder) else BLANK
        place = self._places[y] if y < len(self._places) else ""
        if isinstance(place, str):
            return (Span(f" {place}", "title"),)
        index, part = place
        lines = self.lines_of(index, self._look)
        return (self.gutter_span(index, part, self._look.glyphs), *(lines[part] if part < len(lines) else ()))

    def cursor_moved(self) -> None:
        """Post that the cursor has moved."""
        self.post_message(self.CursorMoved())

    def item_opened(self) -> None:
        """Post that an item was double-clicked."""
        self.post_message(self.Opened())


class LibraryList(PlacedList):
    """The rows of the library. The cursor stays on its entry when families are merged above it."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.rows: tuple[LibraryRow, ...] = ()
        self._entries: Mapping[str, Entry] = {}
        self._by_day = True
        self._heads: Sequence[str] = ()
        """What stands above each row."""

    @property
    def selected(self) -> LibraryRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def visible_keys(self) -> tuple[str, ...]:
        """Keys of the entries in the viewport."""
        top = self.scroll_offset.y
        shown = (self.index_at(y) for y in range(top, top + self.size.height))
        return tuple(dict.fromkeys(self.rows[index].key for index in shown if index is not None))

    def lines_of(self, index: int, look: Look) -> list[Line]:
        """Return the lines of a row."""
        row = self.rows[index]
        return row_lines(row, self._entries[row.key], self.room - 1, look, with_date=not self._by_day)

    def show_rows(
        self,
        rows: tuple[LibraryRow, ...],
        entries: Mapping[str, Entry],
        selected_key: str | None,
        look: Look,
        placeholder: Sequence[Line],
        *,
        by_day: bool,
    ) -> None:
        """Show these rows with the cursor on the selected entry, or `placeholder` without rows.

        Args:
            by_day: whether days have heads, and rows the time of day alone.
        """
        rearranged = rows is not self.rows
        self.rows, self._entries, self._by_day = rows, entries, by_day
        if rearranged:
            days = [day(row.family.newest, look.now) if by_day else "" for row in rows]
            self._heads = [
                name if name != above else "" for name, above in zip(days, ["", *days], strict=False)
            ]
        heights = [row_height(row, entries[row.key], self.room - 1, look) for row in rows]
        self.place(self._heads, heights, look, placeholder)
        index = min(self.cursor, max(0, len(rows) - 1))
        if rearranged:  # else the cursor may be ahead of the model, which its message has not reached yet
            index = next((number for number, row in enumerate(rows) if row.key == selected_key), index)
        if index != self.cursor:
            self.set_cursor(index)


# ------------------------------------------------------------ the hits of a full-text search


_TITLE_CELLS: Final = 22
_TWO_LINES_BELOW_CELLS: Final = 90
"""In a narrower list a hit takes two lines: one would leave less than half of it to the text."""


def hit_text(hit: Hit, cells: int) -> Line:
    """Return the text of a hit with its matches marked, from where the first match fits into the line."""
    first = hit.marks[0] if hit.marks else (0, 0)
    start = 0 if first[1] < cells else min(first[0], first[1] - cells // 2)
    spans: list[Span] = [Span("…", "muted")] if start else []
    at = start
    for begin, end in hit.marks:
        if begin >= at:
            spans += [Span(hit.text[at:begin], "muted"), Span(hit.text[begin:end], "strong")]
            at = end
    return (*spans, Span(hit.text[at:], "muted"))


class HitList(PlacedList):
    """The hits, one or two lines each."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.hits: Sequence[Hit] = ()
        self._entries: Mapping[str, Entry] = {}

    @property
    def selected(self) -> Hit | None:
        """The hit under the cursor."""
        return self.hits[self.cursor] if self.cursor < len(self.hits) else None

    def show_hits(
        self, hits: Sequence[Hit], entries: Mapping[str, Entry], look: Look, placeholder: Sequence[Line]
    ) -> None:
        """Show these hits, or `placeholder` without any; the cursor keeps its index."""
        self.hits, self._entries = hits, entries
        height = 1 if self.room - 1 >= _TWO_LINES_BELOW_CELLS else 2
        self.place([""] * len(hits), [height] * len(hits), look, placeholder)
        if self.cursor >= len(hits):
            self.set_cursor(0)

    def lines_of(self, index: int, look: Look) -> list[Line]:
        """Return the lines of a hit: its session, its kind, and the text around the match."""
        hit, cells, dots = self.hits[index], self.room - 1, look.glyphs.ellipsis
        entry = self._entries.get(str(hit.path))
        name = title(entry) if entry else hit.thread
        kind = Span(f"{hit.what}: ")
        if cells < _TWO_LINES_BELOW_CELLS:
            head = justify((Span(name),), (Span(clock(hit.at), "muted"),), cells, dots)
            return [head, fit((Span("  "), kind, *hit_text(hit, cells - len(kind.text) - 2)), cells, dots)]
        begun = Span(f"{when(hit.at, with_date=True)} ", "muted")
        lead = (begun, Span(pad(name, _TITLE_CELLS, dots)), Span("  "), kind)
        room = cells - sum(len(span.text) for span in lead)
        return [fit((*lead, *hit_text(hit, room)), cells, dots)]
