"""The panes of tmux servers, polled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from agentdash.collect.scheduler import BUSY_INTERVAL_S, PollScheduler, busy_interval
from agentdash.collect.sources.polling import poll_repeatedly
from agentdash.collect.tmux.sensor import TmuxSensor
from agentdash.model.clock import Clock
from agentdash.model.events import Event, PaneDrawn, PaneSeen, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.source import Emit, FleetChannel

_INTERVAL_PER_SCREEN_S: Final = 1 / 30
"""Between two polls while panes draw, for each that has drawn: tmux and agentdash take half a millisecond of
CPU for a screen."""


class TmuxPaneSource:
    """Reads panes: their properties and screens.

    Args:
        sensor: reads the servers.
        scheduler: sets the pauses between polls; a new pane starts a burst.
        default_optional: whether the default server may be absent without a report: other servers are
            configured, or agentdash runs in one.
    """

    name = "tmux"

    def __init__(
        self, sensor: TmuxSensor, clock: Clock, scheduler: PollScheduler, *, default_optional: bool
    ) -> None:
        self._sensor = sensor
        self._clock = clock
        self._scheduler = scheduler
        self._default_optional = default_optional
        self._interval_s = BUSY_INTERVAL_S
        """Between two polls while panes draw."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what changed in the panes of all servers."""
        polled = await self._sensor.poll(self._clock.now())
        events = [event for event in polled if not self._is_optional_absence(event)]
        screens = sum(isinstance(event, PaneDrawn) for event in events)
        self._interval_s = busy_interval(screens, _INTERVAL_PER_SCREEN_S)
        if any(isinstance(event, PaneSeen) and event.pane.key not in fleet.panes for event in events):
            self._scheduler.burst()  # some CLIs end within a second
        return events

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit changes as they are polled."""
        try:
            await poll_repeatedly(self, emit, channel, self._scheduler, rest=self._rest)
        finally:
            self._sensor.close()

    async def _rest(self, fleet: Fleet) -> None:
        await asyncio.sleep(max(self._scheduler.pause(fleet), self._interval_s))

    def _is_optional_absence(self, event: Event) -> bool:
        """Return whether an event is the absence of an optional default server. Once it has been there, it is
        missed."""
        if not isinstance(event, SourceSeen) or event.name != self.name:
            return False
        self._default_optional = self._default_optional and not event.ok
        return self._default_optional
