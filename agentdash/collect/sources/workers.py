"""What adapters read of worker CLIs: what they were asked for (arguments and configuration, once for each
process), their session files, and their screens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agentdash.agents.adapter import SessionFiles, UnreadableSessionError
from agentdash.agents.registry import adapters
from agentdash.agents.screen_reader import ScreenReading, read_screen
from agentdash.model.events import Event, PolicyRequested, ScreenRead, SessionSeen, SourceSeen
from agentdash.model.fleet import MAY_START_S, Fleet, asked_process
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import THREAD_AGENTS, Process, ProcessKey
from agentdash.model.requested import Requested
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.model.thread import Thread
from agentdash.model.worker import nested_worker_id


class _Unread(NamedTuple):
    """A worker whose request is to be read."""

    worker: str
    process: Process | None
    """None of a thread that no process runs."""
    thread: Thread | None
    """None of a worker without a session log."""


class RequestSource:
    """Reads what the process of each worker was asked for, when both are first seen together."""

    name = "requests"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: set[tuple[str, ProcessKey | None]] = set()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the requests of processes that were not read yet."""
        return self._requests(list(self._unread(fleet, is_following=False)), fleet)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit requests as workers and their processes are linked."""
        fleet = channel.value
        while True:
            if unread := list(self._unread(fleet, is_following=True)):
                emit(await asyncio.to_thread(self._requests, unread, fleet))
            fleet = await channel.wait_for_change(fleet)

    def _unread(self, fleet: Fleet, *, is_following: bool) -> Iterator[_Unread]:
        if fleet.processes_at is None:
            return
        for thread in fleet.threads.values():
            process = asked_process(fleet, thread)
            if thread.cwd is None or thread.helper or self._is_read(thread.id, process):
                continue
            age = fleet.processes_at - (thread.created_at or 0.0)
            may_start = is_following and age <= MAY_START_S
            if process is not None or not (may_start or thread.id in fleet.requests):
                yield _Unread(thread.id, process, thread)
        for worker, process in _without_threads(fleet):
            if not self._is_read(worker, process):
                yield _Unread(worker, process, None)

    def _is_read(self, worker: str, process: Process | None) -> bool:
        return (worker, process.key if process else None) in self._read

    def _requests(self, unread: Sequence[_Unread], fleet: Fleet) -> list[Event]:
        events: list[Event] = []
        for worker, process, thread in unread:
            now = self._clock.now()
            self._read.add((worker, process.key if process else None))
            if (found := _request(process, thread, fleet, now)) is not None:
                events.append(PolicyRequested(at=now, worker=worker, requested=found))
        return events


def _without_threads(fleet: Fleet) -> Iterator[tuple[str, Process]]:
    """Yield the workers of CLIs whose session logs are not read: those in panes, by pane, and those that
    commands of threads have started, by pid."""
    for key, occupant in fleet.occupants.items():
        process = fleet.processes.get(occupant.key)
        if process is not None and occupant.gone_at is None and process.agent not in THREAD_AGENTS:
            yield str(key), process
    for nested in fleet.links.nested:
        process = fleet.processes.get(nested)
        if process is not None and process.agent not in THREAD_AGENTS:
            yield nested_worker_id(process.pid), process


def _request(process: Process | None, thread: Thread | None, fleet: Fleet, at: float) -> Requested | None:
    """Return the request of a worker; of a thread that no process runs: of its files alone, as they are
    now."""
    if process is None:
        past = adapters().get(thread.agent) if thread else None
        reader = past.request_reader if past else None
        return reader.read_past(thread, at) if reader and thread else None
    adapter = adapters().get(process.agent or "codex")
    reader = adapter.request_reader if adapter else None
    if reader is None:
        return None
    root = _root(process, fleet)
    if thread is not None and thread.parent:
        return reader.read_role(process, thread, root, at)
    return reader.read(process, thread, root, at)


def _root(process: Process, fleet: Fleet) -> Path:
    """Return where the file system of a process can be opened."""
    own = fleet.kernel
    if process.kernel is None or own is None or "mnt" not in process.kernel.apart_from(own):
        return Path("/")
    return Path(f"/proc/{process.pid}/root")


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
                    # it has begun another session, or another worker has come into its directory
                    agent = process.agent or ""
                    changed.append(SessionSeen(at=now, key=process.key, agent=agent, status=None, since=now))
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


def _content(session: SessionSeen) -> tuple[object, ...]:
    return session.status, session.waiting_for, session.since, session.session, session.chat


class _Last(NamedTuple):
    """The newest reading of a pane, and what it was made of."""

    pane: Pane
    agent: str
    reading: ScreenReading


class ScreenReadingSource:
    """Reads a screen as soon as the screen, the title or the occupant of its pane changes."""

    name = "screens"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[PaneKey, _Last] = {}

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the readings that changed."""
        if not fleet.occupants:
            return []
        now = self._clock.now()
        events: list[Event] = []
        self._last = {key: last for key, last in self._last.items() if key in fleet.panes}
        for key, occupant in fleet.occupants.items():
            pane, last = fleet.panes.get(key), self._last.get(key)
            if pane is None or occupant.gone_at is not None:
                continue
            if last is not None and last.pane is pane and last.agent == occupant.agent:
                continue
            reading = _read(pane, occupant.agent)
            self._last[key] = _Last(pane, occupant.agent, reading)
            if last is None or (last.agent, last.reading) != (occupant.agent, reading):
                fields = msgspec.structs.asdict(reading)
                events.append(ScreenRead(at=now, key=key, agent=occupant.agent, **fields))
        return events

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit readings as they change."""
        fleet = channel.value
        while True:
            emit(await self.poll(fleet))
            fleet = await channel.wait_for_change(fleet)


def _read(pane: Pane, agent: str) -> ScreenReading:
    return read_screen(
        agent,
        pane.screen,
        title=pane.title,
        cursor_visible=pane.cursor_visible,
        width=pane.width,
        height=pane.height,
    )
