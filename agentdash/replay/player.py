"""Play a stream on a virtual clock, forwards and backwards: the event source of a replay.

The index of the stream has the time of every step, so that playing and seeking only choose a position. A
thread then reads the files up to it.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from agentdash.agents.codex.home import locks, thread_id
from agentdash.files import file_size
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet, FleetReplaced
from agentdash.model.source import Emit, FleetChannel
from agentdash.replay.clock import VirtualClock, parse_time
from agentdash.replay.cursor import SETTLE_S
from agentdash.replay.family import Family
from agentdash.replay.index import MAX_GAP_S, Mark, StreamIndex
from agentdash.replay.streams import FileStream, family_stream

_FRAME_INTERVAL_S: Final = 0.1
"""Seconds between two positions while time passes: the interval of snapshots."""
_POLL_INTERVAL_S: Final = 0.25
"""Seconds between two checks for growth and for progress of the index, while it is paused."""
_NEAR_STEPS: Final = 200
"""So many steps are read on; farther ahead a checkpoint is closer."""
_OPEN_FOR_S: Final = 60.0
"""Seconds after its last line for which a session without a lock may continue: Codex before 0.148 takes no
locks."""


class Player:
    """A source that replays a family from any position.

    It emits the whole fleet as known at the position. What a seek needs and the index has not read yet is
    waited for.

    Args:
        family: the threads to replay.
        clock: the displayed time; the player sets it.
        speed: one of `REPLAY_SPEEDS`.
        extra: further streams of the same time, such as recordings of panes.
    """

    name = "player"

    def __init__(
        self, family: Family, clock: VirtualClock, *, speed: float = 1.0, extra: Sequence[FileStream] = ()
    ) -> None:
        self.family = family
        self._clock = clock
        self._changed = asyncio.Event()
        self._wanted: Callable[[], bool] | None = None
        """A seek that waits for the index: carries it out, and returns whether it could."""
        self._elapsed = 0.0
        """Seconds of play from the first step to the present moment, as of `StreamIndex.elapsed`."""
        self._played_at = time.monotonic()
        """When that was computed."""
        self._closed = False
        """Whether the position is the end, which nothing follows."""
        self.speed = speed
        self.playing = True
        """Whether time passes."""
        self.live = False
        """Whether the end was reached while the session is still being written."""
        paths = [*family.paths, *(stream.path for stream in extra)]
        size = sum(map(file_size, paths))
        self.index = StreamIndex(family_stream(family, extra), size, self._is_open)
        self._cursor = self.index.cursor(1)
        self.begin = self._cursor.at
        """Time of the first step (unix seconds)."""
        self.position = 1
        """Number of steps up to the present moment."""
        self._go_to(1)

    @property
    def end(self) -> float:
        """Time of the last step, as far as known (unix seconds)."""
        return max(self.begin, self.index.end)

    @property
    def share(self) -> float:
        """Share of the whole before the position, 0 to 1."""
        return 1.0 if self._closed else self.index.share_of(self.position)

    @property
    def is_waiting(self) -> bool:
        """Whether a seek waits for the index."""
        return self._wanted is not None

    @property
    def marks(self) -> Mark:
        """The marks of the newest step."""
        return Mark(self.index.marks[self.position - 1]) if self.position <= self.index.known else Mark(0)

    # ---------------------------------------------------------------- the source

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the fleet at the position."""
        del fleet
        return [self.read()]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit the fleet whenever the position changes; at the end, wait for more."""
        del channel
        indexing = asyncio.ensure_future(asyncio.to_thread(self.index.run))
        shown = None
        try:
            while True:
                if indexing.done():
                    await indexing  # raises why it has ended
                if shown != (place := (self.position, self._closed)):
                    shown = place
                    emit([await asyncio.to_thread(self.read)])
                with suppress(TimeoutError):
                    async with asyncio.timeout(_FRAME_INTERVAL_S if self.playing else _POLL_INTERVAL_S):
                        await self._changed.wait()
                self._changed.clear()
                self._play_on()
        finally:
            self.index.stop()

    def read(self) -> FleetReplaced:
        """Read the files up to the position and return the fleet there. May run in a thread."""
        position, closed, cursor = self.position, self._closed, self._cursor
        if cursor.closed or not cursor.position <= position <= cursor.position + _NEAR_STEPS:
            cursor = self.index.cursor(position)
        while cursor.position < position:
            if cursor.advance() is None and not cursor.stream.poll():
                break
        if closed:
            cursor.close()
        self._cursor = cursor
        return FleetReplaced(at=cursor.at, fleet=cursor.fleet)

    def _play_on(self) -> None:
        """Go to the position that is due now."""
        index, now = self.index, time.monotonic()
        passed, self._played_at = now - self._played_at, now
        if self._wanted is not None and self._wanted():
            self._wanted = None
        if self._closed and index.last > self.position:  # the session was resumed
            self._go_to(self.position)
        if not self.playing or self._closed:
            return
        if self.live:
            self.position = index.known
        elif self.position >= index.known:
            self._reach_end()
        else:
            self._elapsed = min(self._elapsed + passed * self.speed, index.elapsed[index.known - 1])
            position = bisect_right(index.elapsed, self._elapsed, hi=index.known)
            if position > self.position:
                self.position = position
                beyond = self._elapsed - index.elapsed[position - 1]
                self._set_clock(index.times[position - 1] + beyond)

    def _reach_end(self) -> None:
        """Follow a session that is still being written; pause at the end of another one."""
        if not self.index.complete:
            return
        if self.index.open:
            self.live = True
            self._clock.set(now=time.time(), speed=1.0, paused=False)
        else:
            self.playing = False
            self._go_to(self.position, closed=True)

    # ---------------------------------------------------------------- controls

    def toggle(self) -> None:
        """Play or pause; at the end, restart from the beginning."""
        self.playing = not self.playing
        if self._closed:
            self._go_to(1)
        else:
            self._go_to(self.position, self._clock.now())

    def seek_mark(self, wanted: Mark, direction: int, *, wraps: bool = False) -> bool:
        """Pause at the next (1) or previous (-1) step with one of these marks; behind the last visible step,
        at the end.

        Args:
            wraps: whether the first step follows the last one.

        Returns:
            Whether there is such a step.
        """
        index = self.index
        position = index.find(self.position + self._closed, wanted, direction)
        if position is None and wraps and index.is_over:
            position = index.find(0, wanted, direction)
        is_end = position is None and direction > 0 and not self._closed and index.is_over
        if position is None and not (is_end and wanted & Mark.VISIBLE):
            return False
        self.playing = False
        self._go_to(index.known if position is None else position, closed=position is None)
        return True

    def seek(self, share: float) -> None:
        """Seek to a share of the whole, 0 to 1."""
        self._seek(lambda: self._reach_share(share))

    def seek_time(self, at: float) -> None:
        """Seek to a time (unix seconds)."""
        self._seek(lambda: self._reach_time(at))

    def seek_typed(self, text: str) -> bool:
        """Seek to a time as the user types it; return whether it is one."""
        if parse_time(text, self.begin, self.end) is None:
            return False
        self._seek(lambda: self._reach_typed(text))
        return True

    # ---------------------------------------------------------------- helpers

    def _seek(self, reach: Callable[[], bool]) -> None:
        """Carry out a seek, as soon as the index has read so far."""
        self._wanted = None if reach() else reach
        self._changed.set()

    def _reach_share(self, share: float) -> bool:
        index = self.index
        if share >= 1 and index.complete:
            self.playing = self.playing and index.open
            self._go_to(index.known, closed=index.is_over)
            return True
        position = index.position_of(share)
        if position is not None:
            self._go_to(position)
        return position is not None

    def _reach_typed(self, text: str) -> bool:
        at = parse_time(text, self.begin, self.end)
        if at is None or (at < self.begin and not self.index.complete):  # it may be on a later day
            return at is None
        return self._reach_time(at)

    def _reach_time(self, at: float) -> bool:
        if not self.index.covers(at):
            return False
        at = max(self.begin, min(at, self.end))
        self._go_to(min(bisect_right(self.index.times, at), self.index.known), at)
        return True

    def _go_to(self, position: int, at: float | None = None, *, closed: bool = False) -> None:
        """Choose a position, and a time behind it (unix seconds; None: that of its newest step)."""
        index = self.index
        self.position = position = max(1, position)
        self._closed = closed
        self.live = False
        is_read = position <= len(index.times)
        step_at = index.times[position - 1] if is_read else self.begin
        beyond = max(0.0, at - step_at) if at is not None else 0.0
        self._elapsed = index.elapsed[position - 1] + min(beyond, MAX_GAP_S) if is_read else 0.0
        self._set_clock(step_at + (SETTLE_S if closed else beyond))
        self._changed.set()

    def _set_clock(self, now: float) -> None:
        self._clock.set(now=now, speed=self.speed if self.playing else 1.0, paused=not self.playing)

    def _is_open(self, at: float) -> bool:
        """Return whether a process holds one of the rollouts, or the newest step (at `at`) is recent."""
        now = time.time()
        if abs(now - at) < _OPEN_FOR_S:
            return True
        held = locks(self.family.home, now).holders if self.family.home else {}
        return any(thread_id(path) in held for path in self.family.paths)
