"""The message about a worker that any screen may post; the app handles it."""

from __future__ import annotations

from textual.message import Message


class WorkerPointed(Message):
    """The cursor of a screen is on another worker: keys that act on a worker act on this one."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        super().__init__()
