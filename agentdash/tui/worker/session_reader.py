"""Reads the conversation of the selected worker from its session file, in a thread, while a tab shows it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from agentdash.model.conversation import Conversation
from agentdash.model.worker import Worker
from agentdash.replay.conversation import ConversationFile
from agentdash.replay.worker_thread import WorkerThread

_MIN_INTERVAL_S: Final = 1.0
"""Between two reads of a session that goes on: more often than that nobody can read."""


class SessionReader:
    """Holds the conversation of one worker, the selected one."""

    def __init__(self) -> None:
        self._thread: WorkerThread | None = None
        self._file: ConversationFile | None = None
        self._conversation: Conversation | None = None
        self._read: tuple[Worker, float] | None = None
        """The worker as it was when its file was read last, and the time up to which."""
        self._read_at = 0.0
        self._is_reading = False

    def conversation(self, worker: Worker | None) -> Conversation | None:
        """Return the conversation of a worker, as far as it has been read; None before."""
        if worker is None or self._file is None or worker.file != str(self._file.path):
            return None
        return self._conversation

    def wait_s(self, worker: Worker, until: float) -> float | None:
        """Return the seconds after which a worker's file is to be read; None where nothing has changed since,
        or it is being read."""
        if worker.file is None or worker.host or self._is_reading:
            return None
        if self._read is not None and self._read[0] is worker and self._read[1] == until:
            return None
        if self.conversation(worker) is None:
            return 0.0
        return max(0.0, self._read_at + _MIN_INTERVAL_S - time.monotonic())

    async def read(self, worker: Worker, until: float) -> None:
        """Read a worker's file up to a time (unix seconds)."""
        if worker.file is None:
            return
        if self._file is None or str(self._file.path) != worker.file:
            self._file = ConversationFile(Path(worker.file), worker.id)
            self._conversation = None
        if self._thread is None:
            self._thread = WorkerThread("session reader")
        file = self._file
        self._is_reading = True
        try:
            found = await self._thread.run(lambda: file.read(until))
        finally:
            self._is_reading = False
        if file is self._file:
            self._conversation = found
            self._read = (worker, until)
            self._read_at = time.monotonic()

    def end(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.end()
