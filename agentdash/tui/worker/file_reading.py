"""Reads files of the selected worker in threads, while they are shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class Reading(Generic[T]):
    """What was read of one file or directory, that of the selected worker.

    Args:
        open_file: returns a function that reads a path up to a time (unix seconds), and reads on where it
            stopped when it is called again.
        interval: seconds between two readings of one path.
    """

    def __init__(self, open_file: Callable[[str], Callable[[float], T]], interval: float) -> None:
        self._open = open_file
        self._interval = interval
        self._path: str | None = None
        self._read_path: Callable[[float], T] | None = None
        self._found: T | None = None
        self._asked: object = None
        self._read_at = 0.0
        self._is_reading = False

    def found(self, path: str | None) -> T | None:
        """Return what was read of a path; None before."""
        return self._found if path == self._path else None

    def job(self, path: str, until: float, asked: object = None) -> Callable[[], None] | None:
        """Return what reads a path, to be run in a thread; None if it was read just now, or is being read.

        Args:
            until: time up to which (unix seconds).
            asked: what the content depends on: if that is as it was, nothing is read. None: not known.
        """
        if self._is_reading:
            return None
        if path != self._path:
            self._path, self._read_path, self._found = path, None, None
        elif time.monotonic() < self._read_at + self._interval or (asked and asked == self._asked):
            return None
        self._asked = asked
        self._is_reading = True
        return partial(self._read, path, until)

    def _read(self, path: str, until: float) -> None:
        try:
            self._read_path = self._read_path or self._open(path)
            self._found = self._read_path(until)
        finally:
            self._read_at = time.monotonic()
            self._is_reading = False
