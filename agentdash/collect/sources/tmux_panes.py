"""The panes of tmux servers, polled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from agentdash.collect.scheduler import BUSY_INTERVAL_S, PollScheduler, busy_interval
from agentdash.collect.sources.polling import poll_repeatedly
from agentdash.collect.tmux.sensor import TmuxSensor
from agentdash.collect.tmux.terminals import PaneTerminals
from agentdash.model.events import Event, PaneDrawn, PaneSeen, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.source import Clock, Emit, FleetChannel

_NOTICED_INTERVAL_S: Final = 5.0
"""Between two polls where output is noticed and there is none: names, modes and sizes may have changed."""
_INTERVAL_PER_SCREEN_S: Final = 1 / 30
"""Between two polls while panes draw, for each that has drawn: tmux and agentdash take half a millisecond of
CPU for a screen."""
_SETTLE_S: Final = 0.03
"""From the first output after a pause to the poll: a screen is drawn with several writes."""
_MAX_UNNOTICED: Final = 3
"""Screens that changed without a notice until notices are given up: some systems do not deliver them. A
screen may also change by a command of tmux, but seldom."""


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
        self._terminals = PaneTerminals()
        self._interval_s = BUSY_INTERVAL_S
        """Between two polls while panes draw."""
        self._silent_rests = 0
        """How many pauses in a row have passed without output."""
        self._unnoticed = 0
        """Polls that found a changed screen after silence."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what changed in the panes of all servers."""
        polled = await self._sensor.poll(self._clock.now())
        events = [event for event in polled if not self._is_optional_absence(event)]
        screens = sum(isinstance(event, PaneDrawn) for event in events)
        self._interval_s = busy_interval(screens, _INTERVAL_PER_SCREEN_S)
        resized = {event.pane.key for event in events if isinstance(event, PaneSeen)}
        if any(isinstance(event, PaneSeen) and event.pane.key not in fleet.panes for event in events):
            self._scheduler.burst()  # some CLIs end within a second
        if self._silent_rests > 1:
            self._unnoticed += any(
                isinstance(event, PaneDrawn) and event.since is None and event.key not in resized
                for event in events
            )
        return events

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit changes as they are polled."""
        try:
            await poll_repeatedly(self, emit, channel, self._scheduler, rest=self._rest)
        finally:
            self._terminals.close()
            self._sensor.close()

    async def _rest(self, fleet: Fleet) -> None:
        """Return when panes have drawn, or after a pause; output may follow that which was noticed."""
        loop = asyncio.get_running_loop()
        polled_at = loop.time()
        if self._unnoticed >= _MAX_UNNOTICED or not self._terminals.watch(self._sensor.terminals):
            self._silent_rests = 0
            await asyncio.sleep(max(self._scheduler.pause(fleet), self._interval_s))
        elif await self._terminals.wait(_NOTICED_INTERVAL_S if self._silent_rests else self._interval_s):
            self._silent_rests = 0
            await asyncio.sleep(max(polled_at + self._interval_s - loop.time(), _SETTLE_S))
        else:
            self._silent_rests += 1

    def _is_optional_absence(self, event: Event) -> bool:
        """Return whether an event is the absence of an optional default server. Once it has been there, it is
        missed."""
        if not isinstance(event, SourceSeen) or event.name != self.name:
            return False
        self._default_optional = self._default_optional and not event.ok
        return self._default_optional
