"""Codex's status feed: the state of threads, pushed by a running app-server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from agentdash.agents.codex.home import CodexHome
from agentdash.agents.codex.status_feed import StatusFeed
from agentdash.collect import inotify
from agentdash.collect.notices import Notices
from agentdash.collect.scheduler import PollScheduler
from agentdash.model.events import Event
from agentdash.model.fleet import Fleet
from agentdash.model.source import Clock, Emit, FleetChannel

_NOTICED_INTERVAL_S: Final = 5.0
"""Between two searches for an app-server where changes of its directories are noticed."""
_ENTRIES: Final = inotify.CREATE | inotify.DELETE | inotify.MOVED_FROM | inotify.MOVED_TO
_LOCKS: Final = _ENTRIES | inotify.MODIFY | inotify.CLOSE_WRITE
"""Of a lock also that it is written to: it counts as new then."""


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
        self._notices = Notices()

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

        try:
            await self._feed.stream(emit_pushed, self._scheduler.is_idle, self._rest)
        finally:
            self._notices.close()

    async def _rest(self, seconds: float) -> None:
        """Return when an app-server may have come: by a notice, or after so many seconds without notices."""
        home, *places = self._feed.places
        # in the home itself files are written all the time
        is_complete = self._notices.watch({home: _ENTRIES} | dict.fromkeys(places, _LOCKS))
        if self._notices.watched(home):
            await self._notices.wait(_NOTICED_INTERVAL_S if is_complete else 0)
        else:
            await asyncio.sleep(seconds)
