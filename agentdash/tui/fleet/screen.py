"""The dashboard: the fleet, the chosen worker beside it, the findings below."""

from __future__ import annotations

from collections.abc import Sequence

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen

from agentdash.model.worker import Snapshot
from agentdash.tui.fleet.filter import Filter
from agentdash.tui.fleet.filter_bar import FilterBar
from agentdash.tui.fleet.header import Header
from agentdash.tui.fleet.list import FleetList, nobody, titles
from agentdash.tui.fleet.rows import Row, flat, same_places, tree
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.theme import Glyphs
from agentdash.tui.view import View
from agentdash.tui.worker.findings import FindingsStrip
from agentdash.tui.worker.panel import WorkerPanel

HINTS = ("attention", "mismatch", "why", "open", "filter", "bucket", "jump", "palette", "help")
CARDS_BELOW = 50
"""Cells of the list under which a worker takes two lines."""


class FleetScreen(Screen[None]):
    """The root. It owns the filter and the order of the rows; whom the cursor is on, the app knows."""

    header = getters.query_one(Header)
    titles = getters.query_one("#titles", Lines)
    panel = getters.query_one(WorkerPanel)
    findings = getters.query_one(FindingsStrip)
    bar = getters.query_one(FilterBar)

    class Narrowed(Message):
        """Another filter is in force."""

    def __init__(self, glyphs: Glyphs, hints: Sequence[str] = HINTS) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._hints = hints
        self.fleet = FleetList(id="fleet")
        self.filter = Filter()
        self.last_text = ""
        """The words filtered by last, which `n` goes on looking for."""
        self.rows: tuple[Row, ...] = ()
        self._shaped = False
        self._arranged: tuple[Snapshot, Filter, bool] | None = None

    def compose(self) -> ComposeResult:
        """Header, list and panel, findings, filter, footer."""
        yield Header()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Lines(id="titles", focusable=False)
                yield self.fleet
            yield WorkerPanel()
        yield FindingsStrip()
        yield FilterBar()
        yield Footer(self.glyphs, *self._hints)

    def on_mount(self) -> None:
        """Keys go to the list first."""
        self.fleet.focus()

    def order(self, snapshot: Snapshot, picked: str | None) -> str | None:
        """Puts the rows in order; returns whom the cursor is on: the picked worker, or, where that one is not shown, a neighbour."""
        upright = not (self.has_class("-strip") or self.fleet.tall > 1)
        if self._outdated(snapshot, upright):
            kept = (
                [worker for worker in snapshot.workers if self.filter.lets(worker)]
                if self.filter.active
                else snapshot.workers
            )
            self.rows = (
                tree(kept, snapshot.workers, self.glyphs.tree) if upright else flat(kept, snapshot.workers)
            )
        self._arranged = (snapshot, self.filter, upright)
        if not self.rows or not self._shaped or any(row.id == picked for row in self.rows):
            return picked
        return self.rows[min(self.fleet.cursor, len(self.rows) - 1)].id

    def _outdated(self, snapshot: Snapshot, upright: bool) -> bool:
        if self._arranged is None or self._arranged[1:] != (self.filter, upright):
            return True
        before = self._arranged[0]
        return before is not snapshot and (
            self.filter.active or not same_places(before.workers, snapshot.workers)
        )

    def ring(self, start: str | None, step: int) -> list[str]:
        """All workers shown, from the one after `start` (or, with a step of -1, before it) round to `start` itself."""
        ids = [row.id for row in self.rows][::step]
        after = ids.index(start) + 1 if start in ids else 0
        return ids[after:] + ids[:after]

    def draw(self, view: View) -> None:
        """Shows what the view says."""
        self.header.show_fleet(view)
        self.titles.show([titles(self.fleet.columns)])
        instead = () if self.rows else nobody(view.snapshot, self.filter.active, self.fleet.room, view.look)
        self.fleet.show_rows(self.rows, view, instead)
        self.bar.show(self.filter, len(self.rows), len(view.by_id))
        if self.panel.display:
            self.panel.show(view)
        self.findings.show_fleet(view.snapshot, view.look)

    def narrow(self, chosen: Filter) -> None:
        """Puts another filter in force."""
        self.filter = chosen
        self.last_text = chosen.text or self.last_text
        self.post_message(self.Narrowed())

    @on(Lines.Resized)
    def _reshaped(self) -> None:
        self._shaped = True  # before that nobody is at the top of the list yet
        cards = self.fleet.room < CARDS_BELOW and not self.has_class("-strip")
        self.set_class(cards, "-cards")
        self.fleet.reshape("cards" if cards else "columns")
        if any(part.has_focus_within and not part.display for part in (self.panel, self.findings)):
            self.fleet.focus()

    @on(FilterBar.Typed)
    def _typed(self, event: FilterBar.Typed) -> None:
        self.narrow(self.filter._replace(text=event.text))

    @on(FilterBar.Done)
    def _typing_done(self, event: FilterBar.Done) -> None:
        if not event.kept:
            self.narrow(self.filter._replace(text=""))
        self.fleet.focus()
