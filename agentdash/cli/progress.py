"""Progress line of long operations, on stderr if it is a terminal; erased at the end."""

from __future__ import annotations

import sys
import time
from typing import Final, Self

_FIRST_LINE_AFTER_S: Final = 0.5
"""Most operations are done by then, and show no progress."""
_UPDATE_INTERVAL_S: Final = 0.1
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """Shows files and bytes done, and the estimated time left: `412 files, 210 of 1,000 MB, 23 s left`.

    Args:
        size: total size in bytes; 0: unknown.
    """

    def __init__(self, size: int = 0) -> None:
        self._size = size
        self._files = 0
        self._read = 0
        self._began = time.monotonic()
        self._next = self._began + _FIRST_LINE_AFTER_S
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def add(self, size: int) -> None:
        """Count one more file, of `size` bytes."""
        self._files += 1
        self.reach(self._read + size)

    def reach(self, size: int) -> None:
        """Set the number of bytes done so far."""
        self._read = size
        now = time.monotonic()
        if now >= self._next and sys.stderr.isatty():
            self._next = now + _UPDATE_INTERVAL_S
            self._is_shown = True
            sys.stderr.write(f"{_CLEAR}{self._line(now - self._began)}")
            sys.stderr.flush()

    def _line(self, seconds: float) -> str:
        files = f"{self._files:,} files, " if self._files else ""
        if not (self._size and self._read):
            return f"{files}{self._read / 1e6:,.0f} MB"
        left = max(0, self._size - self._read) * seconds / self._read
        return f"{files}{self._read / 1e6:,.0f} of {self._size / 1e6:,.0f} MB, {left:.0f} s left"
