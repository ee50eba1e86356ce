"""The dashboard over a past session as an asciicast (version 2), for asciinema."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from io import StringIO
from typing import Final

import msgspec
from rich.console import Console
from textual.strip import Strip

from agentdash.model.worker import Snapshot
from agentdash.replay.clock import VirtualClock
from agentdash.tui.app import AgentDash
from agentdash.tui.options import Options
from agentdash.tui.textual_internals import rendered_strips

_COLUMNS: Final = 120
_ROWS: Final = 36
_MIN_FRAME_INTERVAL_S: Final = 0.15
"""Changes in between go into the next frame: more than 7 frames a second cannot be read."""
_LAST_FRAME_S: Final = 3.0
"""How long the last frame stays before a player stops or loops."""


class _SilentFeed:
    """A feed without snapshots: they are pushed by `AgentDash.take`."""

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        await asyncio.Event().wait()
        yield Snapshot(0.0)


async def asciicast(
    scenes: Iterator[tuple[float, Callable[[], Snapshot]]], options: Options, gap: float, speed: float
) -> AsyncIterator[bytes]:
    """Yield the lines of the file.

    Args:
        scenes: times (unix seconds), in order, and functions that build the snapshot: called for frames only.
        gap: a longer pause between two scenes is cut to so many seconds.
        speed: seconds of the session in one second of the recording.
    """
    clock = VirtualClock(0.0)
    app = AgentDash(_SilentFeed(), clock, options=options)
    encoder = _FrameEncoder()
    async with app.run_test(size=(_COLUMNS, _ROWS)) as pilot:

        async def frame(at: float, snapshot: Snapshot) -> str:
            clock.set(now=at, paused=True)
            app.take(snapshot)
            await pilot.pause()
            return encoder.encode(rendered_strips(app.screen))

        played = 0.0
        last_frame = -_MIN_FRAME_INTERVAL_S
        before: float | None = None
        build: Callable[[], Snapshot] | None = None
        for at, build in scenes:
            if before is None:
                yield _header(at)
            else:
                played += min(gap, max(0.0, at - before)) / speed
            before = at
            if played - last_frame >= _MIN_FRAME_INTERVAL_S and (output := await frame(at, build())):
                last_frame = played
                yield _output(played, output)
        if build is not None and before is not None:
            if output := await frame(before, build()):
                yield _output(played + _MIN_FRAME_INTERVAL_S, output)
            yield _output(played + _LAST_FRAME_S, "\x1b[0m")


def _header(began: float) -> bytes:
    header = {
        "version": 2,
        "width": _COLUMNS,
        "height": _ROWS,
        "timestamp": int(began),
        "title": "agentdash",
    }
    return msgspec.json.encode(header) + b"\n"


def _output(at: float, text: str) -> bytes:
    return msgspec.json.encode([round(at, 3), "o", text]) + b"\n"


class _FrameEncoder:
    """Encodes screens as terminal output: only the rows that have changed since the previous frame."""

    def __init__(self) -> None:
        self._console = Console(
            file=StringIO(), color_system="truecolor", force_terminal=True, legacy_windows=False
        )
        self._rows: list[str] = []

    def encode(self, strips: list[Strip]) -> str:
        """Return the escape sequences that turn the previous frame into this one; empty if both are equal."""
        rows = [strip.render(self._console) for strip in strips]
        hide_cursor_and_clear = "" if self._rows else "\x1b[?25l\x1b[2J"
        before = self._rows or [""] * len(rows)
        self._rows = rows
        pairs = enumerate(zip(rows, before, strict=True), 1)
        return hide_cursor_and_clear + "".join(f"\x1b[{y};1H{row}" for y, (row, old) in pairs if row != old)
