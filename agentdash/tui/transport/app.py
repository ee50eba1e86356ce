"""The replay: the dashboard's screens over a player, with a transport bar and the keys of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace
from textual import on
from textual.message import Message
from textual.worker import get_current_worker

from agentdash.model.source import Clock
from agentdash.model.worker import Snapshot
from agentdash.replay.index import members_only
from agentdash.replay.library.search import FoundTexts, find_texts
from agentdash.tui.app import AgentDash
from agentdash.tui.fleet.screen import FleetScreen
from agentdash.tui.keys import bindings, ids
from agentdash.tui.messages import WorkerOpened
from agentdash.tui.options import Feed, Options
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.line_input import focus_unless_typing
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Tone
from agentdash.tui.theme import Look
from agentdash.tui.transport.bar import STEP_TARGETS, Player, Track, Transport, legend
from agentdash.tui.view import ViewScreen

HINTS: Final = (
    "pause",
    "next-event",
    "next-turn",
    "next-failure",
    "next-finding",
    "faster",
    "go-to-time",
    "why",
    "open",
    "quit",
    "help",
)
_DEFAULT_OPTIONS: Final = Options()
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
    """The dashboard with a player."""

    BINDINGS = bindings(*ids("player"))
    HANDLES = (*AgentDash.HANDLES, "player")

    class TextsFound(Message):
        """A search in this session has ended."""

        def __init__(self, found: FoundTexts) -> None:
            self.found = found
            super().__init__()

    def __init__(
        self, feed: Feed, clock: Clock, player: Player, *, options: Options = _DEFAULT_OPTIONS
    ) -> None:
        super().__init__(feed, RecordedClock(clock, player), options=options)
        self.root = FleetScreen(self.glyphs, options.filters, HINTS)
        self._player = player
        self._found: FoundTexts | None = None
        """The texts that were searched last."""

    def more_signs(self) -> list[tuple[str, Tone, str]]:
        """Return the signs of the transport bar."""
        return legend(self.glyphs)

    def read_until(self) -> float:
        """Return the time shown: nothing later is known."""
        return self._clock.now()

    def take(self, snapshot: Snapshot) -> None:
        """Draw a snapshot, with the workers whose panes have gone since the replay begins: they stay. Of a
        session only its family is drawn."""
        begin = self._player.begin
        snapshot = members_only(snapshot) if self._player.paths else snapshot
        past = (each.shown for each in snapshot.past if not each.is_stale)
        gone = [worker for worker in past if worker is not None and (worker.last_activity or 0.0) >= begin]
        super().take(replace(snapshot, workers=(*snapshot.workers, *gone)) if gone else snapshot)

    def on_ready(self) -> None:
        """Start to follow the player; Textual calls the handler of the base class, too."""
        self.set_interval(_POSITION_REFRESH_S, self._show_bars)

    def draw(self) -> None:
        """Draw the screens and their transport bars."""
        super().draw()
        self._show_bars()

    @on(Lines.Resized)
    def _show_bars(self) -> None:
        if not self.is_running:
            return
        look = Look(self._clock.now(), self.glyphs)
        for screen in self.screen_stack:
            if not isinstance(screen, ViewScreen) or not screen.is_mounted:
                continue
            bars, footers = screen.query(Transport), screen.query(Footer)
            if footers and not bars:
                above = footers.first() if footers.first().parent is screen else None
                screen.mount(Transport(), before=above)
            for bar in bars:
                if bar.is_mounted:
                    bar.show(self._player, look)
        if notice := self._player.notice:
            self._player.notice = ""
            self.show_message(notice)

    def action_pause(self) -> None:
        """Play or pause."""
        self._request(self._player.toggle)

    def action_step(self, target: str, direction: int) -> None:
        """Go to the next (1) or previous (-1) target of this kind and pause."""
        player = self._player
        marks, name = STEP_TARGETS[target]

        def step() -> None:
            if not player.seek_mark(marks, direction):
                read = player.index.progress
                so_far = f" so far: {read:.0%} has been read" if read < 1 else ""
                player.notice = f"No {'later' if direction > 0 else 'earlier'} {name}{so_far}."

        self._request(step)

    def action_speed(self, step: int) -> None:
        """Play faster (1) or slower (-1)."""
        self._request(lambda: self._player.change_speed(step))

    def action_tenth(self, tenth: int) -> None:
        """Go to this tenth of the replay (0-10)."""
        self._request(lambda: self._player.seek(tenth / 10), is_seek=True)

    def action_go_to_time(self) -> None:
        """Open the input for a time."""
        self._to_root()
        self.root.query_one(Transport).edit_time()

    @on(WorkerOpened)
    def _seek_to_opened(self, event: WorkerOpened) -> None:
        if (at := event.at) is not None:
            self._request(lambda: self._player.seek_time(at), is_seek=True)

    @on(Track.SeekRequested)
    def _seek_requested(self, event: Track.SeekRequested) -> None:
        self._request(lambda: self._player.seek(event.share), is_seek=True)

    @on(Transport.TimeEntered)
    def _time_entered(self, event: Transport.TimeEntered) -> None:
        focus_unless_typing(self.root.fleet)
        if event.text is None:
            self.draw()
        elif (at := self._player.time_of(event.text)) is not None:
            self._request(lambda: self._player.seek_time(at), is_seek=True)
        else:
            self.show_message("Invalid time: use 20:14, 20:14:07, or a date and a time, 2026-03-11 20:14.")
            self.draw()

    # ---------------------------------------------------------------- find

    def action_filter(self) -> None:
        """Edit the words to find in this session."""
        self._to_root()
        self.root.query_one(Transport).edit_words(self._found.words if self._found else "")

    @on(Transport.WordsEntered)
    def _words_entered(self, event: Transport.WordsEntered) -> None:
        focus_unless_typing(self.root.fleet)
        words = (event.text or "").strip()
        if not words:
            self.draw()
            return
        self._found = None
        self.run_worker(
            partial(self._run_search, words), thread=True, name="find", group="find", exclusive=True
        )
        self.show_message(f"Searching for {words} ...")

    def _run_search(self, words: str) -> None:
        """Search the session. Runs in a thread."""
        worker = get_current_worker()
        found = find_texts(self._player.paths, words, lambda: worker.is_cancelled)
        if not worker.is_cancelled:
            self.post_message(self.TextsFound(found))

    @on(TextsFound)
    def _texts_found(self, event: TextsFound) -> None:
        self._found = event.found
        self.action_match(1)

    def action_match(self, step: int) -> None:
        """Go to the next (1) or previous (-1) text that was found, and pause."""
        if (found := self._found) is None:
            self.show_message("Nothing to repeat yet: / finds texts in this session.")
            return
        hit = found.step(step, self._clock.now())
        unread = f" ({found.problems} files are unreadable)" if found.problems else ""
        if hit is None:
            self.show_message(f"No text of this session has {found.words}{unread}.")
            return
        self._request(lambda: self._player.seek_and_pause(hit.at), is_seek=True)
        if hit.thread in self._by_id:
            self.select_worker(hit.thread)
        self.show_message(f"{(found.current or 0) + 1} of {len(found.hits)}{unread}: {hit.what}: {hit.text}")

    def _request(self, control: Callable[[], object], *, is_seek: bool = False) -> None:
        """Let the player carry out a control, and draw what it has changed."""
        done = self._player.request(control, is_seek=is_seek)
        if done.done():
            self.draw()
        else:
            done.add_done_callback(lambda _: self.draw())
