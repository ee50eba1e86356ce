"""Reach a distant time at once by reading only the head of each file and what directly precedes that time.

The steps in between are skipped, and the cursor is marked inexact, until the index has read that far.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentdash.agents.codex.rollout.lineage import line_time
from agentdash.files import open_stream
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.replay.cursor import Cursor
from agentdash.replay.streams import FileStream, MergedStream, check_stop

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
    """Return the time of the first line after an offset; None if there is none or the file is compressed."""
    return next((at for _, at in _timed_lines(path, offset)), None)


def last_time(path: Path) -> float | None:
    """Return the time of the last line; None if there is none or the file is compressed."""
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
