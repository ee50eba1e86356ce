"""The dashboard's screen: the fleet list, the selected worker beside it, the findings below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message

from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.fleet.cells import features
from agentdash.tui.fleet.filter import BUCKET_NAMES, Filter
from agentdash.tui.fleet.findings import FindingsStrip
from agentdash.tui.fleet.header import Header
from agentdash.tui.fleet.held_rows import HeldRows
from agentdash.tui.fleet.list import FleetList, empty_state, in_words, is_narrow
from agentdash.tui.fleet.rows import SORTS, Order, Row
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.line_input import focus_unless_typing
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import BLANK, Line, Span
from agentdash.tui.theme import Glyphs
from agentdash.tui.view import View
from agentdash.tui.worker.overview import heading, overview
from agentdash.tui.worker.panel import WorkerPanel

HINTS = (
    "attention",
    "jump",
    "copy-remedy",
    "acknowledge",
    "why",
    "mismatch",
    "open",
    "filter",
    "sort",
    "palette",
    "next-part",
    "help",
)
PANEL_HINTS = (
    "back",
    "tab-right",
    "next-part",
    "open",
    "copy-remedy",
    "why",
    "jump",
    "help",
)
"""What keys do while the panel has the focus."""
FINDINGS_HINTS = ("back", "open", "next-part", "findings", "sandboxes", "help")
"""What they do while the findings have it."""

_LEAST_SUMMARY_LINES: Final = 8
"""Fewer lines hold the worker's name and its state, and nothing of its sandbox."""


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
    """The root screen. It holds the filter and the order of the rows; the app holds the selected worker."""

    header = getters.query_one(Header)
    left = getters.query_one("#left", Vertical)
    titles = getters.query_one("#titles", Lines)
    chosen = getters.query_one("#chosen", Lines)
    panel = getters.query_one(WorkerPanel)
    findings = getters.query_one(FindingsStrip)
    bar = getters.query_one(FilterBar)
    footer = getters.query_one(Footer)

    class FilterChanged(Message):
        """Another filter is in force."""

    def __init__(self, glyphs: Glyphs, filters: Mapping[str, str], hints: Sequence[str] = HINTS) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._filters = filters
        self._hints = hints
        self.fleet = FleetList(id="fleet")
        self.filter = Filter()
        self.last_text = ""
        """The words of the last filter, which `n` and `N` search for."""
        self._held = HeldRows(glyphs)
        self.arrangement = Order()
        """How the rows are arranged."""
        self._has_layout = False
        self._features: frozenset[str] = frozenset()
        """Which columns have values beside those of every fleet."""
        self._featured: Snapshot | None = None
        """What that was found in."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows as they are shown."""
        return self._held.rows

    def compose(self) -> ComposeResult:
        """Compose header, list and panel, findings, filter, footer."""
        yield Header()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Lines(id="titles", focusable=False)
                yield self.fleet
                yield Lines(id="chosen", focusable=False)
            yield WorkerPanel()
        yield FindingsStrip()
        yield FilterBar(saved=self._filters)
        yield Footer(self.glyphs, *self._hints)

    def on_mount(self) -> None:
        """Focus the list."""
        self.fleet.focus()

    def order(self, snapshot: Snapshot, selected_id: str | None, *, is_held: bool = False) -> str | None:
        """Filter and order the rows.

        Args:
            is_held: rows that are shown keep their places.

        Returns:
            The worker to select: the one selected now, or, where it is not shown, the one in its place.
        """
        shows_past = self.arrangement.shows_past or self.filter.active
        order = self.arrangement._replace(is_flat=self.has_class("-strip"), shows_past=shows_past)
        self._held.update(snapshot, self.filter, order, selected_id=selected_id, is_held=is_held)
        if not self.rows or not self._has_layout or any(row.id == selected_id for row in self.rows):
            return selected_id
        return self.rows[min(self.fleet.cursor, len(self.rows) - 1)].id

    def let_move(self, worker: Worker) -> None:
        """Let the row of a worker go to another group, though the others keep their places."""
        self._held.moving.add(worker.id)

    def sort_by(self, name: str) -> None:
        """Sort the families of each group by this name of `SORTS`."""
        self.arrangement = self.arrangement._replace(sort=name)

    def next_sort(self) -> str:
        """Return the sort after the present one."""
        names = list(SORTS)
        return names[(names.index(self.arrangement.sort) + 1) % len(names)]

    def toggle_fold(self, worker: Worker) -> None:
        """Fold the descendants of a worker away, or unfold them."""
        self.arrangement = self.arrangement._replace(folded=self.arrangement.folded ^ {worker.id})

    def toggle_past(self) -> None:
        """Show or hide the rows of past workers."""
        self.arrangement = self.arrangement._replace(shows_past=not self.arrangement.shows_past)

    def cycle_from(self, start: str | None, step: int) -> list[str]:
        """Return the ids of all rows, beginning after `start` (step 1) or before it (-1), and wrapping."""
        ids = [row.id for row in self.rows][::step]
        after = ids.index(start) + 1 if start in ids else 0
        return ids[after:] + ids[:after]

    def draw(self, view: View) -> None:
        """Draw the view in all parts."""
        self._update_features(view.snapshot)
        self.header.show_fleet(view)
        self.titles.show([(Span(" "), *self._titles())])
        past = view.snapshot.counts()["past"] if view.snapshot else 0
        placeholder: Sequence[Line] = ()
        if not self.rows:
            placeholder = empty_state(view.snapshot, self.filter.active, self.fleet.room, view.look)
        self.fleet.show_rows(
            self.rows,
            view,
            placeholder,
            new=view.new,
            past=0 if self.filter.active else past,
            is_held=self._held.is_kept,
        )
        self.chosen.show(self._chosen_lines(view))
        status = filter_status(self.filter, len(self.rows), len(view.by_id))
        self.bar.show_status(self.filter.active, status)
        if self.panel.display:
            self.panel.show(view)
        self.findings.show_fleet(view.snapshot, view.look)

    def _chosen_lines(self, view: View) -> list[Line]:
        """Return what is shown of the selected worker below the list where no panel is.

        A few words, or as much of its summary and its timeline as the lines hold that the list leaves empty.
        """
        worker, cells = view.worker, self.chosen.room
        if worker is None or not self.chosen.display:
            return []
        free = self.left.size.height - self.titles.display - self.fleet.virtual_size.height
        if free < _LEAST_SUMMARY_LINES:
            return in_words(worker, cells, view.look)
        look = view.look
        below = overview(worker, cells - 2, look)
        title = heading(worker, view.parent, cells, look)
        lines = [BLANK, title, *((Span(" "), *line) for line in below)]
        return [*lines[:free], *[BLANK] * (free - len(lines))]

    def _update_features(self, snapshot: Snapshot | None) -> None:
        """Show the columns that have values in this snapshot."""
        if snapshot is None or snapshot is self._featured:
            return
        self._featured = snapshot
        found = features(snapshot.workers, has_hosts=bool(snapshot.hosts))
        if found != self._features:
            self._features = found
            self._update_layout()

    def _titles(self) -> Line:
        return self.fleet.column_layout.titles(self.arrangement.sort, self.glyphs.sorted)

    def apply_filter(self, chosen: Filter) -> None:
        """Put another filter in force."""
        self.filter = chosen
        self.last_text = chosen.text or self.last_text
        self.post_message(self.FilterChanged())

    @on(Lines.Resized)
    def _update_layout(self) -> None:
        self._has_layout = True  # until now the rows had no final order, so no row was to be selected
        is_strip = self.has_class("-strip")
        self.set_class(is_narrow(self.fleet.room) and not is_strip, "-cards")
        self.fleet.set_layout(self.glyphs, has_heads=not is_strip, features=self._features)
        hidden = any(part.has_focus_within and not part.display for part in (self.panel, self.findings))
        if hidden or self.focused is None:  # Textual takes the focus from what is hidden
            self.fleet.focus()

    def on_descendant_focus(self) -> None:
        """Show what keys do in the part that has the focus."""
        if self.panel.has_focus_within:
            self.footer.show_hints(PANEL_HINTS)
        elif self.findings.has_focus:
            self.footer.show_hints(FINDINGS_HINTS)
        else:
            self.footer.show_hints(self._hints)

    @on(FilterBar.Edited)
    def _filter_edited(self, event: FilterBar.Edited) -> None:
        self.apply_filter(self.filter._replace(text=event.text))

    @on(FilterBar.Closed)
    def _filter_closed(self, event: FilterBar.Closed) -> None:
        if not event.submitted:
            self.apply_filter(self.filter._replace(text=""))
        focus_unless_typing(self.fleet)
