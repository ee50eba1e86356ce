"""Play a stream on a virtual clock, forwards and backwards: the event source of a replay."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.agents.codex.home import locks, thread_id
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet, FleetReplaced
from agentdash.model.limits import MAX_GAP_S, REPLAY_SPEEDS
from agentdash.model.source import Emit, FleetChannel
from agentdash.replay.clock import VirtualClock, parse_time
from agentdash.replay.cursor import Cursor, last_time, skim, time_at
from agentdash.replay.family import Family
from agentdash.replay.index import Mark, StreamIndex
from agentdash.replay.streams import FileStream, MergedStream, family_stream, stop_reading_on
from agentdash.replay.worker_thread import WorkerThread

_MAX_STEPS_PER_EMIT: Final = 200
"""Steps consumed before the event loop gets its turn again: a few milliseconds."""
_FRAME_INTERVAL_S: Final = 0.1
"""Seconds between two steps at the highest speed: the interval of snapshots."""
_POLL_INTERVAL_S: Final = 0.25
"""Seconds between two checks for growth and for progress of the index, while nothing is due."""
_OPEN_FOR_S: Final = 60.0
"""Seconds after its last line for which a session without a lock may continue: Codex before 0.148 takes no
locks."""
_INDEX_END_S: Final = 0.2
"""For the index to end, when the player does: one block is read in milliseconds, unless the disk is dead."""


class Player:
    """A source that replays a family from any position.

    It always emits the whole fleet as known at the position. While it streams, files are read in a thread of
    its own, which also carries out the controls: these are passed to `request` then, and may be called
    directly otherwise.

    Args:
        family: the threads to replay.
        clock: the displayed time; the player sets it.
        gap: longest pause between two visible steps, in recorded seconds.
        speed: one of `REPLAY_SPEEDS`.
        open_extra: opens further streams of the same time, such as recordings of panes.
    """

    name = "player"

    def __init__(
        self,
        family: Family,
        clock: VirtualClock,
        *,
        gap: float = MAX_GAP_S,
        speed: float = 1.0,
        open_extra: Callable[[], Sequence[FileStream]] = tuple,
    ) -> None:
        self._family = family
        self._clock = clock
        self._open_extra = open_extra
        paths = [*family.paths, *(stream.path for stream in open_extra())]
        self._sizes = {path: path.stat().st_size for path in paths if path.is_file()}
        self._emit: Emit | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where the player streams, or did so last."""
        self._loop_thread = 0
        self._streams = False
        self._controls = ControlQueue()
        self._pause_since = 0.0
        """Start of the current pause: the time of the newest visible step (unix seconds)."""
        self._wanted_finding: int | None = None
        """Number of the finding to seek to as soon as the index has it."""
        self.gap = gap
        """Longest pause between two visible steps, in recorded seconds."""
        self.speed = speed
        """One of `REPLAY_SPEEDS`."""
        self.playing = True
        """Whether time passes."""
        self.live = False
        """Whether the end was reached while the session is still being written."""
        self.notice = ""
        """A message for the user, to be shown once."""
        self.index = StreamIndex(self._open_stream, sum(self._sizes.values()), gap, self._is_open)
        self._cursor = self.index.cursor(1)
        self.begin = self._cursor.at
        """Time of the first step (unix seconds)."""
        self._last = max(filter(None, map(last_time, family.paths)), default=self.begin)
        self._move_to(self._cursor)

    # ---------------------------------------------------------------- position

    @property
    def end(self) -> float:
        """Time of the last step, as far as known (unix seconds)."""
        return max(self._last, self.index.end)

    @property
    def share(self) -> float:
        """Share of the whole before the position, 0 to 1."""
        if self._cursor.closed:
            return 1.0
        if self._cursor.exact:
            return self.index.share_of(self._cursor.position)
        return min(1.0, self._cursor.stream.offset / max(1, sum(self._sizes.values())))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The session logs of the family."""
        return self._family.paths

    @property
    def exact(self) -> bool:
        """Whether no step before the position was skipped."""
        return self._cursor.exact

    # ---------------------------------------------------------------- the source

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the fleet at the position."""
        del fleet
        return [FleetReplaced(at=self._cursor.at, fleet=self._cursor.fleet)]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit the fleet whenever a step is due; at the end, wait for more."""
        del channel
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._streams = True
        self._emit_fleet()
        stopped = threading.Event()
        reading = WorkerThread("player", lambda: stop_reading_on(stopped))
        indexing = threading.Thread(target=self.index.run, name="index", daemon=True)
        indexing.start()
        try:
            while True:
                if self.index.error:
                    raise RuntimeError(self.index.error)
                await self._controls.carry_out(reading)
                if delay := await reading.run(self._play):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(delay):
                            await self._controls.wait()
        finally:
            self._streams = False
            stopped.set()
            reading.end()
            self.index.stop()
            indexing.join(_INDEX_END_S)

    def request(self, control: Callable[[], object], *, is_seek: bool = False) -> asyncio.Future[None]:
        """Carry out a control of this player, at once or between two steps; call from the event loop.

        Args:
            control: calls methods of this player.
            is_seek: whether the result is the same without earlier seeks that were not carried out yet:
                these are left out.

        Returns:
            A future that is done when the control was carried out, and cancelled where it was left out.
        """
        done = asyncio.get_running_loop().create_future()
        if not self._streams:
            control()
            done.set_result(None)
            return done
        self._controls.add(control, done, is_seek=is_seek)
        return done

    def _play(self) -> float:
        """Consume what is due; return the seconds until the next call."""
        self._apply_index()
        cursor, now = self._cursor, self._clock.now()
        if cursor.closed or (due := self._due) is None:
            return self._wait_for_more()
        if not self.playing:
            return _POLL_INTERVAL_S
        if math.isinf(self.speed):
            self._advance_to_visible()
            return _FRAME_INTERVAL_S
        if due > now and now - self._pause_since >= self.gap:
            now = max(due, self._next_visible_at())
            self._set_clock(now)
        if due > now:
            return max(0.001, min(due - now, self.gap - (now - self._pause_since)) / self.speed)
        for _ in range(_MAX_STEPS_PER_EMIT):
            cursor.advance()
            if self._is_visible():
                self._pause_since = max(self._pause_since, cursor.at)
            if (next_due := self._due) is None or next_due > now:
                break
        self._emit_fleet()
        return 0.0

    @property
    def _due(self) -> float | None:
        """Time of the next step (unix seconds); None at the end: what a recording has later concerns no
        worker."""
        due, index = self._cursor.due, self.index
        is_over = due is not None and due > self.end and index.complete and not index.open
        return None if is_over else due

    def _next_visible_at(self) -> float:
        """Return the time of the next visible step, as far as the index has it; else 0."""
        index, cursor = self.index, self._cursor
        position = index.find(cursor.position, Mark.VISIBLE, 1) if cursor.exact else None
        return index.times[position - 1] if position is not None else 0.0

    def _is_visible(self) -> bool:
        """Return whether the newest step is visible; true if the index does not have it."""
        position = self._cursor.position
        if not self._cursor.exact or position > len(self.index.marks):
            return True
        return bool(self.index.marks[position - 1] & Mark.VISIBLE)

    def _advance_to_visible(self) -> None:
        while self._cursor.advance() is not None and not self._is_visible():
            pass
        self._move_to(self._cursor)

    def _wait_for_more(self) -> float:
        """Handle the current end of the files: close the cursor, or go live. Return the seconds until the
        next call."""
        cursor, index = self._cursor, self.index
        if cursor.closed:
            if index.last > cursor.position:  # the session was resumed
                self._move_to(index.cursor(cursor.position))
        elif cursor.stream.poll() or not index.complete or not self.playing:
            pass
        elif index.open:
            if not self.live:
                self._on_loop(self._go_live)
        else:
            cursor.close()
            self.playing = False
            self._move_to(cursor)
        return _POLL_INTERVAL_S

    def _go_live(self) -> None:
        self.live = True
        self._clock.set(now=time.time(), speed=1.0, paused=False)

    def _apply_index(self) -> None:
        """Use what the index has read meanwhile: replace a skimmed cursor, seek to a wanted finding."""
        if not self._cursor.exact and self.index.covers(self._cursor.at):
            self._cursor = self.index.cursor(self.index.position_at(self._cursor.at))
            self._emit_fleet()
        if self._wanted_finding is not None:
            complete = self.index.complete
            if (position := self.index.find_nth(Mark.FINDING, self._wanted_finding)) is not None:
                self._wanted_finding = None
                self._move_to(self.index.cursor(position))
            elif complete:
                self.notice = f"There is no finding number {self._wanted_finding}."
                self._wanted_finding = None

    # ---------------------------------------------------------------- controls

    def toggle(self) -> None:
        """Play or pause; at the end, restart from the beginning."""
        self.playing = not self.playing
        if self._cursor.closed:
            self._move_to(self.index.cursor(1))
        else:
            self._move_to(self._cursor, self._clock.now())

    def change_speed(self, steps: int) -> None:
        """Change the speed by so many entries of `REPLAY_SPEEDS`, within its range."""
        number = REPLAY_SPEEDS.index(self.speed) + steps
        self.speed = REPLAY_SPEEDS[max(0, min(len(REPLAY_SPEEDS) - 1, number))]
        if not self.live:
            self._set_clock(self._clock.now())

    def seek_mark(self, wanted: Mark, direction: int) -> bool:
        """Pause at the next (1) or previous (-1) step with one of these marks; return whether there is
        one."""
        cursor, index = self._cursor, self.index
        indexed = cursor.exact and (cursor.position < len(index.times) or index.complete)
        if not indexed:
            if direction < 0 or not wanted & Mark.VISIBLE:
                return False
            self.playing = False
            self._advance_to_visible()
            return True
        position = index.find(cursor.position + cursor.closed, wanted, direction)
        if position is not None:
            cursor = self._cursor_at(position)
        elif (
            direction > 0
            and wanted & Mark.VISIBLE
            and not cursor.closed
            and index.complete
            and not index.open
        ):
            cursor = self._cursor_at(index.last)
            cursor.close()
        else:
            return False
        self.playing = False
        self._move_to(cursor)
        return True

    def seek_finding(self, number: int) -> None:
        """Pause at the n-th finding, from 1, as soon as the index has it."""
        self._wanted_finding = number
        self.playing = False
        self._move_to(self._cursor)

    def seek(self, share: float) -> None:
        """Seek to a share of the whole, 0 to 1. What the index has not read yet is skimmed."""
        if share >= 1 and self.index.complete:
            cursor = self._cursor_at(len(self.index.times) if self.index.open else self.index.last)
            if not self.index.open:
                cursor.close()
                self.playing = False
            self._move_to(cursor)
        elif (position := self.index.position_of(share)) is not None:
            self._move_to(self._cursor_at(position))
        else:
            size, largest = max(((size, path) for path, size in self._sizes.items()), default=(0, None))
            at = time_at(largest, int(share * size)) if largest else None
            self.seek_time(self.end if at is None else at)

    def seek_time(self, at: float) -> None:
        """Seek to a time (unix seconds)."""
        at = max(self.begin, min(at, self.end))
        if self.index.covers(at):
            self._move_to(self._cursor_at(max(1, self.index.position_at(at))), at)
        else:
            self._move_to(skim(self._open_stream(), at), at)

    def seek_and_pause(self, at: float) -> None:
        """Pause at a time (unix seconds)."""
        self.playing = False
        self.seek_time(at)

    def time_of(self, text: str) -> float | None:
        """Parse a time as typed by the user (unix seconds), or return None."""
        return parse_time(text, self.begin, self.end)

    # ---------------------------------------------------------------- helpers

    def _cursor_at(self, position: int) -> Cursor:
        """Return a cursor at a position: the current one if it is close before it."""
        cursor = self._cursor
        near = cursor.position <= position <= cursor.position + _MAX_STEPS_PER_EMIT
        if not cursor.exact or cursor.closed or not near:
            return self.index.cursor(position)
        while cursor.position < position and cursor.advance() is not None:
            pass
        return cursor

    def _move_to(self, cursor: Cursor, now: float | None = None) -> None:
        self._cursor = cursor
        self.live = False
        self._pause_since = max(cursor.judged_at, now or 0.0)
        self._set_clock(self._pause_since)
        self._emit_fleet()

    def _set_clock(self, now: float) -> None:
        stopped = not self.playing or math.isinf(self.speed)
        speed = 1.0 if stopped else self.speed
        self._on_loop(lambda: self._clock.set(now=now, speed=speed, paused=stopped))

    def _emit_fleet(self) -> None:
        if (emit := self._emit) is not None:
            event = FleetReplaced(at=self._cursor.at, fleet=self._cursor.fleet)
            self._on_loop(lambda: emit([event]))

    def _on_loop(self, call: Callable[[], None]) -> None:
        """Call on the event loop, which wakes what waits there; at once if this is its thread."""
        if self._loop is None or threading.get_ident() == self._loop_thread:
            call()
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call)

    def _open_stream(self) -> MergedStream:
        return family_stream(self._family, self._open_extra())

    def _is_open(self, at: float) -> bool:
        """Return whether a process holds one of the rollouts, or the newest step (at `at`) is recent."""
        now = time.time()
        if abs(now - at) < _OPEN_FOR_S:
            return True
        held = locks(self._family.home, now).holders if self._family.home else {}
        return any(thread_id(path) in held for path in self._family.paths)


# ------------------------------------------------------------
# Controls of a player that streams, carried out between two steps


class _Request(NamedTuple):
    """A control to carry out."""

    control: Callable[[], object]
    is_seek: bool
    done: asyncio.Future[None]


class ControlQueue:
    """Controls that wait for the end of a step. To be used on one event loop."""

    def __init__(self) -> None:
        self._requests: deque[_Request] = deque()
        self._requested = asyncio.Event()

    def add(self, control: Callable[[], object], done: asyncio.Future[None], *, is_seek: bool) -> None:
        """Add a control; of seeks only the newest one is carried out, the futures of earlier ones are
        cancelled."""
        if is_seek:
            for earlier in [request for request in self._requests if request.is_seek]:
                self._requests.remove(earlier)
                earlier.done.cancel()
        self._requests.append(_Request(control, is_seek, done))
        self._requested.set()

    async def carry_out(self, thread: WorkerThread) -> None:
        """Carry out in a thread what waits."""
        self._requested.clear()
        while self._requests:
            request = self._requests.popleft()
            try:
                await thread.run(request.control)
            finally:
                if not request.done.done():
                    request.done.set_result(None)

    async def wait(self) -> None:
        """Wait for a control."""
        await self._requested.wait()
