"""Reads what a panel shows from the session file of the selected worker, in a thread, while it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from agentdash.model.worker import Worker
from agentdash.replay.worker_thread import WorkerThread

_T = TypeVar("_T")
READ_KINDS: Final = ("codex-thread", "claude-session")
"""Kinds of workers whose session files are read in full."""


class FileReading(Generic[_T]):
    """What was read of one worker's file, the selected one's.

    Args:
        open_file: returns a function that reads a file up to a time (unix seconds), and reads on where it
            stopped when it is called again. Both are called in the thread.
        interval_s: least seconds between two reads of a session that goes on.
    """

    def __init__(self, open_file: Callable[[Path], Callable[[float], _T]], interval_s: float) -> None:
        self._open = open_file
        self._interval_s = interval_s
        self._thread: WorkerThread | None = None
        self._file: str | None = None
        self._read_file: Callable[[float], _T] | None = None
        self._found: _T | None = None
        self._read: tuple[Worker, float] | None = None
        """The worker as it was when its file was read last, and the time up to which."""
        self._read_at = 0.0
        self._is_reading = False

    def found(self, worker: Worker | None) -> _T | None:
        """Return what was read of a worker's file; None before."""
        return self._found if worker is not None and worker.file == self._file else None

    def wait_s(self, worker: Worker, until: float) -> float | None:
        """Return the seconds after which a worker's file is to be read; None where nothing has changed since,
        or it is being read."""
        if worker.file is None or worker.host or worker.kind not in READ_KINDS or self._is_reading:
            return None
        if self._read is not None and self._read[0] is worker and self._read[1] == until:
            return None
        if self.found(worker) is None:
            return 0.0
        return max(0.0, self._read_at + self._interval_s - time.monotonic())

    async def read(self, worker: Worker, until: float) -> None:
        """Read a worker's file up to a time (unix seconds)."""
        if worker.file is None:
            return
        if worker.file != self._file:
            self._file = worker.file
            self._found = None
            self._read_file = None
        if self._thread is None:
            self._thread = WorkerThread("session reader")
        file, known = self._file, self._read_file

        def job() -> tuple[Callable[[float], _T], _T]:
            read_file = known or self._open(Path(file))
            return read_file, read_file(until)

        self._is_reading = True
        try:
            read_file, found = await self._thread.run(job)
        finally:
            self._is_reading = False
        if file == self._file:
            self._read_file = read_file
            self._found = found
            self._read = (worker, until)
            self._read_at = time.monotonic()

    def end(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.end()
