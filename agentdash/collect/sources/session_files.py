"""The session files of worker CLIs, read by their adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from agentdash.agents.adapter import SessionFiles, UnreadableSessionError
from agentdash.agents.registry import adapters
from agentdash.model.events import Event, SessionSeen, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.process import Process, ProcessKey
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, Emit, FleetChannel

_POLL_INTERVAL_S: Final = 0.1
"""Between two readings while a worker has session files: they are small, and report an approval before the
screen does."""
_MAX_DETAIL_CHARS: Final = 400


class SessionFileSource:
    """Reads the session files of running workers, and emits what changed.

    Args:
        readers: the readers of session files by agent; by default those of all adapters.
    """

    name = "session files"

    def __init__(self, clock: Clock, readers: Mapping[str, SessionFiles] | None = None) -> None:
        self._clock = clock
        self._given = readers
        self._emitted: dict[ProcessKey, SessionSeen] = {}
        self._unread = ""
        """What the last poll could not read."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the session files that changed, and what cannot be read. They are forgotten with their
        processes."""
        now = self._clock.now()
        found: dict[ProcessKey, SessionSeen] = {}
        changed: list[Event] = []
        unread: set[str] = set()
        shared = _shared_directories(fleet.processes.values())
        for process in fleet.processes.values():
            reader = self._reader(process)
            if reader is None:
                continue
            last = self._emitted.get(process.key)
            try:
                session = reader.read(process, now, is_alone=_place(process) not in shared)
            except UnreadableSessionError as error:
                unread.add(str(error))
                session = last
            if session is None:
                if last is not None and last.chat is not None:
                    changed.append(_none_known(process, now))
                continue
            if last is None or _content(last) != _content(session):
                changed.append(session)
                last = session
            found[process.key] = last
        self._emitted = found
        return [*changed, *self._health(now, unread)]

    def _health(self, now: float, unread: Iterable[str]) -> list[Event]:
        detail = clean_line("; ".join(sorted(unread)), _MAX_DETAIL_CHARS)
        if detail == self._unread:
            return []
        self._unread = detail
        return [SourceSeen(at=now, name=self.name, ok=not detail, detail=detail or "can be read again")]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit changes; wait for the fleet to change while no worker has session files."""
        while True:
            fleet = channel.value
            emit(await self.poll(fleet))
            if any(self._reader(process) is not None for process in fleet.processes.values()):
                await asyncio.sleep(_POLL_INTERVAL_S)
            else:
                await channel.wait_for_change(fleet)

    def _reader(self, process: Process) -> SessionFiles | None:
        """Return the reader of the session files of a process's CLI, which is imported only now."""
        agent = process.agent or ""
        if self._given is not None:
            return self._given.get(agent)
        return adapters()[agent].session_files if agent in adapters() else None


def _place(process: Process) -> tuple[str, str | None, str | None]:
    return process.agent or "", process.cwd, (process.env or {}).get("HOME")


def _shared_directories(processes: Iterable[Process]) -> set[tuple[str, str | None, str | None]]:
    """Return the directories in which several workers of the same CLI run. One that has started itself again
    is one."""
    agents = {process.pid: process for process in processes if process.agent}
    found: dict[tuple[str, str | None, str | None], int] = {}
    for process in agents.values():
        parent = agents.get(process.ppid)
        if parent is None or parent.agent != process.agent:
            found[_place(process)] = found.get(_place(process), 0) + 1
    return {place for place, count in found.items() if count > 1}


def _none_known(process: Process, at: float) -> SessionSeen:
    """Return the event that no session is certainly a process's own any more: it has begun another one, or
    another worker has come into its directory."""
    return SessionSeen(at=at, key=process.key, agent=process.agent or "", status=None, since=at)


def _content(session: SessionSeen) -> tuple[object, ...]:
    return session.status, session.waiting_for, session.since, session.session, session.chat
