"""The fleet list: groups of workers, one to three lines each.

Drawn by hand: rows have one to three lines, heads stand between them, and every second all ages change.
`DataTable` has no heads between its rows. `OptionList` has, but replacing the prompts of 300 options took 17
to 27 ms of CPU (Textual 8.2.8), without composing their columns, where a second that passes costs the whole
dashboard 11 to 13 ms, and a `j` 26 to 49 ms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from textual.message import Message

from agentdash.model.states import Group
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.cells import (
    CARDS_BELOW_CELLS,
    COLUMNS,
    COLUMNS_WITH_HOST,
    HOSTS_FROM_CELLS,
    Item,
    in_state_for,
)
from agentdash.tui.fleet.row_lines import row_height, row_lines
from agentdash.tui.fleet.rows import Row
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.columns import Layout
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, fit, paragraph, width
from agentdash.tui.theme import GROUP_TONES, UNICODE, Glyphs, Look, sign
from agentdash.tui.view import View

_GUTTER_CELLS: Final = 2
"""The cursor, and the mark of what is new."""
_MARGIN_CELLS: Final = 1
"""Between the last column and the scroll bar."""
GROUP_NAMES: Final[dict[Group, str]] = {
    Group.NEEDS_YOU: "needs you",
    Group.RUNNING: "running",
    Group.UNCLEAR: "unclear",
    Group.DONE: "done",
    Group.PAST: "past",
}


def head(text: str, tone: Tone, cells: int, look: Look, *, hint: str = "") -> Line:
    """Return the head of a group: `- needs you -----`."""
    rule = look.glyphs.rule
    left = (
        Span(f"{rule} ", "rule"),
        Span(text, tone),
        Span(f"  {hint}" if hint else "", "muted"),
        Span(" "),
    )
    return fit((*left, Span(rule * max(0, cells - width(left)), "rule")), cells, look.glyphs.ellipsis)


_MAX_CHOSEN_LINES: Final = 3
"""Of the line below a narrow list."""


def in_words(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return what the signs and short forms of a row mean, in words, and what distinguishes it.

    On one line, and in a narrow list on as many as it needs.
    """
    sandbox, glyphs = worker.sandbox, look.glyphs
    policy = sandbox.configured.brief() if sandbox.configured else "sandbox not stated"
    verdict = {"match": "as configured", "mismatch": "mismatch", "unverified": "not verified"}
    state = sign(worker, glyphs)
    parts = (
        f"{glyphs.verdicts[sandbox.verdict]} {policy}: {verdict[sandbox.verdict]}",
        f"{worker.agent.name} {worker.agent.version or ''}".strip(),
        worker.host or "",
        worker.cwd or "",
        str(worker.pane.key) if worker.pane else "",
        worker.id[-12:] if worker.kind == "codex-thread" else "",
    )
    dot = f" {glyphs.dot} "
    text = dot.join(part for part in parts if part)
    since = f" for {in_state_for(worker, look)}" if worker.assessment.since else ""
    if is_narrow(cells):
        head = (Span(" "), state, Span(since, "muted"))
        return [head, *paragraph(text, cells, "muted", indent=1, cap=_MAX_CHOSEN_LINES - 1)]
    line = (Span(" "), state, Span(since + dot, "muted"), Span(text, "muted"))
    return [fit(line, cells, glyphs.ellipsis)]


def empty_state(snapshot: Snapshot | None, filtered: bool, cells: int, look: Look) -> list[Line]:
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
        mark = Span(f"  {look.glyphs.agrees[source.ok]} ", "ready" if source.ok else "ask")
        left = (mark, Span(source.name.ljust(name_cells + 2), "" if source.ok else "ask"))
        lines += paragraph(source.detail or "nothing found", cells - 2, "muted", head=left)
    hint = "Start codex, or an agent in a tmux pane: it shows up here by itself."
    return [*lines, BLANK, *paragraph(hint, cells - 2, "muted", indent=2)]


class FleetList(Choices):
    """The rows of the fleet. The cursor stays on its worker when rows move."""

    class CursorMoved(Message):
        """Another worker was selected by key or mouse."""

        def __init__(self, worker: str) -> None:
            self.worker = worker
            super().__init__()

    class Opened(Message):
        """A worker was double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.rows: tuple[Row, ...] = ()
        self.column_layout: Layout[Item] = COLUMNS.layout(80, UNICODE)
        self.has_heads = True
        """Whether groups have heads, and rows may have several lines."""
        self._by_id: Mapping[str, Worker] = {}
        self._new: Collection[str] = ()
        self._look: Look | None = None
        self._placeholder: Sequence[Line] = ()
        self._heights: dict[str, int] = {}
        self._is_fitted = False
        """Whether the heights are of the present width."""
        self._tops: list[int] = []
        """The first line of each row."""
        self._heads: dict[int, Line] = {}
        """Heads by their line."""
        self._lines: dict[int, tuple[Look, Worker, list[Line]]] = {}
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
        """Width of a row without gutter and margin."""
        return self.room - _GUTTER_CELLS - _MARGIN_CELLS

    def set_layout(self, glyphs: Glyphs, *, has_heads: bool, features: Collection[str]) -> None:
        """Fit the rows into the present width, with the columns that these workers have values for."""
        cells = self._cells
        columns = COLUMNS_WITH_HOST if "hosts" in features and cells >= HOSTS_FROM_CELLS else COLUMNS
        self.column_layout = columns.layout(cells, glyphs, features)
        self.has_heads = has_heads
        self._is_fitted = False
        self.repaint()

    def show_rows(
        self,
        rows: tuple[Row, ...],
        view: View,
        placeholder: Sequence[Line] = (),
        *,
        new: Collection[str] = (),
        past: int = 0,
        is_held: bool = False,
    ) -> None:
        """Show rows with the cursor on the selected worker.

        Args:
            rows: in their order.
            view: the workers, and the selected one.
            placeholder: lines to show without rows.
            new: ids of workers that changed since the user last looked.
            past: number of past workers; those without rows are folded below their head.
            is_held: rows keep their heights.
        """
        self.rows = rows
        self._by_id = view.by_id
        self._new = new
        self._look = view.look
        self._placeholder = placeholder
        height = self._place(past, view.look, is_held=is_held)
        selected = next((index for index, row in enumerate(rows) if row.id == view.selected_id), None)
        self.redraw(height or len(placeholder))
        index = min(self.cursor if selected is None else selected, max(0, self.total - 1))
        if index != self.cursor:
            self.set_cursor(index)

    def _place(self, past: int, look: Look, *, is_held: bool) -> int:
        """Compute the lines of heads and rows; return how many there are."""
        cells = self._cells
        before, self._heights = self._heights, {}
        self._tops, self._heads, self._lines = [], {}, {}
        y, group = 0, None
        for index, row in enumerate(self.rows):
            if self.has_heads and row.group is not group:
                group = row.group
                self._heads[y] = head(
                    GROUP_NAMES[group], GROUP_TONES[group], self.room, look, hint=_fold_hint(group)
                )
                y += 1
            height = before.get(row.id) if is_held and self._is_fitted else None
            if height is None:
                height = row_height(self.item_at(index), self.column_layout, cells) if self.has_heads else 1
            self._heights[row.id] = height
            self._tops.append(y)
            y += height
        if self.has_heads and past and group is not Group.PAST:
            self._heads[y] = head(
                f"{past} past", GROUP_TONES[Group.PAST], self.room, look, hint="x shows them"
            )
            y += 1
        self._is_fitted = True
        return y

    # ---------------------------------------------------------------- lines

    def top_of(self, index: int) -> int:
        """Return the first line of a row."""
        return self._tops[index] if index < len(self._tops) else 0

    def height_of(self, index: int) -> int:
        """Return how many lines a row has."""
        return self._heights[self.rows[index].id] if index < len(self.rows) else 1

    def index_at(self, y: int) -> int | None:
        """Return the row that has a line; None for heads, and below the last row."""
        index = bisect_right(self._tops, y) - 1
        return index if index >= 0 and y < self.top_of(index) + self.height_of(index) else None

    def line_at(self, y: int) -> Line:
        """Return one line of a row, a head, or of the placeholder."""
        if self._look is None or not (self.total or self._heads):
            return self._placeholder[y] if y < len(self._placeholder) else BLANK
        if y in self._heads:
            return self._heads[y]
        if (index := self.index_at(y)) is None:
            return BLANK
        part = y - self.top_of(index)
        is_new = part == 0 and self.rows[index].id in self._new
        mark = Span(self._look.glyphs.groups["new"] if is_new else " ", "chosen")
        gutter = self.gutter_span(index, part, self._look.glyphs)
        return (gutter, mark, *self._row(index, self._look)[part])

    def _row(self, index: int, look: Look) -> list[Line]:
        item = self.item_at(index)
        cached = self._lines.get(index)
        if cached is None or cached[0] is not look or cached[1] is not item[1]:
            cells, height = self._cells, self.height_of(index)
            lines = row_lines(item, self.column_layout, cells, height, look)
            lines += [BLANK] * (height - len(lines))  # the height is of another width until all are placed
            cached = self._lines[index] = (look, item[1], lines)
        return cached[2]

    def cursor_moved(self) -> None:
        """Post the worker under the cursor."""
        self.post_message(self.CursorMoved(self.rows[self.cursor].id))

    def item_opened(self) -> None:
        """Post that a worker was double-clicked."""
        self.post_message(self.Opened())


def _fold_hint(group: Group) -> str:
    return "x hides them" if group is Group.PAST else ""


def is_narrow(cells: int) -> bool:
    """Return whether the list is too narrow for its columns."""
    return cells < CARDS_BELOW_CELLS
