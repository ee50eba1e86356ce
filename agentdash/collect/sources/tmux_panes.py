"""The panes of tmux servers, polled."""

from __future__ import annotations

from collections.abc import Sequence

from agentdash.collect.scheduler import PollScheduler
from agentdash.collect.sources.polling import poll_repeatedly
from agentdash.collect.tmux.sensor import TmuxSensor
from agentdash.model.clock import Clock
from agentdash.model.events import Event, PaneSeen, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.source import Emit, FleetChannel


class TmuxPaneSource:
    """Reads panes: their properties and screens.

    Args:
        sensor: reads the servers.
        clock: the time of the events.
        scheduler: sets the pauses between polls; a new pane starts a burst.
        default_optional: whether the default server may be absent without a report: other servers are
            configured.
    """

    name = "tmux"

    def __init__(
        self, sensor: TmuxSensor, clock: Clock, scheduler: PollScheduler, *, default_optional: bool
    ) -> None:
        self._sensor = sensor
        self._clock = clock
        self._scheduler = scheduler
        self._default_optional = default_optional

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what changed in the panes of all servers."""
        polled = await self._sensor.poll(self._clock.now())
        events = [event for event in polled if not self._is_optional_absence(event)]
        if any(isinstance(event, PaneSeen) and event.pane.key not in fleet.panes for event in events):
            self._scheduler.burst()  # some CLIs end within a second
        return events

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit changes as they are polled."""
        await poll_repeatedly(self, emit, channel, self._scheduler)

    def _is_optional_absence(self, event: Event) -> bool:
        """Return whether an event is the absence of an optional default server. Once it has been there, it is
        missed."""
        if not isinstance(event, SourceSeen) or event.name != self.name:
            return False
        self._default_optional = self._default_optional and not event.ok
        return self._default_optional
