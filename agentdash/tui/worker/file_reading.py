"""Reads the conversation of the selected worker from its session file, in a thread, while it is shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentdash.model.conversation import Conversation
from agentdash.model.worker import Worker
from agentdash.replay.worker_thread import WorkerThread

READ_KINDS: Final = ("codex-thread", "claude-session")
"""Kinds of workers whose session files are read in full."""
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
            stopped when it is called again. Both are called in the thread. None: the usual one.
    """

    def __init__(self, open_file: Callable[[Path], _Read] | None = None) -> None:
        self._open = open_file or _open
        self._thread: WorkerThread | None = None
        self._file: str | None = None
        self._read_file: _Read | None = None
        self._found: Conversation | None = None
        self._read: tuple[Worker, float] | None = None
        """The worker as it was when its file was read last, and the time up to which."""
        self._read_at = 0.0
        self._is_reading = False

    def found(self, worker: Worker | None) -> Conversation | None:
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
        return max(0.0, self._read_at + _INTERVAL_S - time.monotonic())

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

        def job() -> tuple[_Read, Conversation]:
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
