"""The hub and the source of the demo. The day is parsed when the hub runs: the first picture comes first."""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from agentdash.demo.day import DayConversations, demo_events
from agentdash.engine.hub import Hub
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.replay.clock import VirtualClock

_DAY: Final = Path(__file__).with_name("day.toml")


def demo_hub(speed: float = 1.0, at: float = 0.0) -> tuple[Hub, VirtualClock]:
    """Return a hub over the scripted day, and its clock.

    Args:
        speed: virtual seconds per real second.
        at: seconds of the day that have passed already.
    """
    start = tomllib.loads(_DAY.read_text("utf-8"))["start"].timestamp()
    clock = VirtualClock(start + at, speed)
    return Hub([ScriptedSource(lambda: demo_events()[1], clock)], clock), clock


def demo_scenes() -> list[tuple[float, str]]:
    """Return what to look at, each from when on (unix seconds)."""
    day = tomllib.loads(_DAY.read_text("utf-8"))
    return [(day["start"].timestamp() + scene["at"], scene["says"]) for scene in day["scene"]]


def demo_conversations(clock: Clock) -> DayConversations:
    """Return the conversations of the scripted day, as they are at the time of a clock."""
    return DayConversations(lambda: demo_events()[1], clock)


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
