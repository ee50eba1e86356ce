"""The bar of a replay: where on its timeline one is, what lies on it, how fast it goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import MouseDown, MouseMove, MouseUp
from textual.message import Message
from textual.widgets import Input, Static

from agentdash.replay.markers import Mark
from agentdash.replay.player import Player
from agentdash.tui.format import clock, date
from agentdash.tui.keys import bindings
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span, Tone, width
from agentdash.tui.theme import ASCII, Glyphs, Look

__all__ = ["STOPS", "Mark", "Player", "Track", "Transport"]

STOPS: Final = {
    "event": (Mark.VISIBLE, "event"),
    "turn": (Mark.TURN, "turn"),
    "command": (Mark.COMMAND, "command"),
    "failure": (Mark.FAILURE | Mark.DENIAL, "failure"),
    "wait": (Mark.WAIT, "place where somebody is waited for"),
    "finding": (Mark.FINDING, "mismatch or denial that shows"),
}
"""What one can step to, and how it is called."""
_SIGNS: Final[tuple[tuple[Mark, str, str, Tone, str], ...]] = (
    (Mark.FINDING, "≠", "#", "mismatch", "A mismatch or a denial shows for the first time."),
    (Mark.WAIT, "!", "!", "ask", "A worker begins to wait for somebody."),
    (Mark.DENIAL, "⊘", "x", "stuck", "A sandbox denied something."),
    (Mark.FAILURE, "✗", "e", "stuck", "A command, a turn or a worker failed."),
    (Mark.ESCALATION, "▴", "^", "ask", "A call wants more than its policy grants."),
    (Mark.POLICY, "⋄", "p", "mismatch", "Another policy is in force."),
    (Mark.TURN, "╵", "+", "strong", "A turn begins."),
    (Mark.COMMAND, "⋅", ".", "", "A command."),
)
"""The marks, the most important first: sign, plain sign, tone, meaning."""
_HEAD: Final = ("◉", "O")
_BEHIND, _AHEAD, _UNREAD = ("━", "="), ("─", "-"), ("╌", " ")
_TINY, _SHORT, _LONG = 30, 60, 100
"""Cells from which on there is a track, from which on it is on the same line as the rest, and from which on dates have room."""


@dataclass(frozen=True)
class TransportState:
    """What the bar shows, its marks aside."""

    at: float
    """Unix seconds, as the two below."""
    begin: float
    end: float
    share: float
    """Where on the whole it is, from 0 to 1."""
    read: float
    """How much of it the index has read."""
    exact: bool
    state: str
    """`playing`, `paused`, `LIVE`."""
    speed: float
    gap: float

    @classmethod
    def of(cls, player: Player, at: float) -> TransportState:
        """The deck of a player, at a time."""
        state = "LIVE" if player.live else "playing" if player.playing else "paused"
        index = player.index
        end = max(player.end, at) if player.live else player.end
        return cls(
            at, player.begin, end, player.share, index.progress, player.exact, state, player.speed, player.gap
        )


class Track(Lines):
    """The timeline. Pressing the mouse on it goes there."""

    ALLOW_SELECT = False

    class Sought(Message):
        """Somebody wants to be there."""

        def __init__(self, share: float) -> None:
            self.share = share
            super().__init__()

        def can_replace(self, message: Message) -> bool:
            """Of several in a row the last one counts."""
            return isinstance(message, Track.Sought)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Goes there."""
        self.capture_mouse()
        self._seek(event.x)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Goes along while the button is held."""
        if self.app.mouse_captured is self:
            self._seek(event.x)

    def on_mouse_up(self, _: MouseUp) -> None:
        """Stays."""
        self.release_mouse()

    def _seek(self, x: int) -> None:
        cells = max(1, self.size.width)
        self.post_message(self.Sought(1.0 if x >= cells - 1 else max(0, x) / cells))


class Transport(Horizontal):
    """The bar. It never goes away: what is past must not be taken for what is."""

    BINDINGS = bindings("back")

    class Timed(Message):
        """A time was typed; None: it was given up."""

        def __init__(self, text: str | None) -> None:
            self.text = text
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self._left, self._right = (
            Lines(id="deck-left", focusable=False),
            Lines(id="deck-right", focusable=False),
        )
        self._track = Track(id="track", focusable=False)
        self._time = Input(placeholder="20:14, 20:14:07, 2026-03-11 20:14", compact=True)
        self._time.cursor_blink = False

    def compose(self) -> ComposeResult:
        """What it is, the track, what is ahead; and the input that takes its place."""
        yield self._left
        yield self._track
        yield self._right
        yield Static("go to", id="deck-ask")
        yield self._time

    def show(self, player: Player, look: Look) -> None:
        """Shows where the player is."""
        deck = TransportState.of(player, look.now)
        cells = self.size.width or self.app.size.width
        left, right = ends(deck, cells, look)
        for part, line in ((self._left, left), (self._right, right)):
            part.styles.width = width(line)
            part.set_class(not line, "-empty")
            part.show([line])
        room = 0 if cells < _TINY else cells - 2 if cells < _SHORT else cells - width(left) - width(right)
        self._track.show([timeline(deck, player.index.marks_per_cell(room), look)] if room > 0 else [])

    def ask(self) -> None:
        """Lets somebody type a time."""
        self.add_class("-asking")
        self._time.value = ""
        self._time.focus()

    def action_back(self) -> None:
        """Gives it up."""
        self._done(None)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._done(event.value)

    def _done(self, text: str | None) -> None:
        self.remove_class("-asking")
        self.post_message(self.Timed(text))


def ends(deck: TransportState, cells: int, look: Look) -> tuple[Line, Line]:
    """What stands before and behind the track."""
    flag, only = Span("REPLAY", "marked"), Span("READ-ONLY", "muted")
    if cells < _TINY:
        return (flag, Span(" "), only, *((Span(f" {clock(deck.at)}"),) if cells > 25 else ())), ()
    state = Span(f" {deck.state:7}", "live" if deck.state == "LIVE" else "strong")
    speed = Span("  xmax" if math.isinf(deck.speed) else f"  x{deck.speed:g}", "strong")
    if cells < _SHORT:
        return (Span(" "), flag, state, Span(f" {clock(deck.at)}"), speed, Span("  "), only), ()
    day = f"{date(deck.at)} " if cells >= _LONG else ""
    rest = [Span(f" {clock(deck.end)}"), speed]
    if cells >= _LONG:
        rest.append(Span(f"  gaps {'<=' if look.glyphs is ASCII else '≤'} {deck.gap:g}s", "muted"))
    if deck.read < 1:
        rest.append(Span(f"  read {deck.read:.0%}", "muted"))
    return (Span(" "), flag, state, Span(f" {day}{clock(deck.at)} ")), (*rest, Span("  "), only, Span(" "))


def timeline(deck: TransportState, stripes: Sequence[Mark], look: Look) -> Line:
    """The track: what is behind, where it is, what is ahead, and the marks."""
    plain, cells = look.glyphs is ASCII, len(stripes)
    head = min(cells - 1, int(deck.share * cells))
    spans: list[Span] = []
    for cell, marks in enumerate(stripes):
        sign, tone = _sign(marks, plain=plain)
        if cell == head:
            sign, tone = _HEAD[plain], "marked"
        elif not sign and cell > deck.read * cells:
            sign, tone = _UNREAD[plain], "muted"
        elif not sign:
            sign, tone = (_BEHIND[plain], "chosen") if cell < head else (_AHEAD[plain], "rule")
        if spans and spans[-1].tone == tone:
            spans[-1] = Span(spans[-1].text + sign, tone)
        else:
            spans.append(Span(sign, tone))
    return tuple(spans)


def legend(glyphs: Glyphs) -> list[tuple[str, Tone, str]]:
    """Every sign of the track, its tone, and what it means."""
    return [(simple if glyphs is ASCII else sign, tone, text) for _, sign, simple, tone, text in _SIGNS]


def _sign(marks: Mark, *, plain: bool) -> tuple[str, Tone]:
    for mark, sign, simple, tone, _ in _SIGNS:
        if marks & mark:
            return simple if plain else sign, tone
    return "", ""
