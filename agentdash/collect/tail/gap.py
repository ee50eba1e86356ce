"""Find the lines in the gap of a skimmed file that still hold in its tail: the beginning of the newest turn,
which may be longer than the tail, and what was changed since."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from agentdash.model.line_marks import LineMarks

_FIRST_BLOCK_BYTES: Final = 1 << 16
_MAX_BLOCK_BYTES: Final = 1 << 20
"""Read at once: more the farther back."""
_MAX_SEARCHED_BYTES: Final = 1 << 26
"""How far back is searched: a tenth of a second."""
_TURN_BLOCK_BYTES: Final = 1 << 15
"""From the beginning of a turn on, in which the other lines that begin it are looked for."""


class LinesInForce(NamedTuple):
    """The lines of a part of a file that hold at its end."""

    lines: list[bytes]
    begins_turn: bool | None
    """Whether a turn begins in it; None: not known, since it is too large."""


def lines_in_force(fd: int, low: int, high: int, marks: LineMarks, max_line: int) -> LinesInForce:
    """Return the lines that begin the newest turn of a part of a file, and the newest changes since.

    Args:
        fd: the file.
        low: where the part begins, the offset of a line.
        high: where it ends.
        marks: what these lines contain.
        max_line: bytes of the longest line that is returned.
    """
    lowest = max(low, high - _MAX_SEARCHED_BYTES)
    found: list[bytes] = []
    at = next((at for mark in marks.turn if (at := find_last(fd, mark, lowest, high)) >= 0), -1)
    begins_turn = at >= 0 or (None if lowest > low else False)
    if at >= 0 and (line := _line_at(fd, at, low, max_line)) is not None:
        found.append(line)
        lowest = at
        block = os.pread(fd, min(_TURN_BLOCK_BYTES, high - at), at).split(b"\n")[1:-1]
        found += [each for each in block if any(mark in each for mark in marks.beside)]
    for mark in marks.later:
        at = find_last(fd, mark, lowest, high)
        line = _line_at(fd, at, low, max_line) if at >= 0 else None
        if line is not None and line not in found:
            found.append(line)
    return LinesInForce(found, begins_turn)


def find_last(fd: int, mark: bytes, low: int, high: int) -> int:
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
    newline = find_last(fd, b"\n", lowest, at)
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
