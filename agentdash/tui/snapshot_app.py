"""The base of the dashboard and the replay: draw the newest snapshot of a feed and the selected worker."""

from __future__ import annotations

import math
import time
from typing import Final

from textual import on
from textual.events import Event, Key, MouseDown, MouseScrollDown, MouseScrollUp
from textual.timer import Timer

from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.base_app import BaseApp
from agentdash.tui.fleet.filter import Filter
from agentdash.tui.fleet.header import title
from agentdash.tui.fleet.screen import FleetScreen
from agentdash.tui.options import Feed, KeepsAttention, Options
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.theme import Look
from agentdash.tui.view import View, WorkerPointed, find_worker
from agentdash.tui.worker.file_reading import FileReading

_HOLD_S: Final = 5.0
"""After a key, for which rows keep their places: to read a row, and decide."""
_AWAY_AFTER_S: Final = 300.0
"""Without a key, after which the user counts as having been away."""
_CLOCK_INTERVAL_S: Final = 1.0
"""Young ages are shown in seconds."""
_REST_S: Final = 0.1
"""After the cursor has moved, until what shows the selected worker follows: to draw it is most of a key."""


class SnapshotApp(BaseApp[None]):
    """An app that draws the newest snapshot and holds the selected worker."""

    def __init__(
        self,
        feed: Feed,
        clock: Clock,
        options: Options,
        attention: KeepsAttention | None = None,
    ) -> None:
        super().__init__(options)
        self.root = FleetScreen(self.glyphs, options.filters)
        self.snapshot: Snapshot | None = None
        self.selected_id: str | None = None
        """Id of the selected worker."""
        self._feed = feed
        self._clock = clock
        self._by_id: dict[str, Worker] = {}
        self._wanted = options.select
        self._feed_error: str | None = None
        self.attention = attention
        self.last_key_at: float | None = None
        """When the user last pressed a key (unix seconds)."""
        self._is_touched = options.select is not None
        """Whether the user has chosen a worker; until then the most urgent one is selected."""
        self._touched_at = -_HOLD_S
        self._release: Timer | None = None
        self._rest: Timer | None = None
        """Runs while the cursor does not rest."""
        self._conversation = FileReading(options.open_conversation)
        self._reread: Timer | None = None
        self._view: View | None = None
        """As drawn last."""
        self._due = 0.0
        """When an age in it changes (unix seconds)."""

    @property
    def worker(self) -> Worker | None:
        """The selected worker."""
        return self._by_id.get(self.selected_id or "")

    @property
    def is_at_rest(self) -> bool:
        """Whether the cursor rests, so that the selected worker is shown in detail."""
        return self._rest is None

    def get_default_screen(self) -> FleetScreen:
        """Return the fleet screen."""
        return self.root

    def on_ready(self) -> None:
        """Start to follow the feed, and to redraw what changes with the time alone."""
        self.draw()
        self.run_worker(self._follow(), name="feed")
        self.set_interval(_CLOCK_INTERVAL_S, self._tick)

    async def _follow(self) -> None:
        try:
            async for snapshot in self._feed.snapshots():
                self.take(snapshot)
            self._feed_error = "The feed has ended: what is shown here will not change any more."
        except Exception as error:  # of any type: the screen must show that it is out of date
            self._feed_error = clean_line(
                f"The feed has broken off, what is shown here is old: {type(error).__name__}: {error}"
            )
        self.draw()

    def take(self, snapshot: Snapshot) -> None:
        """Draw a snapshot, unless it equals the last one."""
        if not snapshot.differs_from(self.snapshot):
            return
        self.snapshot = snapshot
        self.show_title(title(snapshot))
        self._by_id = {worker.id: worker for worker in snapshot.workers}
        if self._wanted and (found := find_worker(snapshot, self._wanted)) is not None:
            self.selected_id = found.id
            self._wanted = None
        self.draw()

    def _tick(self) -> None:
        """Draw everything when an age has changed."""
        if self._view is None or not self._view.look.now <= self._clock.now() < self._due:
            self.draw()

    @on(Lines.Resized)
    @on(FleetScreen.FilterChanged)
    def draw(self) -> None:
        """Draw all screens. Lines that have not changed are not painted again."""
        if not self.is_running:  # while the app ends, screens lose their widgets before they leave the stack
            return
        if self.snapshot is not None:
            self.root.order(self.snapshot, is_held=self._is_held)
            if not self.root.is_zoomed:  # the only one shown is not exchanged for another
                if not self._is_touched and not self._wanted and self.root.rows:
                    self.selected_id = self.root.rows[0].id
                self.selected_id = self.root.selectable(self.selected_id)
        self._view = view = View(
            Look(self._clock.now(), self.glyphs),
            snapshot=self.snapshot,
            by_id=self._by_id,
            selected_id=self.selected_id,
            is_at_rest=self.is_at_rest,
            banner=self.options.banner,
            caption=self.caption(),
            feed_error=self._problem(),
            conversation=self._conversation.found(self.worker),
        )
        self._due = view.due
        if self.root.is_mounted:
            self.root.draw(view)
        if view.is_at_rest:
            self._read_session()

    def caption(self) -> str:
        """Return a sentence for the line below the header: none; a hook for subclasses."""
        return ""

    def read_until(self) -> float:
        """Return the time up to which a session is shown (unix seconds); infinite: to its end."""
        return math.inf

    def _read_session(self) -> None:
        """Read the file of the selected worker for the panels that show more than the snapshot has.

        Not if nothing has changed, and later if it was read just now.
        """
        panel = self.root.panel
        if self.worker is None or not (panel.display and panel.reads_session):
            return
        until = self.read_until()
        if (wait := self._conversation.wait_s(self.worker, until)) is None:
            return
        if not wait:
            self.run_worker(self._read_now(self.worker, until), name="session", exit_on_error=False)
        elif self._reread is None:
            self._reread = self.set_timer(wait, self._reread_now)

    def _reread_now(self) -> None:
        self._reread = None
        self.draw()

    async def _read_now(self, worker: Worker, until: float) -> None:
        await self._conversation.read(worker, until)
        self.draw()

    def on_unmount(self) -> None:
        """End the thread that reads sessions."""
        self._conversation.end()

    # ---------------------------------------------------------------- the user looks

    @property
    def _is_held(self) -> bool:
        """Whether rows keep their places now."""
        return time.monotonic() - self._touched_at < _HOLD_S

    def let_move(self) -> None:
        """Let rows move at once, until the next key: the user has acted on one."""
        self._touched_at = -_HOLD_S

    async def on_event(self, event: Event) -> None:
        """Note that the user is here: from then on rows keep their places for a while."""
        if isinstance(event, Key | MouseDown | MouseScrollDown | MouseScrollUp):
            self._touch(is_choice=not isinstance(event, MouseScrollDown | MouseScrollUp))
        await super().on_event(event)

    def _touch(self, *, is_choice: bool) -> None:
        now = self._clock.now()
        if self.attention is not None and self.last_key_at and now - self.last_key_at > _AWAY_AFTER_S:
            self.attention.look(self.last_key_at)
        self.last_key_at = now
        self._touched_at = time.monotonic()
        self._is_touched = self._is_touched or is_choice
        if self._release is not None:
            self._release.stop()
        self._release = self.set_timer(_HOLD_S + 0.1, self.draw)

    def _problem(self) -> str | None:
        """Return why what is shown may be old, in one sentence."""
        failure = self.snapshot.failure if self.snapshot else None
        if failure is None:
            return self._feed_error
        return f"engine: {failure.text}: what is shown may be old ({self.options.debug_log_hint})"

    def select_worker(self, worker: str) -> None:
        """Select a worker; clear the filter if it hides the worker."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(_REST_S, self._come_to_rest)
        self.selected_id = worker
        self._wanted = None
        if not self.root.is_zoomed and all(row.id != worker for row in self.root.rows):
            self.root.apply_filter(Filter())
        self.draw()

    def _come_to_rest(self) -> None:
        self._rest = None
        self.draw()

    @on(WorkerPointed)
    def _worker_pointed(self, event: WorkerPointed) -> None:
        self.select_worker(event.worker)
