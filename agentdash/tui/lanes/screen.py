"""The screen of the lanes: all workers on one time axis, with a time cursor.

The lanes are drawn as lines and not by a `DataTable`: an axis of 150 cells for 480 workers is 72,000 cells of
a table, of which each second changes all; lines are computed for the viewport only.
"""

from __future__ import annotations

from textual import getters
from textual.app import ComposeResult

from agentdash.model.limits import MAX_INDENT
from agentdash.model.states import State
from agentdash.model.worker import Worker
from agentdash.tui.fleet.header import Header
from agentdash.tui.format import age, elide, pad, stamp
from agentdash.tui.keys import bindings
from agentdash.tui.lanes.model import ZOOMS_S, Axis, axis_line, lane, legend, length_in_words, length_of
from agentdash.tui.messages import WorkerOpened, WorkerPointed
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, width
from agentdash.tui.theme import TONES_OF_STATES, Glyphs, Look, state_name
from agentdash.tui.view import View

HINTS = ("back", "open", "zoom-in", "zoom-out", "attention", "help")
_MIN_NAME_CELLS = 10
_MAX_NAME_CELLS = 32


class LanesList(Choices):
    """The lanes. The cursor is on a worker and on a time."""

    BINDINGS = bindings("open", "tab-right", "tab-left", "zoom-in", "zoom-out")

    def __init__(self) -> None:
        super().__init__(id="lanes")
        self._workers: tuple[Worker, ...] = ()
        self._look: Look | None = None
        self._length = ZOOMS_S[0]
        self._zoom = 0
        self._back = 0
        """Cells between the time cursor and now."""

    @property
    def total(self) -> int:
        """Number of workers."""
        return len(self._workers)

    @property
    def worker(self) -> Worker | None:
        """Return the worker under the cursor."""
        return self._workers[self.cursor] if self.cursor < len(self._workers) else None

    @property
    def names(self) -> int:
        """Return the cells of the names."""
        return max(_MIN_NAME_CELLS, min(_MAX_NAME_CELLS, self.room // 4))

    @property
    def axis(self) -> Axis:
        """Return the time axis."""
        now = self._look.now if self._look else 0.0
        return Axis(end=now, length=self._length, cells=max(4, self.room - self.names - 3))

    @property
    def at(self) -> float:
        """Return the time under the cursor."""
        return self.axis.time(self._at_cell)

    @property
    def _at_cell(self) -> int:
        return max(0, self.axis.cells - 1 - self._back)

    def show_fleet(self, workers: tuple[Worker, ...], selected: str | None, look: Look) -> None:
        """Show the lanes of these workers, with the cursor on the selected one; else it stays on its own."""
        before = self.worker.id if self.worker is not None else None
        self._workers = workers
        self._look = look
        self._length = length_of(ZOOMS_S[self._zoom], workers, look.now)
        self.redraw(max(1, len(workers)))
        places = {worker.id: number for number, worker in enumerate(workers)}
        at = places.get(selected or "", places.get(before or "", 0))
        if at != self.cursor:
            self.set_cursor(at)

    def line_at(self, y: int) -> Line:
        """Return the lane of a worker."""
        if self._look is None or y >= len(self._workers):
            return (Span("  No workers yet.", "muted"),) if y == 0 else BLANK
        worker, glyphs = self._workers[y], self._look.glyphs
        stem = "  " * min(worker.depth - 1, MAX_INDENT) + glyphs.tree[1] if worker.depth else ""
        tone = TONES_OF_STATES[worker.state] if worker.needs_you else ""
        name = Span(pad(stem + worker.name, self.names, glyphs.ellipsis) + " ", tone)
        cursor = self._at_cell if y == self.cursor else None
        return (self.gutter_span(y, 0, glyphs), name, *lane(worker, self.axis, glyphs, cursor))

    def cursor_moved(self) -> None:
        """Post the worker under the cursor."""
        if self.worker is not None:
            self.post_message(WorkerPointed(self.worker.id))
        self._changed()

    def item_opened(self) -> None:
        """Post the worker and the time under the cursor."""
        if self.worker is not None:
            self.post_message(WorkerOpened(self.worker.id, self.at if self._back else None))

    def action_open(self) -> None:
        """Go to the worker under the cursor, in a replay at the time under the cursor."""
        self.item_opened()

    def action_tab(self, step: int) -> None:
        """Move the time cursor to the right (1) or to the left (-1)."""
        self._back = max(0, min(self.axis.cells - 1, self._back - step))
        self._changed()

    def action_zoom(self, step: int) -> None:
        """Show less (1) or more (-1) time; the time cursor goes back to now."""
        self._zoom = max(0, min(len(ZOOMS_S) - 1, self._zoom - step))
        self._back = 0
        if self._look:
            self._length = length_of(ZOOMS_S[self._zoom], self._workers, self._look.now)
        self._changed()

    def _changed(self) -> None:
        self.repaint()
        if isinstance(self.screen, LanesScreen):
            self.screen.show_words()

    def heading(self) -> Line:
        """Return the line above the lanes: the length of the axis, and times."""
        if self._look is None:
            return BLANK
        name = pad(length_in_words(self._length), self.names + 2)
        return (Span(name, "strong"), *axis_line(self.axis, self._look))

    def in_words(self, cells: int) -> list[Line]:
        """Return what the worker under the cursor did at the time under the cursor."""
        worker, look = self.worker, self._look
        if worker is None or look is None:
            return []
        at = self.at
        step = self.axis.step
        period = next((p for p in reversed(worker.history) if p.since <= at), None)
        name = elide(worker.name, cells // 2, look.glyphs.ellipsis)
        head = (Span(name, "strong"), Span(f"  {stamp(at, look.now)}  ", "muted"))
        until = look.now if period is None or period.until is None else period.until
        if period is None or until < at - step:
            return [(*head, Span("not known", "muted"))]
        state = State(period.state)
        sign = Span(f"{look.glyphs.states[state]} {state_name(state)} ", TONES_OF_STATES[state])
        lasted = Span(f"for {age(until - period.since)}")
        since = Span(f", since {stamp(period.since, look.now)}")
        first: Line = (*head, sign, lasted)
        first = (*first, since) if width((*first, since)) <= cells else first
        mark = look.glyphs.ellipsis
        return [fit(first, cells, mark), (Span(elide(period.why, cells, mark), "muted"),)]


class LanesScreen(Page):
    """All workers on one time axis."""

    AUTO_FOCUS = "#lanes"

    header = getters.query_one(Header)
    heading = getters.query_one("#lanes-axis", Lines)
    words = getters.query_one("#lanes-words", Lines)
    signs = getters.query_one("#lanes-legend", Lines)
    lanes = getters.query_one(LanesList)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Compose header, axis, lanes, words, legend, footer."""
        yield Header()
        yield Lines(id="lanes-axis", focusable=False)
        yield LanesList()
        yield Lines(id="lanes-words", focusable=False)
        yield Lines(id="lanes-legend", focusable=False)
        yield Footer(self.glyphs, *HINTS)

    def draw(self, view: View) -> None:
        """Draw the workers of the snapshot."""
        self.header.show_fleet(view)
        if self.lanes.room:
            workers = view.snapshot.workers if view.snapshot else ()
            self.lanes.show_fleet(workers, view.selected_id, view.look)
            self.show_words()

    def show_words(self) -> None:
        """Draw the axis, the cell under the cursor in words, and the legend."""
        self.heading.show([self.lanes.heading()])
        self.words.show(self.lanes.in_words(self.size.width - 2))
        spans = [Span(" "), Span("h l", "key"), Span(" time   ", "muted")]
        for sign, tone, text in legend(self.glyphs):
            entry = [Span(sign, tone), Span(f" {text}   ", "muted")]
            if width(spans) + width(entry) <= self.size.width:
                spans += entry
        self.signs.show([tuple(spans)])
