"""Controls of a player that streams, carried out between two steps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from agentdash.replay.worker_thread import WorkerThread


class _Request(NamedTuple):
    """A control to carry out."""

    control: Callable[[], object]
    is_seek: bool
    done: asyncio.Future[None]


class ControlQueue:
    """Controls that wait for the end of a step. To be used on one event loop."""

    def __init__(self) -> None:
        self._requests: deque[_Request] = deque()
        self._requested = asyncio.Event()

    def add(self, control: Callable[[], object], done: asyncio.Future[None], *, is_seek: bool) -> None:
        """Add a control; of seeks only the newest one is carried out, the futures of earlier ones are
        cancelled."""
        if is_seek:
            for earlier in [request for request in self._requests if request.is_seek]:
                self._requests.remove(earlier)
                earlier.done.cancel()
        self._requests.append(_Request(control, is_seek, done))
        self._requested.set()

    async def carry_out(self, thread: WorkerThread) -> None:
        """Carry out in a thread what waits."""
        self._requested.clear()
        while self._requests:
            request = self._requests.popleft()
            try:
                await thread.run(request.control)
            finally:
                if not request.done.done():
                    request.done.set_result(None)

    async def wait(self) -> None:
        """Wait for a control."""
        await self._requested.wait()
