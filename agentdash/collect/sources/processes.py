"""The processes of this machine, and which of them holds which thread's lock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agentdash.agents.codex.home import CodexHome, locks
from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.collect.scheduler import PollScheduler
from agentdash.collect.sources.polling import poll_repeatedly
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet
from agentdash.model.source import Clock, Emit, FleetChannel


class ProcessSource:
    """Polls processes and the writer locks of a Codex home.

    Args:
        scheduler: sets the pauses between polls, short ones while a command starts.
    """

    name = "processes"

    def __init__(self, home: CodexHome, clock: Clock, scheduler: PollScheduler) -> None:
        self._home = home
        self._clock = clock
        self._scheduler = scheduler
        self._sensor = ProcessSensor()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the locks, and the processes that changed. Runs in a thread: /proc can be slow."""
        panes = fleet.panes.values()
        servers = {pane.server_pid for pane in panes if pane.server_pid is not None}
        return await asyncio.to_thread(self._poll, {pane.pid for pane in panes}, servers)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit changes as they are polled."""
        await poll_repeatedly(self, emit, channel, self._scheduler, rest=self._scheduler.rest)

    def _poll(self, panes: set[int], servers: set[int]) -> list[Event]:
        # locks first: the sensor's last event marks both, locks and processes, as complete
        now = self._clock.now()
        return [locks(self._home, now), *self._sensor.poll(now, panes, servers)]
