"""Plays a tape on a virtual clock, forwards and backwards: the source of a session that is over, or nearly."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from agentdash.agents.codex.home import locks, thread_id
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet, FleetReplaced
from agentdash.model.source import Emit, FleetChannel
from agentdash.replay.clock import VirtualClock
from agentdash.replay.cursor import Cursor
from agentdash.replay.family import Family
from agentdash.replay.index import Index
from agentdash.replay.markers import Mark
from agentdash.replay.skim import last_time, skim, time_at
from agentdash.replay.streams import FileStream, MergedStream, family_stream
from agentdash.replay.time_input import moment

SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, math.inf)
"""Recorded seconds for each real one; at the last one each step is drawn, and no time is lost between two."""
GAP: Final = 2.0
"""Seconds of the longest pause, by default."""
_SLICE: Final = 200
"""Beats told before the screen gets its turn again."""
_FRAME: Final = 0.1
"""Seconds between two steps at the highest speed: as often as there are snapshots."""
_POLL: Final = 0.25
"""Seconds between two looks for what may have been written meanwhile."""
_FRESH: Final = 60.0
"""Seconds after its last line for which a session that nobody locks may still go on (Codex has locks since 0.148)."""


class Player:
    """A source that tells a family's past, wherever in it one wants to be.

    What it tells is always the whole fleet as it was known at that moment. Everything but `run` may be called by whoever sits in front of
    it, in the same loop.

    Args:
        family: whose past.
        clock: the time that is shown; the player sets it.
        gap: seconds (of the recording) of the longest pause.
        speed: out of `SPEEDS`.
        more: makes further strands of the same time, such as what was recorded of panes.
    """

    name = "player"

    def __init__(
        self,
        family: Family,
        clock: VirtualClock,
        *,
        gap: float = GAP,
        speed: float = 1.0,
        more: Callable[[], Sequence[FileStream]] = tuple,
    ) -> None:
        self._family, self._clock, self._more = family, clock, more
        self._paths = [*family.paths, *(strand.path for strand in more())]
        self._sizes = {path: path.stat().st_size for path in self._paths if path.is_file()}
        self._emit: Emit | None = None
        self._changed = asyncio.Event()
        self._since = 0.0
        """The time from which the present pause is counted: that of the newest step."""
        self._wanted: int | None = None
        """Which finding is looked for."""
        self.gap = gap
        """Seconds of the longest pause."""
        self.speed = speed
        """Out of `SPEEDS`."""
        self.playing = True
        """Whether time goes by."""
        self.live = False
        """Whether everything has been told and more is waited for."""
        self.notice = ""
        """What the person in front of it should know."""
        self.index = Index(self._tape, sum(self._sizes.values()), gap, self._is_open)
        """What is where."""
        self._cursor = self.index.cursor(1)
        self.begin = self._cursor.at
        """The time of the first beat (unix seconds)."""
        self._last = max(filter(None, map(last_time, self._sizes)), default=self.begin)
        self._go(self._cursor)

    # ---------------------------------------------------------------- where it is

    @property
    def end(self) -> float:
        """The time of the last beat, as far as that is known."""
        return max(self._last, self.index.times[-1] if self.index.times else 0.0)

    @property
    def share(self) -> float:
        """Where on the whole it is, from 0 to 1."""
        if self._cursor.closed:
            return 1.0
        if self._cursor.exact:
            return self.index.share_of(self._cursor.number)
        return min(1.0, self._cursor.tape.offset / max(1, sum(self._sizes.values())))

    @property
    def exact(self) -> bool:
        """Whether nothing was left out on the way here."""
        return self._cursor.exact

    # ---------------------------------------------------------------- a source

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """What is known where it is."""
        del fleet
        return [FleetReplaced(at=self._cursor.at, fleet=self._cursor.fleet)]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Tells what is due, when it is due; at the end waits for more."""
        del channel
        self._emit = emit
        self._tell()
        indexing = threading.Thread(target=self.index.run, name="index", daemon=True)
        indexing.start()
        try:
            while True:
                if self.index.trouble:
                    raise RuntimeError(self.index.trouble)
                pause = self._play()
                changed = self._changed
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await (changed.wait() if pause else asyncio.sleep(0))
        finally:
            self.index.stop()
            indexing.join()

    def _play(self) -> float:
        """Goes on as far as it is time to; returns in how many seconds it will be again."""
        self._look_up()
        cursor, now = self._cursor, self._clock.now()
        if cursor.closed or (due := cursor.tape.due) is None:
            return self._wait_for_more()
        if not self.playing:
            return _POLL
        if math.isinf(self.speed):
            self._step()
            return _FRAME
        if due > now and now - self._since >= self.gap:
            now = max(due, self._next_step())
            self._set_clock(now)
        if due > now:
            return max(0.001, min(due - now, self.gap - (now - self._since)) / self.speed)
        for _ in range(_SLICE):
            cursor.advance()
            if self._is_step():
                self._since = max(self._since, cursor.at)
            if (next_due := cursor.tape.due) is None or next_due > now:
                break
        self._tell()
        return 0.0

    def _next_step(self) -> float:
        """When the next thing happens that shows, as far as that is known."""
        index, cursor = self.index, self._cursor
        number = index.find(cursor.number, Mark.STEP, 1) if cursor.exact else None
        return index.times[number - 1] if number is not None else 0.0

    def _is_step(self) -> bool:
        """Whether the newest beat shows; where that is not known, it might."""
        number = self._cursor.number
        return (
            not self._cursor.exact
            or number > len(self.index.marks)
            or bool(self.index.marks[number - 1] & Mark.STEP)
        )

    def _step(self) -> None:
        """One step further."""
        while self._cursor.advance() is not None and not self._is_step():
            pass
        self._go(self._cursor)

    def _wait_for_more(self) -> float:
        """At the end of what has been written: closes it, or goes on live."""
        cursor, index = self._cursor, self.index
        if cursor.closed:
            if len(index.times) > cursor.number:  # somebody has taken it up again
                self._go(index.cursor(cursor.number))
        elif cursor.tape.wake() or not index.complete or not self.playing:
            pass
        elif index.open:
            if not self.live:
                self.live = True
                self._clock.set(now=time.time(), speed=1.0, paused=False)
        else:
            cursor.close()
            self.playing = False
            self._go(cursor)
        return _POLL

    def _look_up(self) -> None:
        """Whether the index has meanwhile got to what was skimmed, or to what is looked for."""
        if not self._cursor.exact and self.index.covers(self._cursor.at):
            self._cursor = self.index.cursor(self.index.number_at(self._cursor.at))
            self._tell()
        if self._wanted is not None:
            complete = self.index.complete
            if (number := self.index.nth(Mark.FINDING, self._wanted)) is not None:
                self._wanted = None
                self._go(self.index.cursor(number))
            elif complete:
                self.notice, self._wanted = f"There is no finding number {self._wanted}.", None

    # ---------------------------------------------------------------- controls

    def toggle(self) -> None:
        """Plays, or stands still; at the end, begins again."""
        self.playing = not self.playing
        if self._cursor.closed:
            self._go(self.index.cursor(1))
        else:
            self._go(self._cursor, self._clock.now())

    def change_speed(self, step: int) -> None:
        """Faster (1) or slower (-1)."""
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, SPEEDS.index(self.speed) + step))]
        if not self.live:
            self._set_clock(self._clock.now())

    def find(self, wanted: Mark, step: int) -> bool:
        """To the next (1) or previous (-1) beat that has one of these marks, and stands still there; whether there is one."""
        cursor, index = self._cursor, self.index
        if not cursor.exact or (
            cursor.number >= len(index.times) and not index.complete
        ):  # where the index has not been yet
            if step < 0 or not wanted & Mark.STEP:
                return False
            self.playing = False
            self._step()
            return True
        number = index.find(cursor.number + cursor.closed, wanted, step)
        if number is not None:
            cursor = self._at(number)
        elif step > 0 and wanted & Mark.STEP and not cursor.closed and index.complete and not index.open:
            cursor = self._at(len(index.times))
            cursor.close()
        else:
            return False
        self.playing = False
        self._go(cursor)
        return True

    def find_finding(self, number: int) -> None:
        """To the n-th finding, from 1, as soon as the index has got there; stands still until then."""
        self._wanted, self.playing = number, False
        self._go(self._cursor)

    def seek(self, share: float) -> None:
        """To a part of the whole, from 0 to 1. What the index has not got to yet is skimmed."""
        if share >= 1 and self.index.complete:
            cursor = self._at(len(self.index.times))
            if not self.index.open:
                cursor.close()
            self._go(cursor)
        elif (number := self.index.number_of(share)) is not None:
            self._go(self._at(number))
        else:
            size, biggest = max(((size, path) for path, size in self._sizes.items()), default=(0, None))
            at = time_at(biggest, int(share * size)) if biggest else None
            self.seek_time(self.end if at is None else at)

    def seek_time(self, at: float) -> None:
        """To a time (unix seconds)."""
        at = max(self.begin, min(at, self.end))
        if self.index.covers(at):
            self._go(self._at(max(1, self.index.number_at(at))), at)
        else:
            self._go(skim(self._tape(), at), at)

    def seek_moment(self, text: str) -> bool:
        """To a time as a person types it; whether it was one."""
        at = moment(text, self.begin, self.end)
        if at is not None:
            self.seek_time(at)
        return at is not None

    # ---------------------------------------------------------------- going there

    def _at(self, number: int) -> Cursor:
        """The cursor behind so many beats; the present one if it is near."""
        cursor = self._cursor
        if cursor.exact and not cursor.closed and cursor.number <= number <= cursor.number + _SLICE:
            while cursor.number < number and cursor.advance() is not None:
                pass
            return cursor
        return self.index.cursor(number)

    def _go(self, cursor: Cursor, now: float | None = None) -> None:
        self._cursor, self.live = cursor, False
        self._since = max(cursor.at, now or 0.0)
        self._set_clock(self._since)
        self._tell()

    def _set_clock(self, now: float) -> None:
        still = not self.playing or math.isinf(self.speed)
        self._clock.set(now=now, speed=1.0 if still else self.speed, paused=still)
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _tell(self) -> None:
        if self._emit is not None:
            self._emit([FleetReplaced(at=self._cursor.at, fleet=self._cursor.fleet)])

    def _tape(self) -> MergedStream:
        return family_stream(self._family, self._more())

    def _is_open(self, at: float) -> bool:
        """Whether somebody has one of the threads loaded, or has written lately."""
        now = time.time()
        if abs(now - at) < _FRESH:
            return True
        held = locks(self._family.home, now).holders if self._family.home else {}
        return any(thread_id(path) in held for path in self._family.paths)
