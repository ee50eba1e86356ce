"""The transport bar of a replay: the position on the timeline, its marks, the speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Click
from textual.geometry import Region
from textual.message import Message

from agentdash.replay.index import Mark
from agentdash.replay.player import Player
from agentdash.tui.format import clock, date
from agentdash.tui.primitives.filter_bar import FilterBar
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span, Tone, width
from agentdash.tui.theme import ASCII, Look

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


def _mode(player: Player) -> str:
    if player.live:
        return "LIVE"
    if player.is_waiting:
        return "reading"
    return "playing" if player.playing else "paused"


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
            self.track = Region()
            self.show([left])
            return
        self.track = Region(width(left), 0, room, 1) if is_one_line else Region(1, 1, room, 1)
        line = timeline(player.index.marks_per_cell(room), player.share, player.index.progress, look)
        self.show([(*left, *line, *right)] if is_one_line else [left, (Span(" "), *line)])

    def on_click(self, event: Click) -> None:
        """Go to the place under the mouse."""
        if self.track.contains(event.x, event.y):
            self.post_message(self.SeekRequested((event.x - self.track.x) / max(1, self.track.width - 1)))


class Transport(Vertical):
    """The bar, with the inputs below it. It is always visible: a replay must not be mistaken for the live
    dashboard."""

    position = getters.query_one(Position)

    def compose(self) -> ComposeResult:
        """Compose the position, and the inputs."""
        yield Position()
        yield FilterBar(
            id="seek", sign="S", hint='words, "a phrase", then n: the next; or a time: 20:14, 50%'
        )
        yield FilterBar(id="export", sign="X", hint="FILE.html or FILE.md")

    def edit(self, bar: str, text: str) -> None:
        """Open an input with a text."""
        self.query_one(f"#{bar}", FilterBar).edit(text)


def bar_ends(player: Player, now: float, cells: int) -> tuple[Line, Line]:
    """Return the parts of the bar left and right of the track.

    Args:
        now: the time shown (unix seconds).
        cells: width of the bar.
    """
    flag, read_only = Span("REPLAY", "marked"), Span("READ-ONLY", "muted")
    at = now if player.live else min(now, player.end)
    time = Span(f" {clock(at)}")
    if cells < _TRACK_FROM_CELLS:
        return (flag, Span(" "), read_only, *((time,) if cells > 25 else ())), ()
    mode = Span(f" {_mode(player):7}", "live" if player.live else "strong")
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


def legend() -> list[tuple[str, Tone, str]]:
    """Return every sign of the track with its tone and its meaning."""
    return [(sign, tone, text) for _, sign, tone, text in _SIGNS]


def sign_of(marks: Mark) -> tuple[str, Tone, str]:
    """Return the sign of the most important of some marks, its tone and its meaning; empty without any."""
    return next(((sign, tone, text) for mark, sign, tone, text in _SIGNS if marks & mark), ("", "", ""))
