"""Read the lines of a file from any offset in bounded memory.

The file is opened for each read and not kept open: a replayed file may be moved, or still be written.
"""

from __future__ import annotations

import threading
from collections import deque
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from agentdash.files import TORN, check_unpacked, is_record, open_stream
from agentdash.model.limits import MAX_LINE_BYTES

_BLOCK_BYTES: Final = 1 << 17
"""Bytes per read: enough to amortize opening the file; a restored cursor reads at most so much for its next
line."""
_LONG_LINE_BLOCK_BYTES: Final = 1 << 20
"""Bytes per read within a line that is longer than a block."""
_COMPRESSED_READ_BYTES: Final = 1 << 10
"""Compressed bytes decoded at once: at zstd's maximum ratio these become 32 MiB."""
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


class ReadStoppedError(Exception):
    """Reading was stopped. What had been read before is kept: the next read continues there."""


def stop_reading_on(stop: threading.Event) -> None:
    """End all reading of this thread with `ReadStoppedError` as soon as an event is set."""
    _stop.set(stop)


def check_stop() -> None:
    """Check whether this thread may read on.

    Raises:
        ReadStoppedError: it may not.
    """
    if (stop := _stop.get()) is not None and stop.is_set():
        raise ReadStoppedError


class LineReader:
    """Returns complete lines, one per call.

    Args:
        path: a plain or compressed (`.zst`) file.
        offset: start of a line, in bytes of the uncompressed content.
        newline_due: whether the newline of the line before is at the offset, or still to come.
        ends_with_record: whether a whole JSON object at the end of the file is a line without its newline.
    """

    def __init__(
        self, path: Path, offset: int = 0, *, newline_due: bool = False, ends_with_record: bool = False
    ) -> None:
        self.offset = offset
        """Start of the next line, in uncompressed bytes."""
        self.newline_due = newline_due
        """Whether the newline of the line returned last is still to come."""
        self._ends_with_record = ends_with_record
        self._blocks = (
            _CompressedBlocks(path, offset) if path.suffix == ".zst" else _PlainBlocks(path, offset)
        )
        self._ready: deque[bytes] = deque()
        self._partial = bytearray()
        self._dropped = 0
        """Bytes dropped from the partial line: at most `MAX_LINE_BYTES` + 1 are kept."""

    def next(self) -> bytes | None:
        """Return the next line without its newline; None if no complete line is available (yet).

        Raises:
            OSError: the file cannot be read or decompressed.
            ReadStoppedError: reading was stopped, between two blocks.
        """
        while not self._ready:
            check_stop()
            if not (block := self._blocks.read(_LONG_LINE_BLOCK_BYTES if self._partial else _BLOCK_BYTES)):
                return self._rest()
            if self.newline_due:
                self.newline_due = False
                self.offset += block.startswith(b"\n")
                block = block.removeprefix(b"\n")
            *whole, rest = block.split(b"\n")
            if not whole:
                self._append(rest)
                continue
            self._append(whole[0])
            self.offset += self._dropped
            self._dropped = 0
            whole[0] = bytes(self._partial)
            self._partial = bytearray(rest)
            self._ready.extend(whole)
        line = self._ready.popleft()
        self.offset += len(line) + 1
        return line

    def _rest(self) -> bytes | None:
        """Return the last line where it lacks the newline alone."""
        if self._ends_with_record and not self._dropped and is_record(self._partial):
            line = bytes(self._partial)
            self._partial.clear()
            self.newline_due = True
            self.offset += len(line)
            return line
        # a compressed file is never appended to: its last line stays incomplete
        if self._partial and isinstance(self._blocks, _CompressedBlocks):
            raise OSError(TORN)
        return None

    def _append(self, data: bytes) -> None:
        room = MAX_LINE_BYTES + 1 - len(self._partial)
        self._partial += data[:room]
        self._dropped += max(0, len(data) - room)


class _PlainBlocks:
    def __init__(self, path: Path, offset: int) -> None:
        self._path = path
        self._offset = offset

    def read(self, size: int) -> bytes:
        with open_stream(self._path) as file:
            file.seek(self._offset)
            block = file.read(size)
        self._offset += len(block)
        return block


class _CompressedBlocks:
    """The content of a compressed file. An offset is reached by decompressing everything before it."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path = path
        self._skip = offset
        self._offset = 0
        self._plain_bytes = 0
        """Decompressed so far."""
        self._frame: Any = None

    def read(self, size: int) -> bytes:
        from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415 - few files are compressed

        plain = bytearray()
        with open_stream(self._path) as file:
            file.seek(self._offset)
            while len(plain) < size and (data := file.read(_COMPRESSED_READ_BYTES)):
                self._offset += len(data)
                while data:
                    if self._frame is None or self._frame.eof:
                        self._frame = ZstdDecompressor().decompressobj()
                    try:
                        piece = self._frame.decompress(data)
                        self._plain_bytes += len(piece)
                        check_unpacked(self._offset, self._plain_bytes)
                    except (ZstdError, ValueError) as error:
                        raise OSError(f"{error}") from error
                    plain += piece
                    data = self._frame.unused_data
                if self._skip:
                    self._skip -= len(done := plain[: self._skip])
                    del plain[: len(done)]
        if not plain and self._frame is not None and not self._frame.eof:
            raise OSError("compressed data that is not complete")
        return bytes(plain)
