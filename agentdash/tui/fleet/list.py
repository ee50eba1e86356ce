"""The fleet list: groups of workers, one line each, and more for those that need the user.

Drawn by hand: rows differ in height, heads stand between them, and every second ages change. `DataTable` has
no heads between its rows. `OptionList` has, but replacing the prompts of 300 options took 17 to 27 ms of CPU
(Textual 8.2.8), without composing their columns, where a second that passes costs the whole dashboard 11 to
13 ms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from textual.message import Message

from agentdash.model.states import Group
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.cells import COLUMNS, row_lines
from agentdash.tui.fleet.columns import Item, Layout, layout
from agentdash.tui.fleet.rows import Row
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph
from agentdash.tui.theme import GROUP_TONES, UNICODE, Glyphs, Look
from agentdash.tui.view import View, WorkerPointed

_EDGES_CELLS: Final = 2
"""The cursor before a row, and the margin between its last column and the scroll bar."""
GROUP_NAMES: Final[dict[Group, str]] = {
    Group.NEEDS_YOU: "NEEDS YOU",
    Group.RUNNING: "RUNNING",
    Group.UNCLEAR: "UNCLEAR",
    Group.DONE: "DONE",
    Group.PAST: "PAST",
}


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

    class Opened(Message):
        """A worker was double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.rows: tuple[Row, ...] = ()
        self.column_layout: Layout = layout(COLUMNS, 80, UNICODE)
        self._by_id: Mapping[str, Worker] = {}
        self._look: Look | None = None
        self._heights: dict[str, int] = {}
        """Of each row by its worker; emptied when the width changes."""
        self._places: list[Line | tuple[int, int]] = []
        """For each line: a head, or a row and which line of it."""
        self._tops: list[int] = []
        """The first line of each row."""
        self._drawn: dict[int, list[Line]] = {}
        """The lines of rows that were drawn for the present second."""

    @property
    def total(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def item_at(self, index: int) -> Item:
        """Return a row and its worker."""
        row = self.rows[index]
        return row, self._by_id[row.id]

    @property
    def _cells(self) -> int:
        """Width of a row."""
        return self.room - _EDGES_CELLS

    def set_layout(self, glyphs: Glyphs, features: Collection[str]) -> None:
        """Fit the rows into the present width, with the columns that these workers have values for."""
        new = layout(COLUMNS, self._cells, glyphs, features)
        if new == self.column_layout:
            return
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
            rows: in their order.
            view: the workers, and the selected one.
            placeholder: lines to show without rows.
            past: number of past workers; those without rows are counted below a head.
            is_held: rows keep their heights.
        """
        self.rows = rows
        self._by_id = view.by_id
        self._look = view.look
        self._drawn.clear()
        self._place(view.look, past=past, is_held=is_held)
        self._places = self._places or list(placeholder)
        self.redraw(len(self._places))
        selected = next((index for index, row in enumerate(rows) if row.id == view.selected_id), None)
        index = min(self.cursor if selected is None else selected, max(0, self.total - 1))
        if index != self.cursor:
            self.set_cursor(index)

    def _place(self, look: Look, *, past: int, is_held: bool) -> None:
        """Put heads and rows on their lines."""
        before, self._heights = self._heights, {}
        self._places, self._tops = [], []
        group = None
        for index, row in enumerate(self.rows):
            if row.group is not group:
                group = row.group
                hint = "x hides them" if group is Group.PAST else ""
                self._places.append(self._head(group, GROUP_NAMES[group], hint, look))
            height = before.get(row.id) if is_held else None
            if height is None:
                height = len(self._lines_of(index, look)) if self.item_at(index)[1].needs_you else 1
            self._heights[row.id] = height
            self._tops.append(len(self._places))
            self._places += [(index, part) for part in range(height)]
        if past and group is not Group.PAST:
            self._places.append(self._head(Group.PAST, f"{past} PAST", "x shows them", look))

    def _head(self, group: Group, name: str, hint: str, look: Look) -> Line:
        spans = (Span(" "), Span(name, GROUP_TONES[group]), Span(f"  {hint}" if hint else "", "muted"))
        return fit(spans, max(1, self.room), look.glyphs.ellipsis)

    def _lines_of(self, index: int, look: Look) -> list[Line]:
        if (lines := self._drawn.get(index)) is None:
            lines = row_lines(self.item_at(index), self.column_layout, self._cells, look)
            self._drawn[index] = lines
        return lines

    # ---------------------------------------------------------------- lines

    def top_of(self, index: int) -> int:
        """Return the first line of a row."""
        return self._tops[index] if index < len(self._tops) else 0

    def height_of(self, index: int) -> int:
        """Return how many lines a row has."""
        return self._heights.get(self.rows[index].id, 1) if index < len(self.rows) else 1

    def index_at(self, y: int) -> int | None:
        """Return the row that has a line; None for heads, and below the last row."""
        place = self._places[y] if 0 <= y < len(self._places) else BLANK
        return place[0] if place and isinstance(place[0], int) else None

    def line_at(self, y: int) -> Line:
        """Return one line of a row, a head, or of the placeholder."""
        if self._look is None or not 0 <= y < len(self._places):
            return BLANK
        match self._places[y]:
            case (int(index), int(part)):
                lines = self._lines_of(index, self._look)
                # a row that keeps its height may have fewer lines than that now
                line = lines[part] if part < len(lines) else BLANK
                return (self.gutter_span(index, part, self._look.glyphs), *line)
            case line:
                return line

    def cursor_moved(self) -> None:
        """Post the worker under the cursor."""
        self.post_message(WorkerPointed(self.rows[self.cursor].id))

    def item_opened(self) -> None:
        """Post that a worker was double-clicked."""
        self.post_message(self.Opened())
