"""What Codex states beyond rollouts: its status feed (an app-server's), and its log database."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from agentdash.agents.codex.home import CodexHome
from agentdash.agents.codex.log_database import CodexLog
from agentdash.agents.codex.status_feed import StatusFeed
from agentdash.collect.scheduler import PollScheduler, poll_repeatedly
from agentdash.model.events import Event, ThreadEvent
from agentdash.model.fleet import Fleet
from agentdash.model.source import Clock, Emit, FleetChannel


class StatusFeedSource:
    """Reads the status feed of a Codex home while an app-server of it is running.

    Args:
        scheduler: notified of activity.
    """

    name = "codex feed"

    def __init__(self, home: CodexHome, clock: Clock, scheduler: PollScheduler) -> None:
        self._feed = StatusFeed(home.root, clock, is_idle=scheduler.is_idle)
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

        await self._feed.stream(emit_pushed)


_MAX_DEFERRED_EVENTS: Final = 200
"""Kept of threads that are not known yet; most of these become known within a poll or never."""


class CodexLogSource:
    """Polls the log database of a Codex home."""

    name = "codex log"

    def __init__(self, home: CodexHome, clock: Clock, scheduler: PollScheduler) -> None:
        self._log = CodexLog(home.root)
        self._clock = clock
        self._scheduler = scheduler
        self._deferred: list[ThreadEvent] = []
        """Of threads whose rollout has not been read: yet, or never, since Codex's internal threads have
        none."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the new records of known threads. They are read in a thread: Codex may hold the database."""
        events: list[Event] = [*self._deferred]
        if self._log.has_changed:
            events += await asyncio.to_thread(self._log.poll, self._clock.now())
        deferred = [
            event for event in events if isinstance(event, ThreadEvent) and event.thread not in fleet.threads
        ]
        self._deferred = deferred[-_MAX_DEFERRED_EVENTS:]
        return [event for event in events if event not in deferred]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit recent records, and new ones as they are polled."""
        await poll_repeatedly(self, emit, channel, self._scheduler)
