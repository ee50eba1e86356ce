"""What is where on a tape: the times and marks of all beats, and checkpoints from which any of them is near.

Made by going along the tape once, in a thread of its own; a tape that grows is followed. Whoever asks meanwhile is told what is known so
far. It takes 18 bytes for each beat, and a bounded number of checkpoints of some kilobytes.
"""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Final

from agentdash.model.sanitize import clean_line
from agentdash.replay.cursor import Cursor, thaw
from agentdash.replay.markers import Mark, Marker
from agentdash.replay.streams import MergedStream

_APART: Final = 0.025
"""Seconds of work between two checkpoints, so that any beat is as near as that."""
_MOST: Final = 2_000
"""Checkpoints kept. When there are more, every second one goes, and the next are twice as far apart."""
_BIG: Final = 8 << 20
_HEADSTART: Final = 0.4
"""Bytes of files so big that the first screen is to be there before they are read, and the seconds that it is given."""
_POLL: Final = 0.5
"""Seconds between two looks at files that have been read to their end."""


class Index:
    """The index of a tape.

    Args:
        tape: makes the tape anew.
        size: bytes of its files.
        gap: the time between two steps counts as at most so many seconds where the tape's length is concerned.
        is_open: whether more may yet be written, given the time of the newest beat. Asked when everything has been read.
    """

    def __init__(
        self, tape: Callable[[], MergedStream], size: int, gap: float, is_open: Callable[[float], bool]
    ) -> None:
        self._cursor = Cursor(tape())
        self._size, self._gap, self._is_open = size, gap, is_open
        self._marker = Marker()
        self._checkpoints = [(0, self._cursor.freeze())]
        self._apart = _APART
        self._step = 0.0, 0.0
        """When the newest step is played, and when it was."""
        self._striped: tuple[tuple[int, int, bool], list[Mark]] = ((0, 0, False), [])
        """The newest answer of `stripes`, and to what."""
        self._stopped = threading.Event()
        self.times = array("d")
        """When each beat is due."""
        self.played = array("d")
        """Seconds from the first beat to each, with the time between two steps cut short."""
        self.marks = array("H")
        """What each beat is: `Mark`."""
        self.complete = False
        """Whether everything that has been written is in it."""
        self.open = True
        """Whether more may come."""
        self.trouble: str | None = None
        """What has ended it too early."""

    @property
    def share(self) -> float:
        """How much of the files has been read, from 0 to 1."""
        return 1.0 if self.complete else min(0.999, self._cursor.tape.offset / max(1, self._size))

    # ------------------------------------------------------------ making it

    def run(self) -> None:
        """Reads the tape, and what is added to it, until stopped. For a thread."""
        self._stopped.clear()
        if self._size > _BIG and not self.times:
            self._stopped.wait(_HEADSTART)
        try:
            while not self._stopped.is_set():
                self.read()
                self._stopped.wait(_POLL)
                self._cursor.tape.wake()
        except Exception as error:  # whoever watches has to be told
            self.trouble = clean_line(f"{type(error).__name__}: {error}")

    def read(self) -> None:
        """Reads on to the end of what has been written."""
        cursor, worked = self._cursor, time.thread_time()
        before = cursor.fleet
        while not self._stopped.is_set() and (beat := cursor.advance()) is not None:
            mark = self._marker.mark(before, cursor.fleet, beat.events, beat.at)
            before = cursor.fleet
            self.marks.append(mark)
            played = self._step[0] + min(self._gap, beat.at - self._step[1]) if self.times else 0.0
            if mark & Mark.STEP or not self.times:
                self._step = played, beat.at
            self.played.append(played)
            self.times.append(beat.at)
            if time.thread_time() - worked > self._apart:
                self._checkpoints.append((cursor.number, cursor.freeze()))
                worked = time.thread_time()
                if len(self._checkpoints) > _MOST:
                    self._checkpoints, self._apart = self._checkpoints[::2], self._apart * 2
        if not self._stopped.is_set():
            self.open = self._is_open(self.times[-1] if self.times else 0.0)
            self.complete = True

    def stop(self) -> None:
        """Lets the thread end."""
        self._stopped.set()

    # ------------------------------------------------------------ asking it

    def cursor(self, number: int) -> Cursor:
        """The cursor behind so many beats, or behind all."""
        checkpoints = self._checkpoints
        _, frozen = checkpoints[bisect_right(checkpoints, number, key=lambda checkpoint: checkpoint[0]) - 1]
        cursor = thaw(frozen)
        while cursor.number < number and cursor.advance() is not None:
            pass
        return cursor

    def covers(self, at: float) -> bool:
        """Whether everything up to this time has been read."""
        return self.complete or bool(self.times and at < self.times[-1])

    def number_at(self, at: float) -> int:
        """How many beats are due by then."""
        return bisect_right(self.times, at)

    def find(self, number: int, wanted: Mark, step: int) -> int | None:
        """The next (1) or previous (-1) place whose newest beat has one of these marks.

        Args:
            number: beats behind the place to start from.
        """
        marks, mask, at = self.marks, int(wanted), number - 1 + step
        while 0 <= at < len(marks):
            if marks[at] & mask:
                return at + 1
            at += step
        return None

    def nth(self, wanted: Mark, number: int) -> int | None:
        """The place of the n-th beat, from 1, that has one of these marks."""
        at = 0
        for _ in range(number):
            if (found := self.find(at, wanted, 1)) is None:
                return None
            at = found
        return at

    def share_of(self, number: int) -> float:
        """Where a place is, from 0 to 1: by the time that it takes to get there."""
        known = len(self.played)
        if not known or number < 1:
            return 0.0
        total = self.played[known - 1]
        return self.share * (
            self.played[min(number, known) - 1] / total if total else min(number, known) / known
        )

    def number_of(self, share: float) -> int | None:
        """The place that is there; None where nothing has been read yet."""
        known = len(self.played)
        if not known or share > self.share:
            return None
        total, part = self.played[known - 1], share / self.share
        return max(1, bisect_right(self.played, part * total, hi=known) if total else round(part * known))

    def stripes(self, cells: int) -> list[Mark]:
        """The marks of so many equal parts of the whole."""
        known = len(self.played)
        if not known:
            return [Mark(0)] * cells
        if (key := (known, cells, self.complete)) != self._striped[0]:
            self._striped = key, self._stripes(known, cells)
        return self._striped[1]

    def _stripes(self, known: int, cells: int) -> list[Mark]:
        total, end = self.played[known - 1], self.share
        edges = []
        for cell in range(cells + 1):
            part = min(1.0, cell / cells / end) if end else 1.0
            edges.append(bisect_left(self.played, part * total, hi=known) if total else round(part * known))
        edges[-1] = known
        marks = self.marks[:known]
        return [Mark(reduce(or_, set(marks[a:b]), 0)) for a, b in pairwise(edges)]
