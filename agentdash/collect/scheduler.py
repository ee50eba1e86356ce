"""How often the live sources look: often while something happens or is about to, seldom while all is quiet."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentdash.agents.codex.home import thread_id
from agentdash.model.clock import Clock
from agentdash.model.fleet import Fleet

_BUSY, QUIET = 0.5, 2.0
"""Seconds between two looks at panes, processes and locks while something happens, and otherwise."""
_START, _LOOKS = 0.15, 6
"""Seconds between two looks while a command begins, and how many: its sandbox has to be built, and who has just forked is told later."""
_CALM: Final = 10.0
"""Seconds without news after which it is quiet."""


class PollScheduler:
    """How often it is worth looking: often while something happens, or is about to."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._stirred = clock, clock.now()
        self._begun = asyncio.Event()
        self._hurried = 0.0
        self._looks = 0

    def mark_activity(self) -> None:
        """Something has happened."""
        self._stirred = self._clock.now()

    def is_idle(self) -> bool:
        """Whether nothing has happened for a while."""
        return self._clock.now() - self._stirred >= _CALM

    def pause(self, fleet: Fleet) -> float:
        """Seconds until the next look."""
        return QUIET if self.is_idle() and not _at_work(fleet) else _BUSY

    def burst(self) -> None:
        """Something has begun to run: its processes are to be seen while they live. Many that begin at once are one reason to hurry."""
        if self._clock.now() - self._hurried >= QUIET:
            self._hurried = self._clock.now()
            self._begun.set()

    async def rest(self, fleet: Fleet) -> None:
        """Returns when it is worth looking at processes again: after the pause, or a few times in a row while a command begins."""
        if not self._looks and await _happens(self._begun, self.pause(fleet)):
            self._begun.clear()
            self._looks = _LOOKS
        if self._looks:
            self._looks -= 1
            await asyncio.sleep(_START)


async def _happens(event: asyncio.Event, within: float) -> bool:
    """Whether an event is set before so many seconds are over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(
            within
        ):  # not `wait_for`: before Python 3.12 that one may swallow a cancellation
            await event.wait()
    return event.is_set()


def _at_work(fleet: Fleet) -> bool:
    """Whether some process has a thread loaded whose turn is open."""
    loaded = set(fleet.locks.holders) if fleet.locks else set()
    loaded |= {
        thread for p in fleet.processes.values() for path in p.rollouts if (thread := thread_id(Path(path)))
    }
    turns = (fleet.threads[thread].turn for thread in loaded if thread in fleet.threads)
    return any(turn is not None and turn.ended_at is None for turn in turns)
