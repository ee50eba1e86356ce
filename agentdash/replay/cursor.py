"""A position in a merged stream: the fleet as known there, and the steps that follow."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentdash.agents.codex.rollout.lineage import line_time
from agentdash.engine.reduce.fleet import reduce
from agentdash.files import open_stream
from agentdash.model.fleet import Fleet, RecordingEnded
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.replay.streams import OVERHANG_S, FileStream, MergedStream, Step, check_stop, past_requests

_SETTLE_S: Final = 5.0
"""Seconds after the last step by which every state has settled."""


class Cursor:
    """Advances through a stream and reduces its events. A pickled cursor is a checkpoint: all later state
    follows from it.

    Args:
        stream: positioned at its beginning.
    """

    def __init__(self, stream: MergedStream) -> None:
        self.stream = stream
        self.fleet = Fleet()
        """The fleet after all steps so far."""
        self.position = 0
        """Number of steps consumed."""
        self.at = 0.0
        """Time of the newest consumed step (unix seconds)."""
        self.exact = True
        """Whether every earlier step was consumed; false after `skim` skipped some."""
        self.closed = False
        """Whether the stream is known to have ended: no step will follow."""
        self._settled = False
        self.is_active = True
        """Whether lines of logs are still to come, or a process works for a thread."""
        self._active_at = 0.0
        """Time of the newest step with that (unix seconds)."""

    @property
    def due(self) -> float | None:
        """Time of the next step (unix seconds); None at the current end.

        A recording ends with the family's workers: nothing that is in it later concerns them.
        """
        due = self.stream.due
        if due is None or self.stream.logs_pending or due <= self._active_at + OVERHANG_S:
            return due
        return None

    @property
    def judged_at(self) -> float:
        """The time at which the fleet is to be judged: that of the newest step, at the end later, so that
        every state has settled."""
        return self.at + _SETTLE_S if self.closed or self._settled else self.at

    def advance(self) -> Step | None:
        """Consume one step and return it; None at the current end."""
        if self.due is None:
            return None
        had_logs = self.stream.logs_pending
        step = self.stream.next()
        if step is not None:
            self.fleet = reduce(self.fleet, step.events)
            self.position += 1
            self.at = step.at
            self.is_active = had_logs or _is_active(self.fleet)
            if self.is_active:
                self._active_at = step.at
        return step

    def close(self) -> None:
        """Mark the stream as ended: no process holds its files, so an open turn counts as abandoned."""
        known = self.stream.closing_events()
        requests = [
            request
            for thread in self.fleet.threads.values()
            if thread.id not in self.fleet.requests
            for request in past_requests(thread, self.at)
        ]
        ended = RecordingEnded(at=self.at, threads_ended=True)
        self.fleet = reduce(self.fleet, [*known, *requests, ended])
        self.closed = True

    def settle(self) -> None:
        """Let the states settle at the end of what has been written, of threads that may go on."""
        self._settled = True

    def checkpoint(self) -> bytes:
        """Return this cursor in compressed form, for `restore`."""
        from zstandard import ZstdCompressor  # noqa: PLC0415 - keeps the start of other commands fast

        packed = ZstdCompressor(level=1).compress(pickle.dumps(self, pickle.HIGHEST_PROTOCOL))
        return bytes(memoryview(packed))  # a copy: the original over-allocates its buffer


def _is_active(fleet: Fleet) -> bool:
    """Return whether a turn is open that a process works for."""
    links = fleet.links
    return any(
        thread.lines and thread.is_in_turn and (thread.id in links.owners or thread.id in links.commands)
        for thread in fleet.threads.values()
    )


def restore(checkpoint: bytes) -> Cursor:
    """Return the cursor of a checkpoint made by this process. Unpickles: never pass bytes from elsewhere."""
    from zstandard import ZstdDecompressor  # noqa: PLC0415 - see above

    cursor: Cursor = pickle.loads(ZstdDecompressor().decompress(checkpoint))  # noqa: S301 - see above
    return cursor


# ------------------------------------------------------------
# Reach a distant time at once by reading only the head of each file and what directly precedes that time
# The steps in between are skipped, and the cursor is marked inexact, until the index has read that far.


_HEAD_STEPS: Final = 64
"""Steps read from the beginning: they hold the metadata, the first prompt and the first policy."""
_TAIL_BYTES: Final = 1 << 18
"""Bytes read in front of the target time: the newest turn, as a rule."""
_MIN_SKIP_BYTES: Final = 1 << 20
"""A smaller gap is read: that takes a few hundredths of a second."""
_BISECT_BYTES: Final = 1 << 16
"""Interval at which the search for a time ends: one read."""


def skim(stream: MergedStream, at: float) -> Cursor:
    """Return a cursor at a time (unix seconds); it is exact if nothing had to be skipped.

    Args:
        stream: positioned at its beginning.
    """
    cursor = Cursor(stream)
    advance_skimming(cursor, at, _TAIL_BYTES)
    return cursor


def advance_skimming(cursor: Cursor, at: float, tail_bytes: int) -> None:
    """Advance a cursor to a time (unix seconds); most of what lies between is skipped.

    Args:
        cursor: at the beginning of its stream.
        at: the time to reach.
        tail_bytes: read in front of that time.
    """
    while cursor.position < _HEAD_STEPS and cursor.due is not None and cursor.due <= at:
        cursor.advance()
    cursor.exact = not [file for file in cursor.stream.streams if _skip_ahead(file, at, tail_bytes)]
    while cursor.due is not None and cursor.due <= at:
        cursor.advance()


def time_at(path: Path, offset: int) -> float | None:
    """Return the time of the first line after an offset, or None (also of a compressed file)."""
    return next((at for _, at in _timed_lines(path, offset)), None)


def last_time(path: Path) -> float | None:
    """Return the time of the last line, or None (also of a compressed file)."""
    if path.suffix == ".zst":
        return None
    try:
        size = path.stat().st_size
    except OSError:
        return None
    back = _BISECT_BYTES
    while True:
        times = [at for _, at in _timed_lines(path, max(0, size - back) if back < size else 0)]
        if times or back >= min(size, 2 * MAX_LINE_BYTES):
            return max(times, default=None)
        back *= 8


def _skip_ahead(file: FileStream, at: float, tail_bytes: int) -> bool:
    """Skip to shortly before a time if that is far ahead; return whether anything was skipped."""
    if file.path.suffix == ".zst":
        return False
    try:
        low, high = file.offset, file.path.stat().st_size
    except OSError:
        return False
    while high - low > _BISECT_BYTES:
        middle = (low + high) // 2
        start, found = next(_timed_lines(file.path, middle, high), (high, at))
        if found < at and start < high:
            low = start
        else:
            high = middle
    target, _ = next(_timed_lines(file.path, max(file.offset, low - tail_bytes), low), (low, at))
    if target - file.offset <= _MIN_SKIP_BYTES:
        return False
    file.skip_to(target)
    return True


def _timed_lines(path: Path, offset: int, end: int | None = None) -> Iterator[tuple[int, float]]:
    """Yield offset and time of each line that begins after `offset` (or at 0). Lines without a time are
    left out."""
    if path.suffix == ".zst":
        return
    try:
        with open_stream(path) as file:
            file.seek(offset)
            offset += len(file.readline(MAX_LINE_BYTES)) if offset else 0
            while (end is None or offset < end) and (line := file.readline(MAX_LINE_BYTES)):
                check_stop()
                if (at := line_time(line)) is not None:
                    yield offset, at
                offset += len(line)
    except OSError:
        return
