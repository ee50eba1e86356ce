"""The poll intervals of the live sources: short while something happens, long while all is idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Final

from agentdash.agents.codex.home import thread_id
from agentdash.model.events import Event, PaneDrawn, PaneGone, ProcessGone
from agentdash.model.fleet import Fleet
from agentdash.model.source import Clock, Emit, FleetChannel, Source, until_beat

BUSY_INTERVAL_S: Final = 0.5
"""Between two polls of panes, processes and locks while something happens, where these are few."""
QUIET_INTERVAL_S: Final = 2.0
"""Between two polls while nothing happens: keeps the idle cost below 0.5 % of a core."""
_INTERVAL_PER_PROCESS_S: Final = 1 / 60
"""At least, for each process that is followed: to read and to link one takes 0.1 ms of CPU."""
_BURST_INTERVAL_S: Final = 0.15
"""Between two polls of processes while a command starts: its sandbox has to be built first."""
_BURST_POLLS: Final = 6
"""Polls of one burst, about a second: a process that has just forked is reported one poll later."""
_IDLE_AFTER_S: Final = 10.0
"""Time without activity after which the long interval applies."""


def busy_interval(number: int, seconds_each: float) -> float:
    """Return the seconds between two polls while something happens: longer where each reads much."""
    return max(BUSY_INTERVAL_S, min(number * seconds_each, QUIET_INTERVAL_S))


class PollScheduler:
    """Sets the pauses between polls by recent activity.

    Args:
        clock: measures the time since the last activity.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._active_at = clock.now()
        self._burst_requested = asyncio.Event()
        self._burst_at = 0.0
        self._burst_polls_left = 0

    def mark_activity(self) -> None:
        """Restart the time until the long interval applies."""
        self._active_at = self._clock.now()

    def is_idle(self) -> bool:
        """Return whether there was no activity for a while."""
        return self._clock.now() - self._active_at >= _IDLE_AFTER_S

    def is_quiet(self, fleet: Fleet) -> bool:
        """Return whether nothing has happened for a while, and nothing is about to: no turn is open."""
        return self.is_idle() and not _has_open_turn(fleet)

    def pause(self, fleet: Fleet) -> float:
        """Return the seconds until the next poll."""
        if self.is_quiet(fleet):
            return until_beat(QUIET_INTERVAL_S, time.monotonic())
        return busy_interval(len(fleet.processes), _INTERVAL_PER_PROCESS_S)

    def burst(self) -> None:
        """Request a burst of polls: a command starts, and may end soon. Commands that start together share
        one burst."""
        if self._clock.now() - self._burst_at >= QUIET_INTERVAL_S:
            self._burst_at = self._clock.now()
            self._burst_requested.set()

    async def rest(self, fleet: Fleet) -> None:
        """Return after the pause until the next poll of processes; after a short one during a burst."""
        if not self._burst_polls_left and await _is_set_within(self._burst_requested, self.pause(fleet)):
            self._burst_requested.clear()
            self._burst_polls_left = _BURST_POLLS
        if self._burst_polls_left:
            self._burst_polls_left -= 1
            await asyncio.sleep(_BURST_INTERVAL_S)


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        # not `wait_for`: before Python 3.12 it may swallow a cancellation
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _has_open_turn(fleet: Fleet) -> bool:
    """Return whether a thread that some process has loaded is in a turn."""
    loaded = set(fleet.locks.holders) if fleet.locks else set()
    for process in fleet.processes.values():
        loaded |= {thread for path in process.rollouts if (thread := thread_id(PurePath(path)))}
    turns = (fleet.threads[thread].turn for thread in loaded if thread in fleet.threads)
    return any(turn is not None and turn.ended_at is None for turn in turns)


_ACTIVITY: Final = (ProcessGone, PaneGone, PaneDrawn)
"""Signs of activity. A process that only used some CPU does not count."""


async def poll_repeatedly(
    source: Source,
    emit: Emit,
    channel: FleetChannel,
    scheduler: PollScheduler,
    *,
    rest: Callable[[Fleet], Awaitable[None]] | None = None,
) -> None:
    """Poll a source until cancelled, with pauses that depend on the activity.

    Args:
        channel: the fleet that polls and pauses depend on.
        scheduler: sets the pauses, and is notified of activity.
        rest: waits between two polls; by default for the scheduler's pause.
    """
    while True:
        events = await source.poll(channel.value)
        if any(isinstance(event, _ACTIVITY) for event in events):
            scheduler.mark_activity()
        emit(events)
        await (rest(channel.value) if rest else asyncio.sleep(scheduler.pause(channel.value)))


_LOOK_AGAIN_S: Final = 5.0


async def look_repeatedly(
    look: Callable[[Fleet], Sequence[Event]], emit: Emit, channel: FleetChannel, *, cost_factor: int
) -> None:
    """Look in a thread, and emit what changed, until cancelled: every five seconds.

    Args:
        look: returns what changed.
        cost_factor: least pause between two looks, as a multiple of the CPU time that one takes.
    """

    def measure() -> tuple[Sequence[Event], float]:
        began = time.thread_time()
        return look(channel.value), time.thread_time() - began

    while True:
        events, cost = await asyncio.to_thread(measure)
        if events:
            emit(events)
        await asyncio.sleep(max(until_beat(_LOOK_AGAIN_S, time.monotonic()), cost_factor * cost))
