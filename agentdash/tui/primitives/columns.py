"""Lists of items: one line in columns, or two lines (a card) where there is too little room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from rich.cells import cell_len

from agentdash.tui.format import pad
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, width
from agentdash.tui.theme import UNICODE, Glyphs, Look

Item = TypeVar("Item")

_GAP_CELLS = 1
_REST_GAP_CELLS = 2
"""Wider than the other gaps: the rest column has text of any length, the others have short values."""
_DEFAULT_CELLS = 80
"""Width of a list until its real one is known."""


@dataclass(frozen=True, kw_only=True)
class Column(Generic[Item]):
    """A column of a list."""

    title: str
    """Left out where the column is narrower."""
    width: Callable[[int, Glyphs], int]
    """Cells of the column in a list of so many cells; 0: the column is left out."""
    cell: Callable[[Item, int, Look], Line]
    """Content for an item in at most so many cells."""
    align_right: bool = False
    sorts: str | None = None
    """By what a click on the title sorts the list; None: it does not."""
    needs: str | None = None
    """What the items must have for it to be shown; None: nothing."""


@dataclass(frozen=True, kw_only=True)
class Columns(Generic[Item]):
    """The columns of a list in their order: `left`, `main`, `right`, `rest`.

    The widths of `main` and `rest` are minima. `rest` takes the cells that no other column needs; where
    these are too few, it is left out, and `main` takes them.
    """

    left: tuple[Column[Item], ...]
    main: Column[Item]
    right: tuple[Column[Item], ...]
    rest: Column[Item] | None = None

    def layout(self, cells: int, glyphs: Glyphs, features: Collection[str] = ()) -> Layout[Item]:
        """Return the columns that fit into `cells`, those that need something only where it is a feature."""
        left = _placed(self.left, cells, glyphs, features)
        right = _placed(self.right, cells, glyphs, features)
        main = self.main.width(cells, glyphs)
        spare = cells - main - sum(placed.cells + _GAP_CELLS for placed in (*left, *right))
        if self.rest is None or spare - _REST_GAP_CELLS < self.rest.width(cells, glyphs):
            return Layout(left=left, main=Placed(self.main, max(1, main + spare)), right=right)
        rest = Placed(self.rest, spare - _REST_GAP_CELLS)
        return Layout(left=left, main=Placed(self.main, main), right=right, rest=rest)


@dataclass(frozen=True)
class Placed(Generic[Item]):
    """A column with its width."""

    column: Column[Item]
    cells: int

    def content(self, item: Item, look: Look, *, before: int = 0, after: int = 0) -> Line:
        """Return the item's cell, filled up to the width of the column, between two gaps."""
        line = self.column.cell(item, self.cells, look)
        fill = self.cells - width(line)
        if self.column.align_right:
            return _spaced(line, before + fill, after)
        return _spaced(line, before, fill + after)

    def title(self, gap: int, sort: str, sign: str) -> Span:
        """Return the title, filled up to the width of the column, after a gap (the first: the gutter)."""
        is_sorted = bool(sort) and self.column.sorts == sort
        title = self.column.title + (sign if is_sorted else "")
        title = title if cell_len(title) <= self.cells else ""
        action = f"app.sort_by('{self.column.sorts}')" if self.column.sorts else None
        text = pad(title, self.cells, right=self.column.align_right)
        return Span(" " * gap + text, "chosen" if is_sorted else "title", action)


def _filled(line: Line, cells: int) -> Line:
    return _spaced(line, 0, cells - width(line))


def _spaced(line: Line, before: int, after: int) -> Line:
    """Return a line with spaces before and after it. They have no tone: some are underlined, or a ground."""
    left = (Span(" " * before),) if before > 0 else ()
    right = (Span(" " * after),) if after > 0 else ()
    return *left, *line, *right


def _placed(
    columns: Sequence[Column[Item]], cells: int, glyphs: Glyphs, features: Collection[str]
) -> tuple[Placed[Item], ...]:
    shown = (column for column in columns if column.needs is None or column.needs in features)
    placed = (Placed(column, column.width(cells, glyphs)) for column in shown)
    return tuple(each for each in placed if each.cells)


@dataclass(frozen=True, kw_only=True)
class Layout(Generic[Item]):
    """The columns of a list of a certain width."""

    left: tuple[Placed[Item], ...]
    main: Placed[Item]
    right: tuple[Placed[Item], ...]
    rest: Placed[Item] | None = None

    def titles(self, sort: str = "", sign: str = "") -> Line:
        """Return the title row, gutter included.

        Args:
            sort: by what the list is sorted; the column that sorts so is marked.
            sign: the mark.
        """
        titles = [placed.title(_GAP_CELLS, sort, sign) for placed in (*self.left, self.main, *self.right)]
        return (*titles, self.rest.title(_REST_GAP_CELLS, sort, sign)) if self.rest else tuple(titles)

    def line(self, item: Item, look: Look, *, main: Line | None = None) -> Line:
        """Return an item on one line. A gap has the tone of its neighbour that is farther from `main`.

        Args:
            look: what drawing depends on beside it.
            main: replaces the content of the main column.
        """
        spans: list[Span] = []
        for placed in self.left:
            spans += placed.content(item, look, after=_GAP_CELLS)
        spans += self.main.content(item, look) if main is None else _filled(main, self.main.cells)
        for placed in self.right:
            spans += placed.content(item, look, before=_GAP_CELLS)
        if self.rest:
            spans += [Span(" " * _REST_GAP_CELLS), *self.rest.column.cell(item, self.rest.cells, look)]
        return tuple(spans)


class ColumnList(Choices, Generic[Item]):
    """A list of items in columns or as cards.

    Subclasses define `COLUMNS`, `total`, `item_at` and `card`.
    """

    COLUMNS: ClassVar[Columns[Any]]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.column_layout: Layout[Item] = self.COLUMNS.layout(_DEFAULT_CELLS, UNICODE)
        self._look: Look | None = None
        self._placeholder: Sequence[Line] = ()

    def item_at(self, index: int) -> Item:
        """Return the item of this index."""
        raise NotImplementedError

    def card(self, item: Item, cells: int, look: Look) -> tuple[Line, Line]:
        """Return an item on two lines."""
        raise NotImplementedError

    def show_items(self, selected: int | None, look: Look, placeholder: Sequence[Line]) -> None:
        """Repaint what changed, with the cursor on the item of index `selected`.

        Args:
            selected: None: the cursor keeps its index.
            look: what drawing depends on beside the items.
            placeholder: lines to show where there are no items.
        """
        self._look = look
        self._placeholder = placeholder
        self.redraw(self.total * self.item_height or len(placeholder))
        index = min(self.cursor if selected is None else selected, max(0, self.total - 1))
        if index != self.cursor:
            self.set_cursor(index)

    def set_layout(self, form: Literal["columns", "cards"], glyphs: Glyphs) -> None:
        """Fit the items into the present width: on one line in columns, or on two lines."""
        self.column_layout = self.COLUMNS.layout(self.room - 1, glyphs)
        self.item_height = 1 if form == "columns" else 2
        self.repaint()

    def line_at(self, y: int) -> Line:
        """Return one line of an item, or of the placeholder."""
        if not self.total or self._look is None:
            return self._placeholder[y] if y < len(self._placeholder) else BLANK
        index, part = divmod(y, self.item_height)
        if index >= self.total:
            return BLANK
        item = self.item_at(index)
        gutter = self.gutter_span(index, part, self._look.glyphs)
        if self.item_height == 1:
            return (gutter, *self.column_layout.line(item, self._look))
        return (gutter, *self.card(item, self.room - 1, self._look)[part])
