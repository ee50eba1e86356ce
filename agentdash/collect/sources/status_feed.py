"""Codex's status feed: the state of threads, pushed by a running app-server."""

from __future__ import annotations

from collections.abc import Sequence

from agentdash.agents.codex.home import CodexHome
from agentdash.agents.codex.status_feed import StatusFeed
from agentdash.collect.scheduler import PollScheduler
from agentdash.model.clock import Clock
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet
from agentdash.model.source import Emit, FleetChannel


class StatusFeedSource:
    """Reads the status feed of a Codex home while an app-server of it is running.

    Args:
        scheduler: notified of activity; while idle, a server is looked for less often.
    """

    name = "codex feed"

    def __init__(self, home: CodexHome, clock: Clock, scheduler: PollScheduler) -> None:
        self._feed = StatusFeed(home.root, clock)
        self._clock = clock
        self._scheduler = scheduler

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the status of all threads that are loaded."""
        del fleet
        return await self._feed.poll(self._clock.now())

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit each status as it is pushed."""
        del channel

        def emit_pushed(events: Sequence[Event]) -> None:
            self._scheduler.mark_activity()
            emit(events)

        await self._feed.stream(emit_pushed, self._scheduler.is_idle)
