"""Find the lines in the gap of a skimmed file that still hold in its tail: what a session is configured with
is stated when a turn begins, and a turn may be longer than the tail."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

_FIRST_BLOCK_BYTES: Final = 1 << 16
_MAX_BLOCK_BYTES: Final = 1 << 20
"""Read at once: more the farther back."""
_MAX_SEARCHED_BYTES: Final = 1 << 26
"""How far back is searched: a tenth of a second."""


def lines_in_force(fd: int, low: int, high: int, marks: Sequence[bytes], max_line: int) -> list[bytes]:
    """Return the newest line with the first mark, and of each other mark the newest line after it.

    Args:
        fd: the file.
        low: where the gap begins, the offset of a line.
        high: where it ends.
        marks: what such lines contain, and no others.
        max_line: bytes of the longest line that is returned.
    """
    lowest = max(low, high - _MAX_SEARCHED_BYTES)
    found: list[bytes] = []
    for mark in marks:
        at = _find_last(fd, mark, lowest, high)
        line = _line_at(fd, at, low, max_line) if at >= 0 else None
        if line is not None:
            found.append(line)
            lowest = at
    return found


def _find_last(fd: int, mark: bytes, low: int, high: int) -> int:
    """Return the offset of the last occurrence between two offsets; -1 where there is none."""
    end, size = high, _FIRST_BLOCK_BYTES
    while end > low:
        start = max(low, end - size)
        block = os.pread(fd, min(end + len(mark) - 1, high) - start, start)
        if (at := block.rfind(mark)) >= 0:
            return start + at
        end, size = start, min(2 * size, _MAX_BLOCK_BYTES)
    return -1


def _line_at(fd: int, at: int, low: int, max_line: int) -> bytes | None:
    """Return the line that contains an offset; None where it is not complete, or longer than `max_line`
    bytes."""
    lowest = max(low, at - max_line)
    newline = _find_last(fd, b"\n", lowest, at)
    if newline < 0 and lowest > low:
        return None
    start = newline + 1 if newline >= 0 else low
    line = b""
    while b"\n" not in line and len(line) <= max_line:
        block = os.pread(fd, _FIRST_BLOCK_BYTES, start + len(line))
        if not block:
            return None
        line += block
    line, end, _ = line.partition(b"\n")
    return line if end and len(line) <= max_line else None
