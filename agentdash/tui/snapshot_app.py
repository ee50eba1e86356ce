"""Watching: snapshots come from a feed, a person chooses a worker, and the screens draw both."""

from __future__ import annotations

from textual import on

from agentdash.model.clock import Clock
from agentdash.model.sanitize import clean_line
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.base_app import BaseApp
from agentdash.tui.fleet.filter import Filter
from agentdash.tui.fleet.list import FleetList
from agentdash.tui.fleet.screen import FleetScreen
from agentdash.tui.options import Feed, OnSnapshot, Options
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.theme import Look
from agentdash.tui.view import View, ViewScreen, find_worker
from agentdash.tui.worker.findings import FindingsStrip


class SnapshotApp(BaseApp[None]):
    """An app that shows the newest snapshot, and knows whom the cursor is on."""

    def __init__(
        self, feed: Feed, clock: Clock, options: Options, on_snapshot: OnSnapshot | None = None
    ) -> None:
        super().__init__(options)
        self.root = FleetScreen(self.glyphs)
        self.snapshot: Snapshot | None = None
        self.selected_id: str | None = None
        """Id of the worker that the cursor is on."""
        self._feed, self._clock, self._on_snapshot = feed, clock, on_snapshot
        self._by_id: dict[str, Worker] = {}
        self._wanted = options.select
        self._feed_error: str | None = None

    @property
    def worker(self) -> Worker | None:
        """The worker that the cursor is on."""
        return self._by_id.get(self.selected_id or "")

    def get_default_screen(self) -> FleetScreen:
        """The fleet."""
        return self.root

    def on_ready(self) -> None:
        """Starts to listen, and to count ages."""
        self.draw()
        self.run_worker(self._follow(), name="feed")
        self.set_interval(1.0, self.draw)

    async def _follow(self) -> None:
        try:
            async for snapshot in self._feed.snapshots():
                self.take(snapshot)
                if self._on_snapshot is not None:
                    self._on_snapshot(snapshot)
            self._feed_error = "The feed has ended: what is shown here will not change any more."
        except Exception as error:  # whatever it is: people have to see that what they look at is old
            self._feed_error = clean_line(
                f"The feed has broken off, what is shown here is old: {type(error).__name__}: {error}"
            )
        self.draw()

    def take(self, snapshot: Snapshot) -> None:
        """Shows a snapshot; one that says nothing new changes nothing."""
        if not snapshot.differs_from(self.snapshot):
            return
        self.snapshot = snapshot
        self._by_id = {worker.id: worker for worker in snapshot.workers}
        if self._wanted and (found := find_worker(snapshot, self._wanted)) is not None:
            self.selected_id, self._wanted = found.id, None
        self.draw()

    @on(Lines.Resized)
    @on(FleetScreen.FilterChanged)
    def draw(self) -> None:
        """Lets every screen show what there is now. What has not changed is not painted again."""
        if not self.is_running:  # it ends: screens lose their parts before they leave the stack
            return
        if self.snapshot is not None:
            neighbour = self.root.order(self.snapshot, self.selected_id)
            self.selected_id = neighbour if self.screen is self.root else self.selected_id
        look = Look(self._clock.now(), self.glyphs)
        view = View(look, self.snapshot, self._by_id, self.selected_id, self.options.banner, self._problem())
        for screen in self.screen_stack:
            if isinstance(screen, ViewScreen) and screen.is_mounted:
                screen.draw(view)

    def _problem(self) -> str | None:
        """Return why what is shown may be old, in one sentence."""
        failure = self.snapshot.failure if self.snapshot else None
        if failure is None:
            return self._feed_error
        return f"{self.glyphs.agrees[0]} engine: {failure.text}: what is shown may be old ({self.options.debug_log_hint})"

    def select_worker(self, worker: str) -> None:
        """Puts the cursor on a worker, out of the filter's way if need be."""
        self.selected_id, self._wanted = worker, None
        if all(row.id != worker for row in self.root.rows):
            self.root.apply_filter(Filter())
        self.draw()

    @on(FleetList.Moved)
    def _moved(self, event: FleetList.Moved) -> None:
        self.select_worker(event.worker)

    @on(FindingsStrip.Opened)
    def _finding_opened(self, event: FindingsStrip.Opened) -> None:
        self.select_worker(event.worker)
        self.root.fleet.focus()
