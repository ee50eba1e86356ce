"""Work that takes long shows how far it is: on stderr, on a terminal alone, in one line that is gone in the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, Self, TextIO

_PATIENCE: Final = 0.5
"""Seconds for which nothing is said: most work is done by then."""
_SPACING: Final = 0.1
"""Seconds between two lines."""
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """How many of some things are done, at which rate, and how long the rest will take.

    Args:
        what: the things, `files`; empty where only bytes are counted.
        count: how many there are.
        size: how many bytes they have together.
        out: where to say it; nothing is said unless that is a terminal.
        now: what tells the time, in seconds.
    """

    def __init__(
        self,
        what: str,
        count: int,
        size: int,
        out: TextIO = sys.stderr,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._count, self._size = what, count, size
        self._out, self._now = out, now
        self._done = self._read = 0
        self._began = now()
        self._said: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._said is not None:
            self._write(_CLEAR)

    def add(self, size: int) -> None:
        """One more is done, of so many bytes."""
        self._done += 1
        self.reach(self._read + size)

    def reach(self, size: int) -> None:
        """So many bytes are done, all together."""
        self._read = size
        now = self._now()
        due = self._began + _PATIENCE if self._said is None else self._said + _SPACING
        if now >= due and self._out.isatty():
            self._said = now
            self._write(f"{_CLEAR}{self.line(now - self._began)}")

    def line(self, seconds: float) -> str:
        """`412 of 2,000 files, 210 of 1,000 MB, 35 MB/s, 23 s left`, after so many seconds."""
        rate = self._read / seconds if seconds else 0.0
        left = f", {max(0.0, self._size - self._read) / rate:.0f} s left" if rate else ""
        amount = f"{self._read / 1e6:,.0f} of {self._size / 1e6:,.0f} MB, {rate / 1e6:,.0f} MB/s"
        things = f"{self._done:,} of {self._count:,} {self._what}, " if self._what else ""
        return f"{things}{amount}{left}"

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
