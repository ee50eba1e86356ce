"""The replay: the dashboard's screens over a player, with a transport bar and the keys of time."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from textual import on
from textual.worker import get_current_worker

from agentdash.model.source import Clock
from agentdash.model.worker import Snapshot
from agentdash.replay.cursor import members_only
from agentdash.replay.index import MARKED, Mark
from agentdash.replay.library.search import Hit, TextSearch
from agentdash.replay.player import Player
from agentdash.tui.app import AgentDash
from agentdash.tui.fleet.screen import FleetScreen
from agentdash.tui.keys import bindings, ids
from agentdash.tui.options import Feed, Options
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.theme import Look
from agentdash.tui.transport.bar import Position, Transport, legend, sign_of

HINTS: Final = ("pause", "next-event", "next-turn", "next-failure", "next-mark", "search", "export")
"""Keys of time."""
_STEP_TARGETS: Final = {
    "event": (Mark.VISIBLE, "event"),
    "turn": (Mark.TURN, "turn"),
    "failure": (Mark.FAILURE | Mark.DENIAL, "failure"),
    "mark": (MARKED, "mark"),
}
"""The marks that can be stepped to, and their name."""
_WRAPS: Final = ("failure", "mark")
"""Targets that wrap around: no key goes back to them."""
_SHARE: Final = re.compile(r"(\d{1,3})%")
_POSITION_REFRESH_S: Final = 0.25
"""The position moves between two snapshots too; four times a second looks continuous."""


class RecordedClock:
    """The time that a replay shows: that of its player, and after the end of the recording, the end.

    Args:
        clock: the player's clock; it runs on until what happened last has settled.
    """

    def __init__(self, clock: Clock, player: Player) -> None:
        self._clock = clock
        self._player = player

    def now(self) -> float:
        """Return the time shown (unix seconds)."""
        now = self._clock.now()
        return now if self._player.live else min(now, self._player.end or now)

    async def sleep_until(self, at: float) -> None:
        """Sleep until the player's clock reaches `at`."""
        await self._clock.sleep_until(at)


class ReplayApp(AgentDash):
    """The dashboard with a player.

    Args:
        export: writes the session that is played to a file, and returns what has become of it.
    """

    BINDINGS = bindings(*ids("player"))
    HANDLES = (*AgentDash.HANDLES, "player")
    LEGEND = legend()

    def __init__(
        self,
        feed: Feed,
        clock: Clock,
        player: Player,
        *,
        export: Callable[[Path], str],
        options: Options,
    ) -> None:
        super().__init__(feed, RecordedClock(clock, player), options=options)
        self.bar = Transport()
        hints = (*HINTS, "open", "quit", "help")
        self.root = FleetScreen(self.glyphs, options.filters, hints, self.bar)
        self._player = player
        self._export = export
        self._search: TextSearch | None = None
        """The search that ended last."""
        self._hits: list[Hit] = []
        """Its hits, in the order of time."""
        self._hit: int | None = None
        """Index of the hit that was gone to last."""
        self._is_lone = False
        """Whether there is one session only, which is not left for a list of one row."""

    def read_until(self) -> float:
        """Return the time shown: nothing later is known."""
        return self._clock.now()

    def take(self, snapshot: Snapshot) -> None:
        """Draw a snapshot, with the workers whose panes have gone since the replay begins: they stay. Of a
        session only its family is drawn."""
        begin = self._player.begin
        snapshot = members_only(snapshot) if self._player.family.paths else snapshot
        past = (each.shown for each in snapshot.past if not each.is_stale)
        gone = [worker for worker in past if worker is not None and (worker.last_activity or 0.0) >= begin]
        super().take(replace(snapshot, workers=(*snapshot.workers, *gone)) if gone else snapshot)
        if not self._is_lone and len(self._player.family.paths) == len(snapshot.workers) == 1:
            self._is_lone = True
            self.root.zoom()
            self.root.footer.show_hints((*HINTS, "tab-right", "quit", "help"))
            self.draw()

    def on_ready(self) -> None:
        """Start to follow the player; Textual calls the handler of the base class, too."""
        self.set_interval(_POSITION_REFRESH_S, self._show_bar)

    def draw(self) -> None:
        """Draw the screen and its transport bar."""
        super().draw()
        self._show_bar()

    @on(Lines.Resized)
    def _show_bar(self) -> None:
        if self.is_running and self.bar.is_mounted:
            self.bar.position.show_player(self._player, Look(self._clock.now(), self.glyphs))

    async def action_back(self) -> None:
        """Show the list again, unless there is one session only."""
        if self._is_lone:
            self.show_message("q ends the replay.")
        else:
            await super().action_back()

    async def action_leave(self) -> None:
        """Show the list again; from there, and if there is one session only, end the replay."""
        if self._is_lone:
            self.exit()
        else:
            await super().action_leave()

    # ---------------------------------------------------------------- time

    def action_pause(self) -> None:
        """Play or pause."""
        self._player.toggle()
        self.draw()

    def action_step(self, target: str, direction: int) -> None:
        """Go to the next (1) or previous (-1) target of this kind and pause."""
        player = self._player
        marks, name = _STEP_TARGETS[target]
        read = player.index.progress
        if not player.seek_mark(marks, direction, wraps=target in _WRAPS):
            so_far = f" so far: {read:.0%} has been read" if read < 1 else ""
            self.show_message(f"No {'later' if direction > 0 else 'earlier'} {name}{so_far}.")
        elif target in _WRAPS:
            sign, _, text = sign_of(player.marks & marks)
            self.show_message(f"{sign} {text}")
        self.draw()

    @on(Position.SeekRequested)
    def _seek_requested(self, event: Position.SeekRequested) -> None:
        self._player.seek(event.share)
        self.draw()

    # ---------------------------------------------------------------- find, export

    def action_filter(self) -> None:
        """Edit the words to find in this session."""
        self.action_search()

    def action_search(self) -> None:
        """Edit the words to find in this session, or the time to go to."""
        self.bar.edit("seek", self._search.words if self._search else "")

    def action_export(self) -> None:
        """Edit the name of the file to export to."""
        self.bar.edit("export", f"session-{self._player.family.thread[:8]}.html")

    @on(FilterBar.Closed, "#export")
    def _export_entered(self, event: FilterBar.Closed) -> None:
        if event.submitted and (file := event.text.strip()):
            self.show_message(f"Writing {file} ...")
            self.run_worker(partial(self._write, file), thread=True, name="export", exclusive=True)

    @on(FilterBar.Closed, "#seek")
    def _seek_entered(self, event: FilterBar.Closed) -> None:
        text = event.text.strip()
        if not event.submitted or not text:
            return
        if share := _SHARE.fullmatch(text):
            self._player.seek(min(1.0, int(share[1]) / 100))
        elif not self._player.seek_typed(text):
            self.show_message(f"Searching for {text} ...")
            job = partial(self._run_search, text)
            self.run_worker(job, thread=True, name="find", group="find", exclusive=True)
        self.draw()

    def _write(self, file: str) -> None:
        """Export the session. Runs in a thread."""
        self.call_later(self.show_message, self._export(Path(file).expanduser()))

    def _run_search(self, words: str) -> None:
        """Search the session. Runs in a thread."""
        worker = get_current_worker()
        search = TextSearch(words, self._player.family.paths)
        for _ in search.steps():
            if worker.is_cancelled:
                return
        self.call_later(self._show_found, search)

    def _show_found(self, search: TextSearch) -> None:
        self._search = search
        self._hits = sorted(search.hits, key=lambda hit: (hit.at, hit.thread, hit.line))
        self._hit = None
        self.action_match()

    def action_match(self) -> None:
        """Go to the next text that was found, the first time from the present moment on, and pause; behind
        the last is the first."""
        if (search := self._search) is None:
            self.show_message("Nothing to repeat yet: / finds texts in this session.")
            return
        unread = f" ({search.problems} files are unreadable)" if search.problems else ""
        if not self._hits:
            self.show_message(f"No text of this session has {search.words}{unread}.")
            return
        if self._hit is None:
            self._hit = sum(hit.at < self._clock.now() for hit in self._hits)
        else:
            self._hit += 1
        self._hit %= len(self._hits)
        hit = self._hits[self._hit]
        self._player.playing = False
        self._player.seek_time(hit.at)
        if hit.thread in self._by_id:
            self.select_worker(hit.thread)
        self.draw()
        self.show_message(f"{self._hit + 1} of {len(self._hits)}{unread}: {hit.what}: {hit.text}")
