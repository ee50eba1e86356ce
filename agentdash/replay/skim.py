"""To a far place at once: the head of each file and what is right in front of that place, as live skims big files.

What lies between is left out, and said to be, until the index has got there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentdash.agents.codex.rollout.kinds import LINE_LIMIT
from agentdash.agents.codex.rollout.lineage import line_time
from agentdash.replay.cursor import Cursor
from agentdash.replay.streams import FileStream, MergedStream

_HEAD: Final = 64
"""Beats read from the beginning: who it is, what it was asked, what it may do."""
_NEAR: Final = 1 << 18
"""Bytes in front of the place that are read."""
_WORTH: Final = 1 << 20
"""A smaller gap is read."""
_BLOCK: Final = 1 << 16


def skim(tape: MergedStream, at: float) -> Cursor:
    """A cursor at a time (unix seconds); exact if nothing was worth leaving out.

    Args:
        tape: from its beginning.
    """
    cursor = Cursor(tape)
    while cursor.number < _HEAD and tape.due is not None and tape.due <= at:
        cursor.advance()
    cursor.exact = not [strand for strand in tape.journal_streams if _leap(strand, at)]
    while tape.due is not None and tape.due <= at:
        cursor.advance()
    return cursor


def time_at(path: Path, offset: int) -> float | None:
    """The time of the first line that begins behind an offset; None where there is none, or where the file is compressed."""
    return next((at for _, at in _lines(path, offset)), None)


def last_time(path: Path) -> float | None:
    """The time of the last line; None as above."""
    if path.suffix == ".zst":
        return None
    try:
        size, back = path.stat().st_size, _BLOCK
    except OSError:
        return None
    while True:
        if (
            times := [at for _, at in _lines(path, max(0, size - back) if back < size else 0)]
        ) or back >= min(size, 2 * LINE_LIMIT):
            return max(times, default=None)
        back *= 8


def _leap(strand: FileStream, at: float) -> bool:
    """Goes on shortly before a time, if that is far away; whether it was."""
    if strand.path.suffix == ".zst":
        return False
    try:
        low, high = strand.offset, strand.path.stat().st_size
    except OSError:
        return False
    while high - low > _BLOCK:
        middle = (low + high) // 2
        start, found = next(_lines(strand.path, middle, high), (high, at))
        if found < at and start < high:
            low = start
        else:
            high = middle
    near, _ = next(_lines(strand.path, max(strand.offset, low - _NEAR), low), (low, at))
    if near - strand.offset <= _WORTH:
        return False
    strand.leap(near)
    return True


def _lines(path: Path, offset: int, end: int | None = None) -> Iterator[tuple[int, float]]:
    """Where the lines behind an offset (or at 0) begin, and when they were written. Lines without a time are left out."""
    if path.suffix == ".zst":
        return
    try:
        with path.open("rb") as file:
            file.seek(offset)
            offset += len(file.readline(LINE_LIMIT)) if offset else 0
            while (end is None or offset < end) and (line := file.readline(LINE_LIMIT)):
                if (at := line_time(line)) is not None:
                    yield offset, at
                offset += len(line)
    except OSError:
        return
