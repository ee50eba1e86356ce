"""Plays a list of events on a clock: the source of the demo."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from agentdash.model.clock import Clock
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet
from agentdash.model.source import Emit, FleetChannel


class Script:
    """A source that says each event when its time has come.

    Args:
        events: in any order; played by their time.
        clock: whose time counts.
    """

    name = "script"

    def __init__(self, events: Sequence[Event], clock: Clock) -> None:
        self._events = sorted(events, key=lambda e: e.at)
        self._times = [e.at for e in self._events]
        self._clock = clock

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Everything up to now."""
        del fleet
        return self._events[: bisect_right(self._times, self._clock.now())]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Says what is due, then waits for the next; ends with the last event."""
        del channel
        said = 0
        while said < len(self._events):
            due = bisect_right(self._times, self._clock.now())
            emit(self._events[said:due])
            said = max(said, due)
            if said < len(self._events):
                await self._clock.sleep_until(self._times[said])
