"""Run functions one after another in a thread that the end of the program does not wait for.

The threads of `asyncio.to_thread` are joined at the end: one that reads a dead disk would block it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")


class WorkerThread:
    """A thread that runs functions for an event loop.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, function: Callable[[], _T]) -> _T:
        """Run a function in the thread and return its result, or raise its exception.

        Where the caller is cancelled, the function goes on, and its result is dropped.
        """
        loop = asyncio.get_running_loop()
        result: asyncio.Future[_T] = loop.create_future()

        def job() -> None:
            set_outcome: Callable[[Any], None]
            try:
                outcome: Any = function()
                set_outcome = result.set_result
            except BaseException as error:
                outcome = error
                set_outcome = result.set_exception

            def finish() -> None:
                if not result.done():
                    set_outcome(outcome)

            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish)

        self._jobs.put(job)
        return await result

    def end(self) -> None:
        """End the thread when it has run what it was given."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
