"""Reads the conversation of the selected worker, and the diff of its directory, in threads, while shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from agentdash.model.changes import DirectoryDiff
from agentdash.model.conversation import Conversation
from agentdash.model.worker import Worker

_INTERVAL_S: Final = 1.0
"""Between two reads of a conversation that goes on: as fast as it can be followed."""
_Read = Callable[[float], Conversation]


def _open(path: Path) -> _Read:
    """Return a function that reads the conversation of a session file."""
    from agentdash.replay.conversation import ConversationFile  # noqa: PLC0415 - the first picture comes first

    return ConversationFile(path).read


class FileReading:
    """What was read of one worker's file, the selected one's.

    Args:
        open_file: returns a function that reads a file up to a time (unix seconds), and reads on where it
            stopped when it is called again. None: the usual one.
    """

    def __init__(self, open_file: Callable[[Path], _Read] | None = None) -> None:
        self._open = open_file or _open
        self._file: str | None = None
        self._read_file: _Read | None = None
        self._found: Conversation | None = None
        self._asked: tuple[Worker, float] | None = None
        """The worker as it was when its file was read last, and the time up to which."""
        self._read_at = 0.0
        self._is_reading = False

    def found(self, worker: Worker | None) -> Conversation | None:
        """Return what was read of a worker's file; None before."""
        return self._found if worker is not None and worker.file == self._file else None

    def job(self, worker: Worker, until: float) -> Callable[[], None] | None:
        """Return what reads a file up to a time (unix seconds), to be run in a thread; None if nothing
        has changed since, or it was read just now, or one is being read."""
        if worker.file is None or worker.host or not worker.is_thread or self._is_reading:
            return None
        if worker.file != self._file:
            self._file, self._read_file, self._found = worker.file, None, None
        elif time.monotonic() < self._read_at + _INTERVAL_S or (
            self._asked is not None and self._asked[0] is worker and self._asked[1] == until
        ):
            return None
        self._asked = worker, until
        self._is_reading = True
        return partial(self._read, Path(worker.file), until)

    def _read(self, path: Path, until: float) -> None:
        try:
            self._read_file = self._read_file or self._open(path)
            self._found = self._read_file(until)
        finally:
            self._read_at = time.monotonic()
            self._is_reading = False


_DIFF_INTERVAL_S: Final = 5.0
"""Between two readings of a diff: git compares the whole working tree."""
_ReadDiff = Callable[[str], DirectoryDiff | None]


class DiffReading:
    """What was read of the working tree of one worker, the selected one.

    Args:
        read: reads the one of a directory; None: none is read.
    """

    def __init__(self, read: _ReadDiff | None) -> None:
        self._read_diff = read
        self._directory: str | None = None
        self._found: DirectoryDiff | None = None
        self._read_at = 0.0
        self._is_reading = False

    def found(self, worker: Worker | None) -> DirectoryDiff | None:
        """Return what was read of a worker's directory; None before."""
        is_it = worker is not None and worker.git is not None and worker.cwd == self._directory
        return self._found if is_it else None

    def job(self, worker: Worker) -> Callable[[], None] | None:
        """Return what reads it, to be run in a thread; None if it was read just now, or there is none."""
        if self._read_diff is None or worker.git is None or worker.host or not worker.cwd or self._is_reading:
            return None
        if worker.cwd == self._directory and time.monotonic() < self._read_at + _DIFF_INTERVAL_S:
            return None
        self._is_reading = True
        return partial(self._read, self._read_diff, worker.cwd)

    def _read(self, read: _ReadDiff, directory: str) -> None:
        try:
            found = read(directory)
            self._directory, self._found = directory, found
        finally:
            self._read_at = time.monotonic()
            self._is_reading = False
