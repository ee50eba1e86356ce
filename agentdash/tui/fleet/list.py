"""The fleet list: groups of workers, one line each, and more for those that need the user.

Drawn by hand: rows differ in height, heads stand between them, and every second ages change. `DataTable` has
no heads between its rows. `OptionList` has, but replacing the prompts of 300 options took 17 to 27 ms of CPU
(Textual 8.2.8), without composing their columns, where a second that passes costs the whole dashboard 11 to
13 ms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual.message import Message

from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.cells import (
    COLUMNS,
    SANDBOX_COLUMNS,
    Layout,
    layout,
    row_height,
    row_lines,
    sandbox_lines,
)
from agentdash.tui.fleet.rows import Head, Row
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph
from agentdash.tui.theme import GROUP_TONES, UNICODE, Glyphs
from agentdash.tui.view import View

_EDGES_CELLS: Final = 2
"""The cursor before a row, and the margin between its last column and the scroll bar."""


class WorkerPointed(Message):
    """The cursor of a screen is on another worker: keys that act on a worker act on this one."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        super().__init__()


def empty_state(snapshot: Snapshot | None, filtered: bool, cells: int) -> list[Line]:
    """Return the lines shown without workers: every source, and what it did not find.

    Args:
        snapshot: None until the first one arrives.
        filtered: whether a filter hides all workers.
        cells: width of the list.
    """
    if snapshot is None:
        return [BLANK, (Span("  Looking for workers."),)]
    if filtered:
        return [BLANK, (Span("  No worker matches this filter."),), (Span("  esc clears it.", "muted"),)]
    lines: list[Line] = [BLANK, (Span("  No workers yet.", "strong"),), BLANK]
    name_cells = max((len(source.name) for source in snapshot.sources), default=0)
    for source in snapshot.sources:
        head = (Span(f"  {source.name.ljust(name_cells + 2)}", "" if source.ok else "ask"),)
        lines += paragraph(source.detail or "nothing found", cells - 2, "muted", head=head)
    hint = "Start codex, or an agent in a tmux pane: it shows up here by itself. Or try: agentdash demo"
    return [*lines, BLANK, *paragraph(hint, cells - 2, "muted", indent=2)]


class FleetList(Choices):
    """The rows of the fleet. The cursor stays on its worker when rows move."""

    def __init__(self) -> None:
        super().__init__(id="fleet")
        self.rows: tuple[Row, ...] = ()
        self.column_layout: Layout = layout(COLUMNS, 80, UNICODE)
        self._by_id: Mapping[str, Worker] = {}
        self._shows_sandboxes = False

    def set_layout(self, glyphs: Glyphs, *, shows_sandboxes: bool) -> None:
        """Fit the rows into the present width.

        Args:
            shows_sandboxes: in place of what workers do, what their sandboxes are.
        """
        self._shows_sandboxes = shows_sandboxes
        new = layout(SANDBOX_COLUMNS if shows_sandboxes else COLUMNS, self.room - _EDGES_CELLS, glyphs)
        if new != self.column_layout:
            self.column_layout = new
            self._heights.clear()
            self._drawn.clear()
            self.repaint()

    def show_rows(
        self,
        rows: tuple[Row, ...],
        view: View,
        placeholder: Sequence[Line] = (),
        *,
        past: int = 0,
        is_held: bool = False,
    ) -> None:
        """Show rows with the cursor on the selected worker.

        Args:
            placeholder: lines to show without rows.
            past: number of past workers without rows: they are counted below a head.
            is_held: rows keep their heights.
        """
        kept = {row.id: height for row, height in zip(self.rows, self._heights, strict=False) if is_held}
        self.begin(view.look)
        self.rows, self._by_id = rows, view.by_id
        above = (None, *(row.head for row in rows))
        is_first = [row.head != head for row, head in zip(rows, above, strict=False)]
        heads = [self._head(row.head) if first else BLANK for row, first in zip(rows, is_first, strict=True)]
        heights = [kept.get(row.id) or self._height(index) for index, row in enumerate(rows)]
        counted = Head(f"{past} PAST", "x shows them", GROUP_TONES["past"])
        below = [self._head(counted)] if past else []
        self.place(heads, heights, below or (() if rows else placeholder))
        selected = next((index for index, row in enumerate(rows) if row.id == view.selected_id), None)
        index = min(self.cursor if selected is None else selected, max(0, self.total - 1))
        if index != self.cursor:
            self.set_cursor(index)

    def _head(self, head: Head) -> Line:
        detail = f"  {head.detail}" if head.detail else ""
        spans = (Span(" "), Span(head.name, head.tone), Span(detail, "muted"))
        return fit(spans, max(1, self.room), self.look.glyphs.ellipsis)

    def _height(self, index: int) -> int:
        if self._shows_sandboxes:
            return len(self._lines(index))
        row = self.rows[index]
        return row_height((row, self._by_id[row.id]), self.column_layout, self.room - _EDGES_CELLS, self.look)

    def lines_of(self, index: int) -> list[Line]:
        """Return the lines of a row."""
        row = self.rows[index]
        lines = sandbox_lines if self._shows_sandboxes else row_lines
        return lines((row, self._by_id[row.id]), self.column_layout, self.room - _EDGES_CELLS, self.look)

    def cursor_moved(self) -> None:
        """Post the worker under the cursor."""
        self.post_message(WorkerPointed(self.rows[self.cursor].id))
