"""What worker CLIs were asked for: their arguments and configuration, read by their adapters once for each
process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from agentdash.agents.registry import adapters
from agentdash.model.events import Event, PolicyRequested
from agentdash.model.fleet import MAY_START_S, Fleet, asked_process
from agentdash.model.process import THREAD_AGENTS, Process, ProcessKey
from agentdash.model.requested import Requested
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
