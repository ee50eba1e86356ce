"""The columns of the fleet list: which of them there is room for, their titles, and a worker in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len

from agentdash.model.worker import Worker
from agentdash.tui.fleet.rows import Row
from agentdash.tui.format import pad
from agentdash.tui.primitives.spans import Line, Span, width
from agentdash.tui.theme import Glyphs, Look

Item: TypeAlias = tuple[Row, Worker]
_GAP_CELLS = 1


class Column(NamedTuple):
    """A column of a list."""

    title: str
    """Left out where the column is narrower."""
    width: Callable[[int, Glyphs], int] | None
    """Cells of it in a list of so many cells; 0: it is left out. None: it takes what the others leave."""
    cell: Callable[[Item, int, Look], Line]
    """Content for an item in at most so many cells."""
    align_right: bool = False
    sorts: str | None = None
    """By what a click on the title sorts the list; None: it does not."""


class Layout(NamedTuple):
    """The columns of a list of a certain width, with their widths."""

    columns: tuple[tuple[Column, int], ...]

    @property
    def main_at(self) -> int:
        """Return in which cell the column begins that takes what the others leave."""
        before = next(n for n, (column, _) in enumerate(self.columns) if column.width is None)
        return sum(cells + _GAP_CELLS for _, cells in self.columns[:before])

    @property
    def main_cells(self) -> int:
        """Return the width of that column."""
        return next(cells for column, cells in self.columns if column.width is None)

    def titles(self, sort: str = "", sign: str = "") -> Line:
        """Return the title row, gutter included.

        Args:
            sort: by what the list is sorted; the column that sorts so is marked.
            sign: the mark.
        """
        spans = []
        for column, cells in self.columns:
            is_sorted = bool(sort) and column.sorts == sort
            title = column.title + (sign if is_sorted else "")
            text = pad(title if cell_len(title) <= cells else "", cells, right=column.align_right)
            action = f"app.sort_by('{column.sorts}')" if column.sorts else None
            spans.append(Span(" " * _GAP_CELLS + text, "chosen" if is_sorted else "title", action))
        return tuple(spans)

    def line(self, item: Item, look: Look, *, main: Line | None = None) -> Line:
        """Return an item on one line. Spaces have no tone: some are underlined, or a ground.

        Args:
            item: a row and its worker.
            look: what drawing depends on beside it.
            main: replaces the content of the column that takes what the others leave.
        """
        spans: list[Span] = []
        for column, cells in self.columns:
            shown = main if main is not None and column.width is None else column.cell(item, cells, look)
            fill = " " * (cells - width(shown))
            before, after = (fill, "") if column.align_right else ("", fill)
            spans += [Span(before), *shown, Span(after + " " * _GAP_CELLS)]
        return (*spans[:-1], Span(spans[-1].text[_GAP_CELLS:]))


def layout(columns: Sequence[Column], cells: int, glyphs: Glyphs) -> Layout:
    """Return the columns that fit into `cells`."""
    widths = [column.width(cells, glyphs) if column.width else None for column in columns]
    rest = max(1, cells - sum(width + _GAP_CELLS for width in widths if width))
    placed = zip(columns, (rest if width is None else width for width in widths), strict=True)
    return Layout(tuple((column, width) for column, width in placed if width))
