"""One log file: the offset up to which it was read, and reading what was appended, replaced or compressed
since.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.files import TORN, is_record, open_regular, open_stream, unpacked
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.line_marks import NO_MARKS, LineMarks
from agentdash.model.sanitize import clean_line
from agentdash.model.times import possible_time

# Paths are strings here: this runs for thousands of files, several times a minute.


_path = lru_cache(maxsize=1_000)(Path)
"""Parsing the path of a log takes as long as reading a line of it."""
_HEAD_BYTES: Final = 48 << 10
_TAIL_BYTES: Final = 48 << 10
"""Read of a skimmed file's beginning and end; more where the end holds no whole line."""
_FINGERPRINT_BYTES: Final = 256
"""Before the offset, compared before reading on: the file may have been truncated, and have grown again
since."""
_MTIME_RESOLUTION_NS: Final = 50_000_000
"""A file changed more recently than this may change again without a new time stamp."""


class FileGrown(msgspec.Struct, frozen=True):
    """Lines that were appended to a file. Also emitted without lines: for a new file, and when only size or
    time changed."""

    path: Path
    lines: tuple[bytes, ...]
    """Complete lines without their newlines; consecutive."""
    first: int
    """Number of the first line, from 1; 0: not known, since a gap was left before it."""
    size: int
    """Bytes on disk."""
    modified: float
    """Time of change, unix seconds."""
    reset: bool = False
    """Whether everything read from this file before is invalid."""
    skimmed: bool = False
    """Whether a gap was left in this file; `LogFollower.fill` reads it whole."""
    same_turn: bool = False
    """Whether no turn begins in that gap."""
    oversized: int = 0
    """Lines that were too long and were skipped, just before the first line."""


class FileUnreadable(msgspec.Struct, frozen=True):
    """A file or directory cannot be read. Emitted once per reason, and retried at every sweep; a `FileGrown`
    revokes it."""

    path: Path
    reason: str
    """One clean line."""


class ReadLimits(msgspec.Struct, frozen=True):
    """How much of a file is read; all in bytes."""

    skim_above: int | None = None
    """Size above which only head and tail are read at first; None: files are read whole."""
    max_line: int = MAX_LINE_BYTES
    """Length of the longest line that is kept."""
    batch: int = 4 << 20
    """Read at once."""
    marks: LineMarks = NO_MARKS
    """What lines contain that are read in a gap, too: see `lines_in_force`."""


FileState = tuple[int, int, int, int]
"""Device, inode, size in bytes, and time of change in nanoseconds."""


class LogFile:
    """A growing file, and the state of reading it.

    Each batch opens the file, checks that it is still the one that was read before, reads on and closes it.
    """

    def __init__(self, path: str, limits: ReadLimits) -> None:
        self.path = path
        """Where the file is; set by the follower when it moves."""
        self.emitted = False
        """Whether anything was emitted of this file."""
        self._limits = limits
        self._found: FileState | None = None
        """As it was when something was emitted last."""
        self._failure: str | None = None
        self.restart()

    def restart(self, *, whole: bool = False) -> None:
        """Discard what was read; with `whole`, do not skim any more."""
        if whole:
            self._limits = replace(self._limits, skim_above=None)
        self.read_state: FileState | None = None
        """The state in which there is nothing to read; None: try to read in any case."""
        self.skimmed = False
        """Whether a gap was left in the file."""
        self._same_turn = False
        """Whether no turn begins in that gap."""
        self._pending_reset = self.emitted
        """Whether the next `FileGrown` invalidates what was emitted before."""
        self._offset = 0
        self._fingerprint = b""
        """The bytes before the offset."""
        self._lines = LineSplitter(self._limits.max_line)

    @property
    def modified(self) -> int:
        """Time of change as found last, in nanoseconds."""
        return self._found[3] if self._found else 0

    def read(self) -> Iterator[FileGrown | FileUnreadable]:
        """Yield everything that is new.

        Raises:
            FileNotFoundError: the file does not exist any more.
        """
        try:
            yield from self._unpack() if self.path.endswith(".zst") else self._read_on()
        except FileNotFoundError:
            raise
        except OSError as error:
            yield from self._report_failure(error)

    # ------------------------------------------------------------ plain files

    def _read_on(self) -> Iterator[FileGrown]:
        # what is appended meanwhile is left to the next call: a busy writer must not keep this loop running
        goal: int | None = None
        path = self.path
        while self.path == path and (goal is None or self._offset < goal):
            grown, size = self._batch()
            yield from grown
            goal = min(goal or size, size)

    def _batch(self) -> tuple[list[FileGrown], int]:
        """Read the next batch; return what was found, and the file's size in bytes."""
        with open_regular(self.path) as fd:
            stat = os.fstat(fd)
            is_same = self._found and self._found[:2] == file_state(stat)[:2] and stat.st_size >= self._offset
            if not is_same or _bytes_before(fd, self._offset, len(self._fingerprint)) != self._fingerprint:
                self.restart()
            if not self._offset and (skimmed := self._skim(fd, stat)):
                return skimmed, stat.st_size
            data = os.pread(fd, min(self._limits.batch, stat.st_size - self._offset), self._offset)
        self._offset += len(data)
        self._fingerprint = (self._fingerprint + data)[-_FINGERPRINT_BYTES:]
        at_end = self._offset == stat.st_size
        grown = self._grown(stat, data, at_end=at_end)
        self.read_state = file_state(stat) if at_end and _is_settled(stat) else None
        return grown, stat.st_size

    def _skim(self, fd: int, stat: os.stat_result) -> list[FileGrown]:
        """Read the head of a large file, to continue at its tail; return what was found if that leaves a
        gap."""
        limits = self._limits
        if limits.skim_above is None or stat.st_size <= limits.skim_above:
            return []
        head = os.pread(fd, _HEAD_BYTES, 0)
        head = head[: head.rfind(b"\n") + 1]
        start = _tail_start(fd, stat.st_size, len(head))
        if not head or start <= len(head):
            return []
        self.skimmed = True
        grown = self._grown(stat, head)
        found = lines_in_force(fd, len(head), start, limits.marks, limits.max_line)
        self._same_turn = found.begins_turn is False and any(mark in head for mark in limits.marks.turn)
        self._lines = LineSplitter(limits.max_line, 0)
        grown += self._grown(stat, b"".join(line + b"\n" for line in found.lines))
        self._offset = start
        self._fingerprint = _bytes_before(fd, start, _FINGERPRINT_BYTES)
        return grown

    # ------------------------------------------------------------ compressed files

    def _unpack(self) -> Iterator[FileGrown | FileUnreadable]:
        """Read the whole file unless it is unchanged: compressed logs are written at once, so a changed one
        is another one."""
        with open_stream(self.path) as packed:
            stat = os.fstat(packed.fileno())
            if not self._offset or self._found != file_state(stat):
                self.restart()
                try:
                    for data in unpacked(packed, self._limits.batch):
                        yield from self._grown(stat, data)
                    yield from self._grown(stat, b"", at_end=True)
                    if not self._lines.complete:
                        yield from self._report_failure(ValueError(TORN))
                except ValueError as error:
                    yield from self._report_failure(error)
                # set at the end: whoever reads next begins anew if this is abandoned
                self._offset = stat.st_size
                self._fingerprint = _bytes_before(packed.fileno(), stat.st_size, _FINGERPRINT_BYTES)
            self.read_state = file_state(stat) if _is_settled(stat) else None

    # ------------------------------------------------------------ results

    def _grown(self, stat: os.stat_result, data: bytes, *, at_end: bool = False) -> list[FileGrown]:
        """Return the lines that `data` completes, or a change without lines.

        At the end of the file its last line may lack the newline.
        """
        groups = list(self._lines.add(data))
        if at_end:
            groups += self._lines.end()
        now = file_state(stat)
        if not groups and (now != self._found or self._pending_reset or self._failure):
            groups = [(0, self._lines.number, ())]
        grown = []
        for skipped, first, lines in groups:
            grown.append(
                FileGrown(
                    path=_path(self.path),
                    lines=lines,
                    first=first,
                    size=stat.st_size,
                    modified=possible_time(stat.st_mtime) or 0.0,
                    reset=self._pending_reset,
                    skimmed=self.skimmed,
                    same_turn=self._same_turn,
                    oversized=skipped,
                )
            )
            self._pending_reset = False
        if grown:
            self._found = now
            self._failure = None
            self.emitted = True
        return grown

    def _report_failure(self, error: Exception) -> Iterator[FileUnreadable]:
        reason = failure_reason(error)
        if self._failure != reason:
            self._failure = reason
            yield FileUnreadable(_path(self.path), reason)


def file_state(stat: os.stat_result) -> FileState:
    """Return what differs after a file has changed."""
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def failure_reason(error: Exception) -> str:
    """Return why something cannot be read, in one clean line."""
    return clean_line((error.strerror if isinstance(error, OSError) else None) or str(error))


def _is_settled(stat: os.stat_result) -> bool:
    """Return whether the next write is certain to change size or time."""
    return time.time_ns() - stat.st_mtime_ns > _MTIME_RESOLUTION_NS


def _bytes_before(fd: int, end: int, length: int) -> bytes:
    """Return the bytes before an offset, at most `length`."""
    return os.pread(fd, min(length, end), max(0, end - length))


def _tail_start(fd: int, size: int, floor: int) -> int:
    """Return the offset of the tail: the first line that begins within the last 48 KiB, if one of them is
    complete; else the line that begins before."""
    block = _bytes_before(fd, size, _TAIL_BYTES)
    if block.count(b"\n") > 1:
        return size - len(block) + block.index(b"\n") + 1
    return max(floor, find_last(fd, b"\n", floor, size - len(block)) + 1)


# ------------------------------------------------------------
# Find the lines in the gap of a skimmed file that still hold in its tail: the beginning of the newest turn,
# which may be longer than the tail, and what was changed since


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
    """Return the offset of the last occurrence between two offsets, or -1."""
    end, size = high, _FIRST_BLOCK_BYTES
    while end > low:
        start = max(low, end - size)
        block = os.pread(fd, min(end + len(mark) - 1, high) - start, start)
        if (at := block.rfind(mark)) >= 0:
            return start + at
        end, size = start, min(2 * size, _MAX_BLOCK_BYTES)
    return -1


def _line_at(fd: int, at: int, low: int, max_line: int) -> bytes | None:
    """Return the line that contains an offset, or None if it is not complete, or longer than `max_line`
    bytes."""
    start = max(low, find_last(fd, b"\n", max(low, at - max_line), at) + 1)
    line = b""
    while b"\n" not in line and len(line) <= max_line:
        block = os.pread(fd, _FIRST_BLOCK_BYTES, start + len(line))
        if not block:
            return None
        line += block
    line, end, _ = line.partition(b"\n")
    return line if end and len(line) <= max_line and start + len(line) >= at else None


class LineSplitter:
    """Splits data that arrives in pieces.

    Args:
        max_line: bytes of the longest line that is kept; longer ones are skipped, and counted.
        number: of the first line to come; 0 if it is not known, and then for all lines.
    """

    def __init__(self, max_line: int, number: int = 1) -> None:
        self.number = number
        self._max_line = max_line
        self._partial = b""
        self._is_skipping = False
        """Whether the line to come has been too long already."""
        self._newline_due = False
        """Whether the newline of a line that was returned already is still to come."""

    @property
    def complete(self) -> bool:
        """Whether the data so far ends with a whole line."""
        return not (self._partial or self._is_skipping)

    def add(self, data: bytes) -> Iterator[tuple[int, int, tuple[bytes, ...]]]:
        """Yield the lines that `data` completes, without their newlines.

        Yields:
            How many oversized lines were skipped, the number of the first line after these, and the lines
            from there on.
        """
        if self._newline_due and data:
            self._newline_due = False
            data = data.removeprefix(b"\n")
        skipped = 0
        if self._is_skipping:
            _, newline, data = data.partition(b"\n")
            if not newline:
                return
            self._is_skipping, skipped = False, 1
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > self._max_line:
            self._partial, self._is_skipping = b"", True
        kept: list[bytes] = []
        for line in lines:
            if len(line) <= self._max_line:
                kept.append(line)
            else:
                yield self._numbered(skipped, kept)
                skipped, kept = 1, []
        if lines or skipped:
            yield self._numbered(skipped, kept)

    def end(self) -> Iterator[tuple[int, int, tuple[bytes, ...]]]:
        """Yield the last line, at the end of a file, if it is a whole record that lacks the newline alone."""
        if not self._is_skipping and is_record(self._partial):
            line, self._partial = self._partial, b""
            self._newline_due = True
            yield self._numbered(0, [line])

    def _numbered(self, skipped: int, lines: list[bytes]) -> tuple[int, int, tuple[bytes, ...]]:
        first = self.number + skipped if self.number else 0
        self.number = first + len(lines) if self.number else 0
        return skipped, first, tuple(lines)
