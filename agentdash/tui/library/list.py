"""The session list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from textual.message import Message

from agentdash.replay.library.entry import Entry
from agentdash.tui.library.cells import Item, LibraryRow, Longest, card, columns
from agentdash.tui.primitives.columns import ColumnList
from agentdash.tui.primitives.spans import Line
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
