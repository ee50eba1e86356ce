"""The session list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from textual.message import Message

from agentdash.replay.library.entry import Entry
from agentdash.replay.library.search import Hit
from agentdash.tui.format import clock, pad
from agentdash.tui.library.cells import Item, LibraryRow, Longest, card, columns, title, when
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.columns import ColumnList
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, justify
from agentdash.tui.theme import Glyphs, Look


class LibraryList(ColumnList[Item]):
    """The rows of the library. The cursor stays on its entry when families are merged above it."""

    COLUMNS = columns(Longest())

    class CursorMoved(Message):
        """Another entry was selected by key or mouse."""

    class Opened(Message):
        """An entry was double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.rows: tuple[LibraryRow, ...] = ()
        self._entries: Mapping[str, Entry] = {}
        self._longest = Longest()

    @property
    def total(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def selected(self) -> LibraryRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def visible_keys(self) -> tuple[str, ...]:
        """Keys of the entries in the viewport."""
        first = self.scroll_offset.y // self.item_height
        end = first + self.size.height // self.item_height + 1
        return tuple(row.key for row in self.rows[first:end])

    def item_at(self, index: int) -> Item:
        """Return a row and its entry."""
        row = self.rows[index]
        return row, self._entries[row.key]

    def card(self, item: Item, cells: int, look: Look) -> tuple[Line, Line]:
        """Return an entry on two lines."""
        return card(item, cells, look)

    def show_rows(
        self,
        rows: tuple[LibraryRow, ...],
        entries: Mapping[str, Entry],
        selected_key: str | None,
        look: Look,
        placeholder: Sequence[Line],
    ) -> None:
        """Show these rows with the cursor on the selected entry, or `placeholder` where there are no rows."""
        rearranged = rows is not self.rows
        self.rows = rows
        self._entries = entries
        selected = None
        if rearranged:
            self._fit_columns(entries, look.glyphs)
        if rearranged:  # else the cursor may be ahead of the model, which its message has not reached yet
            selected = next((index for index, row in enumerate(rows) if row.key == selected_key), None)
        self.show_items(selected, look, placeholder)

    def set_layout(self, form: Literal["columns", "cards"], glyphs: Glyphs) -> None:
        """Fit the items into the present width, columns by their content."""
        super().set_layout(form, glyphs)
        self.column_layout = columns(self._longest).layout(self.room - 1, glyphs)

    def _fit_columns(self, entries: Mapping[str, Entry], glyphs: Glyphs) -> None:
        longest = Longest.of(entries[row.key] for row in self.rows)
        if longest != self._longest:
            self._longest = longest
            self.column_layout = columns(longest).layout(self.room - 1, glyphs)
            self.repaint()

    def cursor_moved(self) -> None:
        """Post that the cursor has moved."""
        self.post_message(self.CursorMoved())

    def item_opened(self) -> None:
        """Post that an entry was double-clicked."""
        self.post_message(self.Opened())


# ------------------------------------------------------------ the hits of a full-text search


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
