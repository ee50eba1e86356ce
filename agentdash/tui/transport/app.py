"""The dashboard over what is past: the same screens, and a bar with the keys of time."""

from __future__ import annotations

from textual import on

from agentdash.model.clock import Clock
from agentdash.tui.app import AgentDash
from agentdash.tui.fleet.screen import FleetScreen
from agentdash.tui.keys import bindings, ids
from agentdash.tui.options import Feed, Options
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.theme import Look
from agentdash.tui.transport.bar import STOPS, Player, Track, Transport
from agentdash.tui.view import Drawn

HINTS = (
    "pause",
    "next-event",
    "next-turn",
    "next-failure",
    "next-finding",
    "faster",
    "go-to-time",
    "mismatch",
    "why",
    "open",
    "quit",
    "help",
)
_USUAL = Options()
_BEAT = 0.25
"""Seconds between two looks at where the player is."""


class Playback(AgentDash):
    """The dashboard with a player in it.

    Args:
        feed: where snapshots come from.
        clock: the player's.
        player: what plays.
    """

    BINDINGS = bindings(*ids("player"))

    def __init__(self, feed: Feed, clock: Clock, player: Player, *, options: Options = _USUAL) -> None:
        super().__init__(feed, clock, options=options)
        self.root = FleetScreen(self.glyphs, HINTS)
        self._player = player

    def on_ready(self) -> None:
        """Starts to listen, and to watch the player."""
        super().on_ready()
        self.set_interval(_BEAT, self._show_bars)

    def draw(self) -> None:
        """The screens, and the bar of each."""
        super().draw()
        self._show_bars()

    @on(Lines.Resized)
    def _show_bars(self) -> None:
        if not self.is_running:
            return
        look = Look(self._clock.now(), self.glyphs)
        for screen in self.screen_stack:
            if not isinstance(screen, Drawn) or not screen.is_mounted:
                continue
            bars, footers = screen.query(Transport), screen.query(Footer)
            if footers and not bars:
                screen.mount(
                    Transport(), before=footers.first() if footers.first().parent is screen else None
                )
            for bar in bars:
                if bar.is_mounted:
                    bar.show(self._player, look)
        if notice := self._player.notice:
            self._player.notice = ""
            self.say(notice)

    # ---------------------------------------------------------------- time

    def action_pause(self) -> None:
        """On, or not."""
        self._player.toggle()
        self.draw()

    def action_step(self, stop: str, direction: int) -> None:
        """To the next (1) or previous (-1) stop of this kind."""
        marks, name = STOPS[stop]
        if not self._player.seek_mark(marks, direction):
            where = "after" if direction > 0 else "before"
            read = self._player.index.progress
            so_far = f" so far: {read:.0%} has been read" if read < 1 else ""
            self.say(f"There is no {name} {where} this{so_far}.")
        self.draw()

    def action_speed(self, step: int) -> None:
        """Faster (1), slower (-1)."""
        self._player.change_speed(step)
        self.draw()

    def action_tenth(self, tenth: int) -> None:
        """To so many tenths of the whole."""
        self._player.seek(tenth / 10)
        self.draw()

    def action_go_to_time(self) -> None:
        """Lets somebody type a time."""
        self._to_root()
        self.root.query_one(Transport).ask()

    @on(Track.Sought)
    def _sought(self, event: Track.Sought) -> None:
        self._player.seek(event.share)
        self.draw()

    @on(Transport.Timed)
    def _timed(self, event: Transport.Timed) -> None:
        self.root.fleet.focus()
        if event.text is not None and not self._player.seek_text(event.text):
            self.say("A time is 20:14 or 20:14:07, or a date and a time: 2026-03-11 20:14.")
        self.draw()
