"""One log file: reads what is new in it, however it came to be there."""

# Paths are strings here, and files plain descriptors: this runs for thousands of files, several times a minute.
# ruff: noqa: PTH123

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from agentdash.collect.tail.line_splitter import LineSplitter
from agentdash.model.sanitize import clean_line

_HEAD: Final = 48 << 10
_END: Final = 48 << 10
"""Bytes that are read of a skimmed file's beginning and end, or more where these hold no whole line."""
_BLOCK: Final = 1 << 20
_SEAM: Final = 256
"""Bytes before the offset that are compared before reading on: a file may have been cut, and have grown again since."""
_MORSEL: Final = 1 << 10
"""Bytes unpacked at once: the most hostile of these become 32 MiB."""
_RACY: Final = 50_000_000
"""Nanoseconds for which a time stamp is not trusted to change with the next write."""


class FileGrown(msgspec.Struct, frozen=True):
    """What is new in a file. Also sent without lines: for a new file, and when only size or time changed."""

    path: Path
    lines: tuple[bytes, ...]
    """Complete lines without their newlines; consecutive."""
    first: int
    """Number of the first of them, from 1; 0: not known, for a gap was left before."""
    size: int
    """Bytes on disk."""
    modified: float
    """mtime, unix seconds."""
    reset: bool = False
    """Whether everything read from this file before is void."""
    skimmed: bool = False
    """Whether a gap was left in this file; `Tail.fill` reads it whole."""
    oversized: int = 0
    """Lines too long to be kept, skipped just before the first of these."""


class FileUnreadable(msgspec.Struct, frozen=True):
    """A file or directory cannot be read; said once for each reason, and tried again at every sweep. A `Grown` takes it back."""

    path: Path
    why: str
    """One clean line."""


class Limits(msgspec.Struct, frozen=True):
    """How much is read; all in bytes."""

    skim_above: int | None
    """Of larger files only head and tail are read."""
    max_line: int
    """Length of the longest line that is kept."""
    batch: int
    """What is read at once."""


State = tuple[int, int, int, int]
"""Device, inode, size and time of change."""


class LogFile:
    """A file that grows, as far as it has been read.

    Each batch opens the file anew, makes sure that it is still the one that was read before, reads on and closes it; what it finds is
    told in the order of the file, to whoever asks next. So reading can be left anywhere and taken up by anybody.
    """

    def __init__(self, path: str, limits: Limits) -> None:
        self.path = path
        """Where it is; who finds that it has moved says so here."""
        self.skimmed = False
        """Whether a gap was left in it."""
        self._limits = limits
        self._id: tuple[int, int] | None = None
        self._seen: State | None = None
        self._found: tuple[int, int] | None = None
        """Size and time as found last."""
        self._untold: deque[FileGrown] = deque()
        """What was found and nobody has asked for yet."""
        self.told = False
        """Whether anybody has heard of it."""
        self._trouble: str | None = None
        self._whole = False
        self._void = False
        """Whether what was told does not hold any more, and nobody knows yet."""
        self._era = self._offset = 0
        self._seam = b""
        self._lines = LineSplitter(limits.max_line)

    @property
    def id(self) -> tuple[int, int] | None:
        """Device and inode of what was read."""
        return self._id

    @property
    def seen(self) -> State | None:
        """The state in which there is nothing to read; None: read on in any case."""
        return None if self._untold else self._seen

    @property
    def modified(self) -> int:
        """Its time of change as found last, in nanoseconds."""
        return self._found[1] if self._found else 0

    def postpone(self, stat: os.stat_result) -> None:
        """Leaves it unread until it changes."""
        self._id, self._seen = identity(stat), state(stat)

    def restart(self, *, whole: bool = False) -> None:
        """Forgets what was read. With `whole`, no gap is left any more."""
        self._whole = self._whole or whole
        self._restart()

    def same(self, path: str, stat: os.stat_result) -> bool:
        """Whether a file found elsewhere, with this one's inode, is this one: inodes of deleted files are used again at once."""
        if not self._offset:
            return (self._found or (self._seen or ())[2:]) == (stat.st_size, stat.st_mtime_ns)
        try:
            with _opened(path) as fd:
                return (
                    stat.st_size >= self._offset and _before(fd, self._offset, len(self._seam)) == self._seam
                )
        except OSError:
            return False

    def emit_grown(self) -> Iterator[FileGrown]:
        """What was found and is not told yet."""
        while self._untold:
            self.told = True
            yield self._untold.popleft()

    def read(self) -> Iterator[FileGrown | FileUnreadable]:
        """Everything that is new.

        Raises:
            FileNotFoundError: there is no such file any more.
        """
        yield from self.emit_grown()
        try:
            yield from self._unpack() if self.path.endswith(".zst") else self._read_on()
        except FileNotFoundError:
            raise
        except OSError as error:
            yield from self._troubled(error)

    # ------------------------------------------------------------ plain files

    def _read_on(self) -> Iterator[FileGrown]:
        goal, going = 0, True
        while going:
            going, size = self._batch()
            yield from self.emit_grown()
            goal = (
                goal or size
            )  # what is appended while we read is for the next time: a busy writer must not hold us
            going = going and self._offset < goal

    def _batch(self) -> tuple[bool, int]:
        """Reads the next batch; returns whether there was anything to read, and the file's size."""
        with _opened(self.path) as fd:
            stat = os.fstat(fd)
            cut = stat.st_size < self._offset or _before(fd, self._offset, len(self._seam)) != self._seam
            if cut or self._id != identity(stat):
                self._restart()
                self._id = identity(stat)
            if not self._offset and self._skim(fd, stat):
                return True, stat.st_size
            data = os.pread(fd, min(self._limits.batch, stat.st_size - self._offset), self._offset)
        self._offset += len(data)
        self._seam = (self._seam + data)[-_SEAM:]
        self._add(stat, data)
        self._seen = state(stat) if self._offset == stat.st_size and _settled(stat) else None
        return bool(data), stat.st_size

    def _skim(self, fd: int, stat: os.stat_result) -> bool:
        """Reads the head of a large file and goes on at its tail, unless that is not wanted, or would leave no gap."""
        if (
            self._limits.skim_above is None
            or self._whole
            or stat.st_size <= max(self._limits.skim_above, _HEAD + _END)
        ):
            return False
        head = os.pread(fd, _HEAD, 0)
        while b"\n" not in head and len(head) < min(self._limits.max_line, stat.st_size):
            head += os.pread(fd, _BLOCK, len(head))
        head = head[: max(head.rfind(b"\n", 0, _HEAD), head.find(b"\n")) + 1]
        start = self._tail_start(fd, stat.st_size, len(head))
        if not head or start <= len(head):
            return False
        self.skimmed = True
        self._add(stat, head)
        self._offset, self._seam = start, _before(fd, start, _SEAM)
        self._lines = LineSplitter(self._limits.max_line, 0, inside=not self._seam.endswith(b"\n"))
        return True

    def _tail_start(self, fd: int, size: int, floor: int) -> int:
        """Where the last lines begin: at the first of those that begin within the last 48 KiB, if one of them is complete; else at the
        last complete line, unless that is too long to be kept."""
        block = _before(fd, size, _END)
        first = block.find(b"\n")
        if block.count(b"\n") > 1:
            return size - _END + first + 1
        start, lowest = size - _END, max(floor, size - _END - self._limits.max_line)
        while start > lowest:
            low = max(lowest, start - _BLOCK)
            if (newline := _before(fd, start, start - low).rfind(b"\n")) >= 0:
                return low + newline + 1
            start = low
        return floor if lowest == floor else size if first < 0 else size - _END + first + 1

    # ------------------------------------------------------------ compressed files

    def _unpack(self) -> Iterator[FileGrown | FileUnreadable]:
        """Compressed logs are written once and whole, so one that has changed is another one."""
        with open(self.path, "rb") as packed:
            stat = os.fstat(packed.fileno())
            unpacked = (
                self._offset
                and self._id == identity(stat)
                and self._found == (stat.st_size, stat.st_mtime_ns)
            )
            if not unpacked:
                self._restart()
                self._id, self._offset, self._seam = (
                    identity(stat),
                    stat.st_size,
                    _before(packed.fileno(), stat.st_size, _SEAM),
                )
                era, whole = self._era, False
                try:
                    for data in _plain(packed, self._limits.batch):
                        if self._era != era:  # somebody else has begun anew meanwhile
                            return
                        self._add(stat, data)
                        yield from self.emit_grown()
                    if not self._lines.complete:
                        yield from self._troubled(ValueError("ends in the middle of a line"))
                    whole = True
                except ValueError as error:
                    yield from self._troubled(error)
                    whole = True
                finally:
                    if not whole and self._era == era:  # left before the end: the next one begins again
                        self._restart()
            self._seen = state(stat) if _settled(stat) else None

    # ------------------------------------------------------------ telling

    def _restart(self) -> None:
        self._void = self.told
        self._untold.clear()
        self._era += 1
        self._offset = 0
        self._seam = b""
        self._lines = LineSplitter(self._limits.max_line)
        self.skimmed = False
        self._seen = None

    def _add(self, stat: os.stat_result, data: bytes) -> None:
        """Puts down what `data` adds, and what else there is to tell."""
        groups = list(self._lines.add(data))
        now = (stat.st_size, stat.st_mtime_ns)
        if not groups and (now != self._found or self._void or self._trouble):
            groups = [(0, self._lines.number, ())]
        for skipped, first, lines in groups:
            grown = FileGrown(
                Path(self.path), lines, first, stat.st_size, stat.st_mtime, self._void, self.skimmed, skipped
            )
            self._untold.append(grown)
            self._found, self._void, self._trouble = now, False, None

    def _troubled(self, error: Exception) -> Iterator[FileUnreadable]:
        if self._trouble != (why := reason(error)):
            self._trouble = why
            yield FileUnreadable(Path(self.path), why)


def _plain(packed: BinaryIO, size: int) -> Iterator[bytes]:
    """What a compressed file holds, in pieces of about `size` bytes, the last of which may be empty.

    Raises:
        ValueError: it is damaged, or ends too early.
    """
    from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415 - few have compressed logs

    frame, begun = ZstdDecompressor().decompressobj(), False
    plain = bytearray()
    try:
        while data := packed.read(_MORSEL):
            while data:
                plain += frame.decompress(data)
                data, begun = frame.unused_data, not frame.eof
                if frame.eof:
                    frame = ZstdDecompressor().decompressobj()
            if len(plain) >= size:
                yield bytes(plain)
                plain.clear()
    except ZstdError as error:
        yield bytes(plain)
        raise ValueError(str(error)) from error
    yield bytes(plain)
    if begun:
        raise ValueError("compressed data that is not complete")


def identity(stat: os.stat_result) -> tuple[int, int]:
    """What stays the same when a file is renamed."""
    return stat.st_dev, stat.st_ino


def state(stat: os.stat_result) -> State:
    """What changes when a file does."""
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def reason(error: Exception) -> str:
    """Why something cannot be read, in one clean line."""
    return clean_line((error.strerror if isinstance(error, OSError) else None) or str(error))


def _settled(stat: os.stat_result) -> bool:
    """Whether the next write is sure to change size or time."""
    return time.time_ns() - stat.st_mtime_ns > _RACY


@contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(
        path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    )  # what has become a pipe meanwhile must not hold us
    try:
        yield fd
    finally:
        os.close(fd)


def _before(fd: int, end: int, length: int) -> bytes:
    """The bytes before `end`, as far as there are so many."""
    return os.pread(fd, min(length, end), max(0, end - length))
