"""The source of the demo: a list of events, emitted on a clock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property

from agentdash.model.clock import Clock
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet
from agentdash.model.source import Emit, FleetChannel


class ScriptedSource:
    """A source that emits each event at its time.

    Args:
        read: returns them, in any order; called when the first are due.
        clock: the time by which they are due.
    """

    name = "script"

    def __init__(self, read: Callable[[], Sequence[Event]], clock: Clock) -> None:
        self._read = read
        self._clock = clock

    @cached_property
    def _events(self) -> list[Event]:
        return sorted(self._read(), key=lambda event: event.at)

    @cached_property
    def _times(self) -> list[float]:
        return [event.at for event in self._events]

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return all events that are due."""
        del fleet
        return self._events[: bisect_right(self._times, self._clock.now())]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit events as they become due; return after the last one."""
        del channel
        emitted = 0
        while emitted < len(self._events):
            due = bisect_right(self._times, self._clock.now())
            emit(self._events[emitted:due])
            emitted = max(emitted, due)
            if emitted < len(self._events):
                await self._clock.sleep_until(self._times[emitted])
