"""The session files of worker CLIs, read by their adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from agentdash.agents.adapter import SessionFiles
from agentdash.agents.registry import adapters
from agentdash.model.clock import Clock
from agentdash.model.events import Event, SessionSeen
from agentdash.model.fleet import Fleet
from agentdash.model.process import ProcessKey
from agentdash.model.source import Emit, FleetChannel

_POLL_INTERVAL_S: Final = 0.1
"""Between two readings while a worker has session files: they are small, and report an approval before the
screen does."""


class SessionFileSource:
    """Reads the session files of running workers, and emits what changed.

    Args:
        clock: the time of the events.
        readers: the readers of session files by agent; by default those of all adapters.
    """

    name = "session files"

    def __init__(self, clock: Clock, readers: Mapping[str, SessionFiles] | None = None) -> None:
        self._clock = clock
        self._readers = _all_readers() if readers is None else readers
        self._emitted: dict[ProcessKey, SessionSeen] = {}

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the session files that changed. They are forgotten with their processes."""
        now = self._clock.now()
        found: dict[ProcessKey, SessionSeen] = {}
        changed: list[Event] = []
        for process in fleet.processes.values():
            reader = self._readers.get(process.agent or "")
            if reader is None or (session := reader.read(process, now)) is None:
                continue
            last = self._emitted.get(process.key)
            if last is None or _content(last) != _content(session):
                changed.append(session)
                found[process.key] = session
            else:
                found[process.key] = last
        self._emitted = found
        return changed

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit changes; wait for the fleet to change while no worker has session files."""
        while True:
            fleet = channel.value
            emit(await self.poll(fleet))
            if any(process.agent in self._readers for process in fleet.processes.values()):
                await asyncio.sleep(_POLL_INTERVAL_S)
            else:
                await channel.wait_for_change(fleet)


def _all_readers() -> dict[str, SessionFiles]:
    found = {name: adapter.session_files for name, adapter in adapters().items()}
    return {name: reader for name, reader in found.items() if reader is not None}


def _content(session: SessionSeen) -> tuple[str | None, str | None, float, str | None]:
    return session.status, session.waiting_for, session.since, session.session
