"""Workers of other hosts: one link for each host, none of which waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from agentdash.collect.remote.carrier import Carrier
from agentdash.collect.remote.link import START_LIMIT_S, Link
from agentdash.model.events import Event, SourceSeen
from agentdash.model.fleet import Fleet, RemoteSeen
from agentdash.model.pane import NO_SERVER
from agentdash.model.remote import LinkState, RemoteHost
from agentdash.model.source import Clock, Emit, FleetChannel

_NO_SESSIONS: Final = "has no sessions yet"
"""The end of the detail of a Codex home without sessions (`agents/codex/home.py`)."""


class RemoteSource:
    """Watches other hosts.

    Args:
        clock: the time of this machine.
    """

    name = "hosts"

    def __init__(self, carriers: Sequence[Carrier], clock: Clock) -> None:
        self._clock = clock
        self._carriers = carriers
        self._links: list[Link] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._emit: Emit | None = None

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the workers of every host; of one that does not answer in time that it does not.

        The links stay for `stream`, or end with the event loop.
        """
        del fleet
        self._start()
        waiting = [asyncio.ensure_future(link.decided.wait()) for link in self._links]
        try:
            await asyncio.wait(waiting, timeout=START_LIMIT_S + 1)
        finally:
            for each in waiting:
                each.cancel()
        return [event for link in self._links for event in self._events(link.host)]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit each host as it changes."""
        del channel
        self._emit = emit
        self._start()
        for link in self._links:
            emit(self._events(link.host))
        try:
            await asyncio.gather(*self._tasks)
        finally:
            self._emit = None
            await self._end()

    def _start(self) -> None:
        if not self._tasks:
            self._links = [Link(carrier, self._clock, self._changed) for carrier in self._carriers]
            self._tasks = [
                asyncio.create_task(link.run(), name=f"host {link.host.link.name}") for link in self._links
            ]

    async def _end(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _changed(self, host: RemoteHost) -> None:
        if self._emit is not None:
            self._emit(self._events(host))

    def _events(self, host: RemoteHost) -> list[Event]:
        now, link = self._clock.now(), host.link
        failed = [f"{name}: {detail}" for name, detail in host.failed_sources if not _is_absent(detail)]
        is_well = link.state is LinkState.CONNECTED and not link.detail and not failed
        detail = "; ".join(part for part in (link.detail, *failed) if part)
        shown = detail or f"{len(host.workers)} workers, agentdash {link.version or '?'}"
        if link.state is LinkState.CONNECTING:
            shown = "connecting"
        health = SourceSeen(at=now, name=f"host {link.name}", ok=is_well, detail=shown)
        return [RemoteSeen(at=now, host=host), health]


def _is_absent(detail: str) -> bool:
    """Return whether a source there has nothing to read, which is no failure of it."""
    return detail == NO_SERVER or detail.endswith(_NO_SESSIONS)
