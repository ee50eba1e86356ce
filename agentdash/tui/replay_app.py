"""The replay: the dashboard's screens over a player, with a transport bar and the keys of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click
from textual.geometry import Region
from textual.message import Message
from textual.worker import get_current_worker

from agentdash.model.source import Clock
from agentdash.model.worker import Snapshot
from agentdash.replay.cursor import members_only
from agentdash.replay.index import MARKED, Mark
from agentdash.replay.library.search import Hit, TextSearch
from agentdash.replay.player import Player
from agentdash.tui.app import AgentDash
from agentdash.tui.fleet.screen import FleetScreen
from agentdash.tui.format import clock, date
from agentdash.tui.keys import bindings, ids
from agentdash.tui.options import Feed, Options
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span, Tone, width
from agentdash.tui.theme import ASCII, Look

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
_SIGNS: Final[tuple[tuple[Mark, str, Tone, str], ...]] = (
    (Mark.MISMATCH, "≠", "mismatch", "A sandbox is seen to differ."),
    (Mark.WAIT, "!", "ask", "A worker starts waiting for you."),
    (Mark.DENIAL, "⊘", "stuck", "A sandbox denied something."),
    (Mark.FAILURE, "✕", "stuck", "A command, a turn or a worker failed."),
    (Mark.ESCALATION, "▴", "ask", "A call asks for more than its policy grants."),
    (Mark.POLICY, "→", "mismatch", "Another policy takes effect."),
)
"""The marks, the most important first: sign, tone, meaning. Widgets replace signs by ASCII."""
_POSITION: Final = ("◉", "O")
_PLAYED: Final = ("━", "=")
_AHEAD: Final = ("─", "-")
_UNREAD: Final = ("╌", " ")
_TRACK_FROM_CELLS: Final = 30
"""In a narrower bar there is no track."""
_ONE_LINE_FROM_CELLS: Final = 60
"""In a narrower bar the track has a line of its own."""
_DATE_FROM_CELLS: Final = 100
"""In a narrower bar the date is left out."""


# ------------------------------------------------------------ the bar


class Position(Lines):
    """The position on the timeline, with its marks. A click on the timeline goes there."""

    ALLOW_SELECT = False

    class SeekRequested(Message):
        """The timeline was clicked.

        Args:
            share: the position, from 0 to 1.
        """

        def __init__(self, share: float) -> None:
            self.share = share
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="position", focusable=False)
        self.track = Region()
        """The cells of the timeline."""

    def show_player(self, player: Player, look: Look) -> None:
        """Draw the state of the player at the time that is shown."""
        cells = self.size.width or self.app.size.width
        left, right = bar_ends(player, look.now, cells)
        is_one_line = cells >= _ONE_LINE_FROM_CELLS
        room = cells - width(left) - width(right) if is_one_line else cells - 2
        if cells < _TRACK_FROM_CELLS or room < 1:
            self.track, lines = Region(), [left]
        else:
            self.track = Region(width(left), 0, room, 1) if is_one_line else Region(1, 1, room, 1)
            line = timeline(player.index.marks_per_cell(room), player.share, player.index.progress, look)
            lines = [(*left, *line, *right)] if is_one_line else [left, (Span(" "), *line)]
        self.show(lines)

    def on_click(self, event: Click) -> None:
        """Go to the place under the mouse."""
        if self.track.contains(event.x, event.y):
            self.post_message(self.SeekRequested((event.x - self.track.x) / max(1, self.track.width - 1)))


class Transport(Vertical):
    """The bar, with the inputs below it. It is always visible: a replay must not be mistaken for the live
    dashboard."""

    position = getters.query_one(Position)
    seek = getters.query_one("#seek", FilterBar)
    export = getters.query_one("#export", FilterBar)

    def compose(self) -> ComposeResult:
        """Compose the position, and the inputs."""
        yield Position()
        yield FilterBar(
            id="seek", sign="S", hint='words, "a phrase", then n: the next; or a time: 20:14, 50%'
        )
        yield FilterBar(id="export", sign="X", hint="FILE.html or FILE.md")


def bar_ends(player: Player, now: float, cells: int) -> tuple[Line, Line]:
    """Return the parts of the bar left and right of the track, at a time (unix seconds)."""
    flag, read_only = Span("REPLAY", "marked"), Span("READ-ONLY", "muted")
    does = "reading" if player.is_waiting else "playing" if player.playing else "paused"
    at = now if player.live else min(now, player.end)
    time = Span(f" {clock(at)}")
    if cells < _TRACK_FROM_CELLS:
        return (flag, Span(" "), read_only, *((time,) if cells > 25 else ())), ()
    mode = Span(" LIVE   ", "live") if player.live else Span(f" {does:7}", "strong")
    speed = Span(f"  x{player.speed:g}", "strong")
    if cells < _ONE_LINE_FROM_CELLS:
        return (Span(" "), flag, mode, time, speed, Span("  "), read_only), ()
    day = f" {date(at)}" if cells >= _DATE_FROM_CELLS else ""
    left = (Span(" "), flag, mode, Span(f"{day}{time.text} "))
    progress = player.index.progress
    read = (Span(f"  read {progress:.0%}", "muted"),) if progress < 1 else ()
    end = Span(f" {clock(max(player.end, at))}")
    return left, (end, speed, *read, Span("  "), read_only, Span(" "))


def timeline(marks_per_cell: Sequence[Mark], share: float, read: float, look: Look) -> Line:
    """Return the track: what is played, the position, what is ahead, and the marks.

    Args:
        share: the position, 0 to 1.
        read: share of the recording that the index has read.
    """
    ascii_only, cells = look.glyphs is ASCII, len(marks_per_cell)
    position = min(cells - 1, int(share * cells))
    spans: list[Span] = []
    for cell, marks in enumerate(marks_per_cell):
        sign, tone, _ = sign_of(marks)
        if cell == position:
            sign, tone = _POSITION[ascii_only], "marked"
        elif not sign and cell > read * cells:
            sign, tone = _UNREAD[ascii_only], "muted"
        elif not sign:
            sign, tone = (_PLAYED[ascii_only], "chosen") if cell < position else (_AHEAD[ascii_only], "rule")
        if spans and spans[-1].tone == tone:
            spans[-1] = Span(spans[-1].text + sign, tone)
        else:
            spans.append(Span(sign, tone))
    return tuple(spans)


def sign_of(marks: Mark) -> tuple[str, Tone, str]:
    """Return the sign of the most important of some marks, its tone and its meaning; empty without any."""
    return next(((sign, tone, text) for mark, sign, tone, text in _SIGNS if marks & mark), ("", "", ""))


# ------------------------------------------------------------ the app


class RecordedClock:
    """The time that a replay shows: its player's, and after the end of the recording, the end."""

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
    LEGEND = tuple(sign[1:] for sign in _SIGNS)

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
        self._hit = -1
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

    def action_search(self) -> None:
        """Edit the words to find in this session, or the time to go to."""
        self.bar.seek.edit(self._search.words if self._search else "")

    action_filter = action_search

    def action_export(self) -> None:
        """Edit the name of the file to export to."""
        self.bar.export.edit(f"session-{self._player.family.thread[:8]}.html")

    @on(FilterBar.Closed, "#export")
    def _export_entered(self, event: FilterBar.Closed) -> None:
        if event.submitted and (file := event.text.strip()):
            self.export(self._export, file)

    @on(FilterBar.Closed, "#seek")
    def _seek_entered(self, event: FilterBar.Closed) -> None:
        text = event.text.strip()
        if not event.submitted or not text:
            return
        if share := _SHARE.fullmatch(text):
            self._player.seek(min(1.0, int(share[1]) / 100))
        elif not self._player.seek_typed(text):
            self.show_message(f"Searching for {text} ...")
            job = partial(self._run_search, TextSearch(text, self._player.family.paths))
            self.run_worker(job, thread=True, name="find", group="find", exclusive=True)
        self.draw()

    def _run_search(self, search: TextSearch) -> None:
        """Search the session. Runs in a thread."""
        worker = get_current_worker()
        if not any(worker.is_cancelled for _ in search.steps()):
            self.call_later(self._show_found, search)

    def _show_found(self, search: TextSearch) -> None:
        self._search = search
        self._hits = sorted(search.hits, key=lambda hit: (hit.at, hit.thread, hit.line))
        self._hit = sum(hit.at < self._clock.now() for hit in self._hits) - 1
        self.action_match()

    def action_match(self) -> None:
        """Go to the next text that was found, and pause; behind the last is the first."""
        if (search := self._search) is None:
            self.show_message("Nothing to repeat yet: / finds texts in this session.")
            return
        unread = f" ({search.problems} files are unreadable)" if search.problems else ""
        if not self._hits:
            self.show_message(f"No text of this session has {search.words}{unread}.")
            return
        self._hit = (self._hit + 1) % len(self._hits)
        hit = self._hits[self._hit]
        self._player.playing = False
        self._player.seek_time(hit.at)
        if hit.thread in self._by_id:
            self.select_worker(hit.thread)
        self.draw()
        self.show_message(f"{self._hit + 1} of {len(self._hits)}{unread}: {hit.what}: {hit.text}")
