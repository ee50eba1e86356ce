"""The dashboard over a past session as an asciicast (v2): what asciinema plays, drawn by the app itself."""

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

_SIZE: Final = (120, 36)
_SPACING: Final = 0.15
"""Seconds between two frames, at least: what happens between is in the next one."""
_END: Final = 3.0
"""Seconds for which the last frame stands."""


class _Nothing:
    """A feed that is silent: snapshots are given by hand."""

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        await asyncio.Event().wait()
        yield Snapshot(0.0)


async def cast(
    scenes: Iterator[tuple[float, Callable[[], Snapshot]]], options: Options, gap: float, scheduler: float
) -> AsyncIterator[bytes]:
    """The lines of the file.

    Args:
        scenes: what can be seen from which time on, in the order of time; only what becomes a frame is asked for.
        gap: seconds that nothing happens for count as at most so many.
        pace: how many of these seconds go by in one of the recording.
    """
    clock = VirtualClock(0.0)
    app = AgentDash(_Nothing(), clock, options=options)
    painter = _Painter()

    def show(at: float, snapshot: Snapshot) -> None:
        clock.set(now=at, paused=True)
        app.take(snapshot)

    async with app.run_test(size=_SIZE) as pilot:
        played, drawn, before = 0.0, -_SPACING, 0.0
        see: Callable[[], Snapshot] | None = None
        for at, see in scenes:
            if before:
                played += min(gap, max(0.0, at - before)) / scheduler
            else:
                header = {
                    "version": 2,
                    "width": _SIZE[0],
                    "height": _SIZE[1],
                    "timestamp": int(at),
                    "title": "agentdash",
                }
                yield msgspec.json.encode(header) + b"\n"
            before = at
            if played - drawn < _SPACING:
                continue
            show(at, see())
            await pilot.pause()
            if paint := painter.paint(app.screen._compositor.render_strips()):
                drawn = played
                yield msgspec.json.encode([round(played, 3), "o", paint]) + b"\n"
        if see is not None:
            show(before, see())
            await pilot.pause()
            if paint := painter.paint(app.screen._compositor.render_strips()):
                yield msgspec.json.encode([round(played + _SPACING, 3), "o", paint]) + b"\n"
            yield msgspec.json.encode([round(played + _END, 3), "o", "\x1b[0m"]) + b"\n"


class _Painter:
    """Turns rows into what a terminal has to be told: only those that changed."""

    def __init__(self) -> None:
        self._console = Console(
            file=StringIO(), color_system="truecolor", force_terminal=True, legacy_windows=False
        )
        self._rows: list[str] = []

    def paint(self, strips: list[Strip]) -> str:
        """The escape sequences that lead from the picture before to this one; empty where they are the same."""
        rows = [strip.render(self._console) for strip in strips]
        told = "" if self._rows else "\x1b[?25l\x1b[2J"
        before, self._rows = self._rows or [""] * len(rows), rows
        changed = (
            f"\x1b[{y};1H{row}"
            for y, (row, old) in enumerate(zip(rows, before, strict=True), 1)
            if row != old
        )
        return told + "".join(changed)
