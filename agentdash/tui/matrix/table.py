"""The matrix as a table: a `DataTable` with a cursor on cells."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from agentdash.model.limits import MAX_INDENT
from agentdash.tui.format import elide
from agentdash.tui.keys import bindings
from agentdash.tui.matrix.cells import SHORT_HEADS, Aspect, MatrixCell, MatrixRow
from agentdash.tui.messages import WorkerPointed
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.signs import ascii_signs
from agentdash.tui.primitives.spans import Span
from agentdash.tui.textual_internals import forget_drawn_cells
from agentdash.tui.theme import ASCII, TONES_OF_STATES, Look

_LONG_HEADS_FROM_CELLS = 84
"""In a narrower table the heads are short."""
_GAP_CELLS = 2
"""Between two columns with long heads; with short ones it is a cell less."""
_MAX_NAME_CELLS = 60


class MatrixTable(DataTable[Text], inherit_bindings=False):
    """The rows of all workers. Its cursor is on one aspect of one worker, and stays there."""

    BINDINGS = bindings(
        "down", "up", "top", "bottom", "page-down", "page-up", "tab-right", "tab-left", "open"
    )

    def __init__(self, tones: Lines) -> None:
        super().__init__(id="matrix", cursor_type="cell", fixed_columns=1, cell_padding=0)
        self._tones = tones
        """A widget that resolves tones."""
        self._rows: list[MatrixRow] = []
        self._drawn: list[list[Span]] = []
        self._is_ascii = False
        self._layout: tuple[int, str, int] | None = None
        """Width, theme, and number of rows of what is drawn."""
        self._pointed: str | None = None
        """The worker that was under the cursor last."""
        self._is_filled = False
        """Whether rows are being added: with each, the cursor is set again."""

    def on_unmount(self) -> None:
        """Free what was drawn."""
        forget_drawn_cells(self)
        self._rows, self._drawn = [], []

    @property
    def aspect(self) -> Aspect:
        """Return the aspect under the cursor."""
        return tuple(Aspect)[max(0, self.cursor_coordinate.column - 1)]

    @property
    def row(self) -> MatrixRow | None:
        """Return the row under the cursor."""
        at = self.cursor_coordinate.row
        return self._rows[at] if at < len(self._rows) else None

    @property
    def cell(self) -> MatrixCell | None:
        """Return the cell under the cursor."""
        return self.row.cells[self.aspect] if self.row else None

    def show_rows(self, rows: list[MatrixRow], selected: str | None, look: Look) -> None:
        """Show these rows; at first the cursor is on the worst cell of the selected worker."""
        before = self.row.worker.id if self.row else None
        self._rows = rows
        self._is_ascii = look.glyphs is ASCII
        layout = (self.size.width, self.app.theme, len(rows))
        drawn = [self._spans(row, look) for row in rows]
        if layout != self._layout:
            self._rebuild(drawn, before or selected, first=self._layout is None)
            self._layout = layout
        else:
            self._update(drawn)
            if (place := self._place_of(before)) != self.cursor_coordinate.row:
                self.move_cursor(row=place)
        self._drawn = drawn

    def _place_of(self, worker: str | None) -> int:
        """Return the number of a worker's row; 0 where it has none."""
        return next((number for number, row in enumerate(self._rows) if row.worker.id == worker), 0)

    def _spans(self, row: MatrixRow, look: Look) -> list[Span]:
        """Return the name and the signs of a row, padded to their columns."""
        worker, is_ascii = row.worker, look.glyphs is ASCII
        tone = TONES_OF_STATES[worker.state] if worker.needs_you else ""
        corner = look.glyphs.tree[1]
        stem = "  " * min(worker.depth - 1, MAX_INDENT) + corner if worker.depth else ""
        name = elide(stem + worker.name, self._name_cells, look.glyphs.ellipsis)
        signs = []
        for aspect, head in self._heads.items():
            sign = row.cells[aspect].sign(look.glyphs, ascii_only=is_ascii)
            signs.append(sign._replace(text=" " * ((len(head) - 1) // 2) + sign.text))
        return [Span(name, tone), *signs]

    @property
    def _heads(self) -> dict[Aspect, str]:
        """Return the heads of the columns."""
        if self.size.width >= _LONG_HEADS_FROM_CELLS:
            return {aspect: aspect.value for aspect in Aspect}
        return SHORT_HEADS

    @property
    def _gap(self) -> int:
        return _GAP_CELLS if self.size.width >= _LONG_HEADS_FROM_CELLS else _GAP_CELLS - 1

    @property
    def _name_cells(self) -> int:
        columns = sum(len(head) + self._gap for head in self._heads.values())
        return max(8, min(_MAX_NAME_CELLS, self.scrollable_content_region.width - columns - self._gap))

    def _rebuild(self, drawn: list[list[Span]], selected: str | None, *, first: bool) -> None:
        column = self.cursor_coordinate.column
        self._is_filled = True
        self.clear(columns=True)
        self.add_column("worker", key="worker", width=self._name_cells + self._gap)
        for aspect, head in self._heads.items():
            self.add_column(head, key=aspect, width=len(head) + self._gap)
        self.add_rows(map(self._text, spans) for spans in drawn)
        self._is_filled = False
        at = self._place_of(selected)
        if first and drawn:
            if not any(cell.findings for cell in self._rows[at].cells.values()):
                at = 0
            cells = list(self._rows[at].cells.values())
            column = 1 + next((number for number, cell in enumerate(cells) if cell.findings), 0)
        self.move_cursor(row=at, column=max(1, column))

    def _update(self, drawn: list[list[Span]]) -> None:
        """Replace the cells that differ: also where rows have changed places, as they do every second."""
        if drawn == self._drawn:
            return
        forget_drawn_cells(self)
        for row, (new, old) in enumerate(zip(drawn, self._drawn, strict=True)):
            for column, (span, was) in enumerate(zip(new, old, strict=True)):
                if span != was:
                    self.update_cell_at(Coordinate(row, column), self._text(span))

    def _text(self, span: Span) -> Text:
        style = self._tones.tone_style(span.tone, 0)
        text = ascii_signs(span.text) if self._is_ascii else span.text
        if not span.tone:
            return Text(text, end="")
        shown = Style(color=style.color, bold=style.bold, dim=style.dim, reverse=style.reverse)
        return Text(text, shown, end="")

    def _move(self, *, rows: int = 0, columns: int = 0) -> None:
        at = self.cursor_coordinate
        row = max(0, min(at.row + rows, self.row_count - 1))
        column = max(1, min(at.column + columns, len(Aspect)))
        self.move_cursor(row=row, column=column)

    def action_down(self) -> None:
        """Move to the next worker."""
        self._move(rows=1)

    def action_up(self) -> None:
        """Move to the previous worker."""
        self._move(rows=-1)

    def action_top(self) -> None:
        """Move to the first worker."""
        self._move(rows=-self.row_count)

    def action_bottom(self) -> None:
        """Move to the last worker."""
        self._move(rows=self.row_count)

    def action_page(self, direction: int) -> None:
        """Move a page down (1) or up (-1)."""
        self._move(rows=direction * max(1, self.size.height - 1))

    def action_tab(self, step: int) -> None:
        """Move to the next (1) or previous (-1) aspect."""
        self._move(columns=step)

    def action_open(self) -> None:
        """Open the cell under the cursor."""
        self.action_select_cursor()

    def watch_cursor_coordinate(self, old: Coordinate, new: Coordinate) -> None:
        """Post the worker under the cursor, where it is another one."""
        super().watch_cursor_coordinate(old, new)
        if self.row is not None and self.row.worker.id != self._pointed and not self._is_filled:
            self._pointed = self.row.worker.id
            self.post_message(WorkerPointed(self._pointed))
