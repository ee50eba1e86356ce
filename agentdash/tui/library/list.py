"""The session list by day, and the hits of a full-text search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.message import Message

from agentdash.replay.library.entry import Entry
from agentdash.replay.library.search import Hit
from agentdash.tui.library.cells import LibraryRow, day, row_height, row_lines, title, when
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, justify
from agentdash.tui.theme import Look


class LibraryList(Choices):
    """The rows of the library. The cursor stays on its entry when families are merged above it."""

    class Moved(Message):
        """Another session was selected by key or mouse."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.rows: tuple[LibraryRow, ...] = ()
        self._entries: Mapping[str, Entry] = {}
        self._by_day = True
        self._heads: Sequence[Line] = ()
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

    def cursor_moved(self) -> None:
        """Post that another session was selected."""
        self.post_message(self.Moved())

    def lines_of(self, index: int) -> list[Line]:
        """Return the lines of a row."""
        row = self.rows[index]
        return row_lines(row, self._entries[row.key], self.room - 1, self.look, with_date=not self._by_day)

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
        self.begin(look)
        rearranged = rows is not self.rows
        self.rows, self._entries, self._by_day = rows, entries, by_day
        if rearranged:
            days = [day(row.family.newest, look.now) if by_day else "" for row in rows]
            self._heads = [
                (Span(f" {name}", "title"),) if name != above else BLANK
                for name, above in zip(days, ["", *days], strict=False)
            ]
        heights = [row_height(row, entries[row.key], self.room - 1, look) for row in rows]
        self.place(self._heads, heights, () if rows else placeholder)
        index = min(self.cursor, max(0, len(rows) - 1))
        if rearranged:  # else the cursor may be ahead of the model, which its message has not reached yet
            index = next((number for number, row in enumerate(rows) if row.key == selected_key), index)
        if index != self.cursor:
            self.set_cursor(index)


# ------------------------------------------------------------ the hits of a full-text search


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


class HitList(Choices):
    """The hits, two lines each."""

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
        self.begin(look)
        self.hits, self._entries = hits, entries
        self.place([BLANK] * len(hits), [2] * len(hits), () if hits else placeholder)
        if self.cursor >= len(hits):
            self.set_cursor(0)

    def lines_of(self, index: int) -> list[Line]:
        """Return the lines of a hit: its session, then its kind and the text around the match."""
        hit, cells, dots = self.hits[index], self.room - 1, self.look.glyphs.ellipsis
        entry = self._entries.get(str(hit.path))
        at = Span(when(hit.at, with_date=True), "muted")
        head = justify((Span(title(entry) if entry else hit.thread),), (at,), cells, dots)
        kind = Span(f"  {hit.what}: ")
        return [head, fit((kind, *hit_text(hit, cells - len(kind.text))), cells, dots)]
