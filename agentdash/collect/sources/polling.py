"""The loop of sources that have to poll."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from agentdash.collect.scheduler import PollScheduler
from agentdash.model.events import PaneDrawn, PaneGone, ProcessGone
from agentdash.model.fleet import Fleet
from agentdash.model.source import Emit, FleetChannel, Source

_ACTIVITY: Final = (ProcessGone, PaneGone, PaneDrawn)
"""Events that are signs of activity. A process that only used some CPU is none."""


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
