"""The transport bar of a replay: the position on the timeline, its marks, the speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import MouseDown, MouseMove, MouseUp
from textual.message import Message
from textual.widgets import Input, Static

from agentdash.replay.index import Mark
from agentdash.replay.player import Player
from agentdash.tui.format import clock, date
from agentdash.tui.keys import bindings
from agentdash.tui.primitives.line_input import LineInput
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span, Tone, width
from agentdash.tui.theme import ASCII, Glyphs, Look

__all__ = ["STEP_TARGETS", "Mark", "Player", "Track", "Transport"]

STEP_TARGETS: Final = {
    "event": (Mark.VISIBLE, "event"),
    "turn": (Mark.TURN, "turn"),
    "command": (Mark.COMMAND, "command"),
    "failure": (Mark.FAILURE | Mark.DENIAL, "failure"),
    "wait": (Mark.WAIT, "waiting point"),
    "finding": (Mark.FINDING | Mark.DENIAL, "mismatch or denial"),
}
"""The marks that can be stepped to, and their name."""
_SIGNS: Final[tuple[tuple[Mark, str, str, Tone, str], ...]] = (
    (Mark.MISMATCH, "≠", "#", "mismatch", "A mismatch is observed for the first time."),
    (Mark.WAIT, "!", "!", "ask", "A worker begins to wait for you."),
    (Mark.DENIAL, "⊘", "x", "stuck", "A sandbox denied something."),
    (Mark.FAILURE, "✗", "e", "stuck", "A command, a turn or a worker failed."),
    (Mark.ESCALATION, "▴", "^", "ask", "A call requests more than its policy grants."),
    (Mark.POLICY, "⋄", "p", "mismatch", "Another policy takes effect."),
    (Mark.TURN, "╵", "+", "strong", "A turn begins."),
    (Mark.COMMAND, "⋅", ".", "", "A command."),
)
"""The marks, the most important first: sign, ASCII sign, tone, meaning."""
_POSITION: Final = ("◉", "O")
_PLAYED: Final = ("━", "=")
_AHEAD: Final = ("─", "-")
_UNREAD: Final = ("╌", " ")
_TRACK_FROM_CELLS: Final = 30
"""In a narrower bar there is no track."""
_ONE_LINE_FROM_CELLS: Final = 60
"""In a narrower bar the track has a line of its own."""
_DATE_FROM_CELLS: Final = 100
"""In a narrower bar the date and the gap are left out."""


@dataclass(frozen=True)
class TransportState:
    """What the bar shows, except the marks."""

    at: float
    """Position (unix seconds)."""
    end: float
    """End of the recording (unix seconds)."""
    share: float
    """Position from 0 to 1."""
    read: float
    """Share of the recording that the index has read."""
    mode: str
    """`playing`, `paused`, `LIVE`."""
    speed: float
    """Recorded seconds per second; inf: as fast as it can be drawn."""
    gap: float
    """Longest pause between two events (seconds)."""

    @classmethod
    def of(cls, player: Player, at: float) -> TransportState:
        """Return the state of a player at a time."""
        return cls(
            at=at if player.live else min(at, player.end),
            end=max(player.end, at) if player.live else player.end,
            share=player.share,
            read=player.index.progress,
            mode=_mode(player),
            speed=player.speed,
            gap=player.gap,
        )


def _mode(player: Player) -> str:
    if player.live:
        return "LIVE"
    return "playing" if player.playing else "paused"


class Track(Lines):
    """The timeline. Clicking or dragging the mouse on it seeks."""

    ALLOW_SELECT = False

    class SeekRequested(Message):
        """The mouse was pressed or dragged on the track.

        Args:
            share: the position, from 0 to 1.
        """

        def __init__(self, share: float) -> None:
            self.share = share
            super().__init__()

        def can_replace(self, message: Message) -> bool:
            """Return True for an earlier request: only the last one counts."""
            return isinstance(message, Track.SeekRequested)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Seek, and follow the mouse until the button is released."""
        self.capture_mouse()
        self._seek(event.x)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Seek while the button is held."""
        if self.app.mouse_captured is self:
            self._seek(event.x)

    def on_mouse_up(self, _: MouseUp) -> None:
        """Stop following the mouse."""
        self.release_mouse()

    def _seek(self, x: int) -> None:
        cells = max(1, self.size.width)
        self.post_message(self.SeekRequested(1.0 if x >= cells - 1 else max(0, x) / cells))


class Transport(Horizontal):
    """The bar. It is always visible: a replay must not be mistaken for the live dashboard."""

    BINDINGS = bindings("back")

    class TimeEntered(Message):
        """The input for a time was closed.

        Args:
            text: what was entered; None: it was cancelled.
        """

        def __init__(self, text: str | None) -> None:
            self.text = text
            super().__init__()

    class WordsEntered(Message):
        """The input for words to find was closed.

        Args:
            text: what was entered; None: it was cancelled.
        """

        def __init__(self, text: str | None) -> None:
            self.text = text
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self._asks_for: Literal["time", "words"] = "time"
        self._left = Lines(id="transport-left", focusable=False)
        self._right = Lines(id="transport-right", focusable=False)
        self._track = Track(id="track", focusable=False)
        self._prompt = Static("", id="transport-prompt")
        self._input = LineInput()
        self._input.cursor_blink = False

    def compose(self) -> ComposeResult:
        """Compose the track between its two ends, and the input that takes its place."""
        yield self._left
        yield self._track
        yield self._right
        yield self._prompt
        yield self._input

    def show(self, player: Player, look: Look) -> None:
        """Draw the state of the player."""
        state = TransportState.of(player, look.now)
        cells = self.size.width or self.app.size.width
        left, right = bar_ends(state, cells, look)
        for part, line in ((self._left, left), (self._right, right)):
            part.styles.width = width(line)
            part.set_class(not line, "-empty")
            part.show([line])
        room = cells - width(left) - width(right) if cells >= _ONE_LINE_FROM_CELLS else cells - 2
        if cells >= _TRACK_FROM_CELLS and room > 0:
            self._track.show([timeline(state, player.index.marks_per_cell(room), look)])
        else:
            self._track.show([])

    def edit_time(self) -> None:
        """Open the input for a time."""
        self._edit("time", "go to", "20:14, 20:14:07, 2026-03-11 20:14")

    def edit_words(self, text: str) -> None:
        """Open the input for words to find, with these."""
        self._edit("words", "find", 'words, "a phrase": said, run or printed; then n, N', text)

    def _edit(self, what: Literal["time", "words"], prompt: str, hint: str, text: str = "") -> None:
        self._asks_for = what
        self._prompt.update(prompt)
        self._input.placeholder = hint
        self.add_class("-editing")
        self._input.open(text)

    def action_back(self) -> None:
        """Cancel the input."""
        self._input.close()
        self._close_input(None)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_input(event.value)

    def _close_input(self, text: str | None) -> None:
        self.remove_class("-editing")
        entered = self.TimeEntered if self._asks_for == "time" else self.WordsEntered
        self.post_message(entered(text))


def bar_ends(state: TransportState, cells: int, look: Look) -> tuple[Line, Line]:
    """Return the parts of the bar left and right of the track."""
    flag, read_only = Span("REPLAY", "marked"), Span("READ-ONLY", "muted")
    time = Span(f" {clock(state.at)}")
    if cells < _TRACK_FROM_CELLS:
        return (flag, Span(" "), read_only, *((time,) if cells > 25 else ())), ()
    mode = Span(f" {state.mode:7}", "live" if state.mode == "LIVE" else "strong")
    speed = Span("  xmax" if math.isinf(state.speed) else f"  x{state.speed:g}", "strong")
    if cells < _ONE_LINE_FROM_CELLS:
        return (Span(" "), flag, mode, time, speed, Span("  "), read_only), ()
    day = f" {date(state.at)}" if cells >= _DATE_FROM_CELLS else ""
    left = (Span(" "), flag, mode, Span(f"{day}{time.text} "))
    right = [Span(f" {clock(state.end)}"), speed]
    if cells >= _DATE_FROM_CELLS:
        at_most = "<=" if look.glyphs is ASCII else "≤"
        right.append(Span(f"  gaps {at_most} {state.gap:g}s", "muted"))
    if state.read < 1:
        right.append(Span(f"  read {state.read:.0%}", "muted"))
    return left, (*right, Span("  "), read_only, Span(" "))


def timeline(state: TransportState, marks_per_cell: Sequence[Mark], look: Look) -> Line:
    """Return the track: what is played, the position, what is ahead, and the marks."""
    ascii_only, cells = look.glyphs is ASCII, len(marks_per_cell)
    position = min(cells - 1, int(state.share * cells))
    spans: list[Span] = []
    for cell, marks in enumerate(marks_per_cell):
        sign, tone = _sign(marks, ascii_only=ascii_only)
        if cell == position:
            sign, tone = _POSITION[ascii_only], "marked"
        elif not sign and cell > state.read * cells:
            sign, tone = _UNREAD[ascii_only], "muted"
        elif not sign:
            sign, tone = (_PLAYED[ascii_only], "chosen") if cell < position else (_AHEAD[ascii_only], "rule")
        if spans and spans[-1].tone == tone:
            spans[-1] = Span(spans[-1].text + sign, tone)
        else:
            spans.append(Span(sign, tone))
    return tuple(spans)


def legend(glyphs: Glyphs) -> list[tuple[str, Tone, str]]:
    """Return every sign of the track with its tone and its meaning."""
    return [(simple if glyphs is ASCII else sign, tone, text) for _, sign, simple, tone, text in _SIGNS]


def _sign(marks: Mark, *, ascii_only: bool) -> tuple[str, Tone]:
    for mark, sign, simple, tone, _ in _SIGNS:
        if marks & mark:
            return simple if ascii_only else sign, tone
    return "", ""
