"""The dashboard's screen: the fleet list, and the selected worker below it, or alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import DescendantFocus
from textual.message import Message
from textual.widget import Widget

from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.filter import BUCKET_NAMES, Filter
from agentdash.tui.fleet.header import Header
from agentdash.tui.fleet.list import FleetList, empty_state
from agentdash.tui.fleet.rows import Order, Row, arrange, keep_places
from agentdash.tui.primitives.filter_bar import FilterBar, focus_unless_typing
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines, Page
from agentdash.tui.primitives.spans import Line, Span
from agentdash.tui.theme import Glyphs
from agentdash.tui.view import View
from agentdash.tui.worker.panel import WorkerPanel

HINTS = (
    *("jump", "acknowledge", "why", "attention", "sandboxes", "copy-remedy"),
    *("open", "filter", "sort", "palette", "help"),
)
PANEL_HINTS = ("back", "tab-right", "open", "copy-remedy", "why", "jump", "help")
"""What keys do while the panel has the focus."""
WORKER_HINTS = (
    *("back", "jump", "tab-right", "why", "copy-remedy"),
    *("acknowledge", "copy-id", "attention", "help"),
)
"""What keys do while the worker has the whole screen."""


def filter_status(chosen: Filter, shown: int, total: int) -> Line:
    """Return the filter in force: `Needs you  "api"  2 of 40`."""
    text = (Span(f'  "{chosen.text}"', "strong"),) if chosen.text else ()
    return (
        Span(" "),
        Span(BUCKET_NAMES[chosen.bucket], "strong"),
        *text,
        Span(f"  {shown} of {total}   ", "muted"),
        Span("esc", "key", "app.back"),
        Span(" clears", "muted"),
    )


class FleetScreen(Page):
    """The root screen. It holds the filter and the order of the rows; the app holds the selected worker.

    Args:
        hints: what keys do while the list has the focus.
        bar: stands above the footer.
    """

    header = getters.query_one(Header)
    titles = getters.query_one("#titles", Lines)
    panel = getters.query_one(WorkerPanel)
    bar = getters.query_one("#filter", FilterBar)
    label_bar = getters.query_one("#label", FilterBar)
    footer = getters.query_one(Footer)

    class FilterChanged(Message):
        """Another filter is in force."""

    def __init__(
        self,
        glyphs: Glyphs,
        filters: Mapping[str, str],
        hints: Sequence[str] = HINTS,
        bar: Widget | None = None,
    ) -> None:
        super().__init__()
        self._bar = bar
        self._behind: tuple[str, Widget | None] | None = None
        """What a worker that has the whole screen covers: the open tab, and what had the focus."""
        self.glyphs = glyphs
        self._filters = filters
        self._hints = hints
        self.fleet = FleetList()
        self.filter = Filter()
        self.arrangement = Order()
        """How the rows are arranged."""
        self.rows: tuple[Row, ...] = ()
        """The rows as they are shown."""
        self._is_held = False
        """Whether they keep places that are not those of their order."""
        self._arranged_by: tuple[Filter, Order] | None = None
        self._has_layout = False

    def compose(self) -> ComposeResult:
        """Compose header, list and panel, filter, footer."""
        yield Header()
        with Vertical(id="body"):
            with Vertical(id="left"):
                yield Lines(id="titles", focusable=False)
                yield self.fleet
            yield WorkerPanel()
        yield FilterBar(saved=self._filters)
        yield FilterBar(id="label", sign="L", hint="what you call it; nothing: its name")
        if self._bar is not None:
            yield self._bar
        yield Footer(self.glyphs, *self._hints)

    def on_mount(self) -> None:
        """Focus the list."""
        self.fleet.focus()

    # ---------------------------------------------------------------- one worker

    @property
    def is_zoomed(self) -> bool:
        """Whether the selected worker has the whole screen."""
        return self._behind is not None

    def zoom(self, tab: str | None = None) -> None:
        """Give the selected worker the whole screen, and open a tab, if one is named."""
        if self._behind is None:
            self._behind = self.panel.open_tab, self.focused
            self.set_focus(self.panel.tab)
        if tab is not None:
            self.panel.open_tab = tab
        self._lay_out()

    def unzoom(self) -> None:
        """Show the list again, and the tab that was open beside it."""
        if self._behind is not None:
            self.panel.open_tab, focused = self._behind
            self._behind = None
            self.set_focus(focused or self.fleet)
            self._lay_out()

    def _lay_out(self) -> None:
        """Show what there is now; its content when its sizes are known, so that it is painted once."""
        self.set_class(self.is_zoomed, "-zoomed")
        self._show_hints()
        self.call_after_refresh(self.post_message, Lines.Resized())

    # ---------------------------------------------------------------- rows

    def order(self, snapshot: Snapshot, *, is_held: bool = False) -> None:
        """Filter and order the rows; held ones keep their places under the same filter and order."""
        shows_past = self.arrangement.shows_past or self.filter.active
        order = self.arrangement._replace(shows_past=shows_past)
        before, self._arranged_by = self._arranged_by, (self.filter, order)
        self._is_held = is_held and before == self._arranged_by
        accepted = [each for each in snapshot.workers if self.filter.accepts(each)]
        rows = arrange(accepted, order, self.glyphs.tree)
        self.rows = keep_places(self.rows, rows) if self._is_held else rows

    def selectable(self, selected_id: str | None) -> str | None:
        """Return the selected worker, or, if it is not shown, the one in its place; None if all are past."""
        if not self._has_layout or any(row.id == selected_id for row in self.rows):
            return selected_id
        if not self.rows:
            return selected_id if self.filter.active else None
        return self.rows[min(self.fleet.cursor, len(self.rows) - 1)].id

    def toggle_fold(self, worker: Worker) -> None:
        """Fold the descendants of a worker away, or unfold them."""
        order = self.arrangement
        if order.groups == "project":
            self.arrangement = order._replace(unfolded=order.unfolded ^ {worker.id})
        else:
            self.arrangement = order._replace(folded=order.folded ^ {worker.id})

    def draw(self, view: View) -> None:
        """Draw the view in all parts; the panel when the cursor rests."""
        self.header.show_fleet(view, is_zoomed=self.is_zoomed)
        if not self.is_zoomed:
            self._draw_list(view)
        status = filter_status(self.filter, len(self.rows), len(view.by_id))
        self.bar.show_status(self.filter.active, status)
        if self.panel.display and view.is_at_rest:
            self.panel.show(view, is_named=not self.is_zoomed)

    def _draw_list(self, view: View) -> None:
        snapshot = view.snapshot
        self.fleet.set_layout(self.glyphs, shows_sandboxes=self.filter.bucket == "mismatch")
        self.titles.show([self.fleet.column_layout.titles(self.arrangement.sort, self.glyphs.sorted)])
        placeholder = [] if self.rows else empty_state(snapshot, self.filter.active, self.fleet.room)
        hides_past = snapshot is not None and not self.filter.active and not self.arrangement.shows_past
        past = snapshot.counts()["past"] if snapshot and hides_past else 0
        self.fleet.show_rows(self.rows, view, placeholder, past=past, is_held=self._is_held)

    def apply_filter(self, chosen: Filter) -> None:
        """Put another filter in force."""
        self.filter = chosen
        self.post_message(self.FilterChanged())

    @on(Lines.Resized)
    def _update_layout(self) -> None:
        self._has_layout = True  # until now the rows had no final order, so no row was to be selected
        is_hidden = self.panel.has_focus_within and not self.panel.display and not self.is_zoomed
        if is_hidden or self.focused is None:  # Textual takes the focus from what is hidden
            self.fleet.focus()

    @on(DescendantFocus)
    def _show_hints(self) -> None:
        """Show what keys do in the part that has the focus."""
        in_panel = PANEL_HINTS if self.focused is self.panel.tab else self._hints
        self.footer.show_hints(WORKER_HINTS if self.is_zoomed else in_panel)

    @on(FilterBar.Edited, "#filter")
    def _filter_edited(self, event: FilterBar.Edited) -> None:
        self.apply_filter(self.filter._replace(text=event.text))

    @on(FilterBar.Closed, "#filter")
    def _filter_closed(self, event: FilterBar.Closed) -> None:
        if not event.submitted:
            self.apply_filter(self.filter._replace(text=""))
        focus_unless_typing(self.fleet)
