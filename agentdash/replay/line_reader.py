"""The lines of a file from any offset on, in bounded memory. No file is kept open: what is replayed may be moved, or still be written."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, Final

from agentdash.agents.codex.rollout.kinds import LINE_LIMIT

_BLOCK: Final = 1 << 17
_MORSEL: Final = 1 << 10
"""Bytes unpacked at once: the most hostile of these become 32 MiB."""


class Lines:
    """Whole lines, one after the other.

    Args:
        path: plain, or compressed (`.zst`).
        offset: where a line begins, in bytes of what the file holds unpacked.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.offset = offset
        """Where the next line begins."""
        self._blocks = _Packed(path, offset) if path.suffix == ".zst" else _Plain(path, offset)
        self._ready: deque[bytes] = deque()
        self._partial = b""
        self._cut = 0
        """Bytes left out of the partial line: more than `LINE_LIMIT` + 1 are not kept."""

    def next(self) -> bytes | None:
        """The next line without its newline; None where there is no whole one (yet).

        Raises:
            OSError: the file cannot be read, or uncompressed.
        """
        while not self._ready:
            if not (block := self._blocks.read()):
                if self._partial and isinstance(self._blocks, _Packed):  # nobody will write the rest
                    raise OSError("ends in the middle of a line")
                return None
            *whole, rest = block.split(b"\n")
            if not whole:
                self._hold(rest)
                continue
            self._hold(whole[0])
            self.offset, self._cut = self.offset + self._cut, 0
            whole[0], self._partial = self._partial, rest
            self._ready.extend(whole)
        line = self._ready.popleft()
        self.offset += len(line) + 1
        return line

    def _hold(self, more: bytes) -> None:
        room = LINE_LIMIT + 1 - len(self._partial)
        self._partial += more[:room]
        self._cut += max(0, len(more) - room)


class _Plain:
    def __init__(self, path: Path, offset: int) -> None:
        self._path, self._offset = path, offset

    def read(self) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            block = file.read(_BLOCK)
        self._offset += len(block)
        return block


class _Packed:
    """What a compressed file holds. Offsets are reached by unpacking what is in front of them."""

    def __init__(self, path: Path, offset: int) -> None:
        self._path, self._skip, self._offset = path, offset, 0
        self._frame: Any = None

    def read(self) -> bytes:
        from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415 - few files are compressed, and starting is to be fast

        plain = bytearray()
        with self._path.open("rb") as file:
            file.seek(self._offset)
            while len(plain) < _BLOCK and (data := file.read(_MORSEL)):
                self._offset += len(data)
                while data:
                    if self._frame is None or self._frame.eof:
                        self._frame = ZstdDecompressor().decompressobj()
                    try:
                        plain += self._frame.decompress(data)
                    except ZstdError as error:
                        raise OSError(f"{error}") from error
                    data = self._frame.unused_data
                if self._skip:
                    self._skip -= len(done := plain[: self._skip])
                    del plain[: len(done)]
        if not plain and self._frame is not None and not self._frame.eof:
            raise OSError("compressed data that is not complete")
        return bytes(plain)
