"""Progress line of long operations, on stderr if it is a terminal; erased at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, Self, TextIO

_FIRST_LINE_AFTER_S: Final = 0.5
"""Most operations are done by then, and show no progress."""
_UPDATE_INTERVAL_S: Final = 0.1
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """Shows items and bytes done, the rate, and the estimated time left.

    Args:
        what: plural noun of the items, such as `files`; empty to count bytes only.
        count: total number of items; 0: unknown.
        size: total size in bytes; 0: unknown.
        out: stream to write to; nothing is written unless it is a terminal.
        now: monotonic clock, in seconds.
    """

    def __init__(
        self,
        what: str,
        count: int,
        size: int,
        out: TextIO = sys.stderr,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._count = count
        self._size = size
        self._out = out
        self._now = now
        self._done = 0
        self._read = 0
        self._began = now()
        self._updated_at: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._updated_at is not None:
            self._write(_CLEAR)

    def add(self, size: int) -> None:
        """Count one more item, of `size` bytes."""
        self._done += 1
        self.reach(self._read + size)

    def reach(self, size: int) -> None:
        """Set the number of bytes done so far."""
        self._read = size
        now = self._now()
        due = (
            self._began + _FIRST_LINE_AFTER_S
            if self._updated_at is None
            else self._updated_at + _UPDATE_INTERVAL_S
        )
        if now >= due and self._out.isatty():
            self._updated_at = now
            self._write(f"{_CLEAR}{self.line(now - self._began)}")

    def line(self, seconds: float) -> str:
        """Return the line after `seconds`: `412 of 2,000 files, 210 of 1,000 MB, 35 MB/s, 23 s left`."""
        rate = self._read / seconds if seconds else 0.0
        parts = [f"{self._done:,}{_of(self._count)} {self._what}"] if self._what else []
        parts += [f"{self._read / 1e6:,.0f}{_of(self._size / 1e6)} MB", f"{rate / 1e6:,.0f} MB/s"]
        if rate and self._size:
            parts.append(f"{max(0.0, self._size - self._read) / rate:.0f} s left")
        return ", ".join(parts)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _of(total: float) -> str:
    """Return the total in words; none if it is unknown."""
    return f" of {total:,.0f}" if total else ""
