"""What worker CLIs were asked for: their arguments and configuration, read by their adapters once for each
process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentdash.agents.adapter import RequestReader
from agentdash.agents.registry import adapters
from agentdash.model.asked import MAY_START_S, asked_process
from agentdash.model.clock import Clock
from agentdash.model.events import Event, PolicyRequested
from agentdash.model.fleet import Fleet, Thread
from agentdash.model.process import THREAD_AGENTS, Process, ProcessKey
from agentdash.model.requested import Requested
from agentdash.model.source import Emit, FleetChannel
from agentdash.model.worker import nested_worker_id


class RequestSource:
    """Reads what the process of each worker was asked for, when both are first seen together.

    Args:
        clock: the time of the events.
    """

    name = "requests"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: set[tuple[str, ProcessKey | None]] = set()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the requests of processes that were not read yet."""
        return list(self._requests(fleet, is_following=False))

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit requests as workers and their processes are linked."""
        fleet = channel.value
        while True:
            if events := await asyncio.to_thread(self._new_requests, fleet):
                emit(events)
            fleet = await channel.wait_for_change(fleet)

    def _new_requests(self, fleet: Fleet) -> list[Event]:
        return list(self._requests(fleet, is_following=True))

    def _requests(self, fleet: Fleet, *, is_following: bool) -> Iterator[Event]:
        if fleet.processes_at is None:
            return
        for thread in fleet.threads.values():
            process = asked_process(fleet, thread)
            if thread.cwd is None or thread.helper:
                continue
            if (thread.id, process.key if process else None) in self._read:
                continue
            if process is None:
                age = fleet.processes_at - (thread.created_at or 0.0)
                if not is_following or age > MAY_START_S:
                    yield from self._past_request(fleet, thread)
                continue
            self._read.add((thread.id, process.key))
            reader = _reader(process)
            if reader is not None and (found := _request(reader, process, thread, fleet, self._clock.now())):
                yield PolicyRequested(at=self._clock.now(), worker=thread.id, requested=found)
        for worker, process in _without_threads(fleet):
            if (worker, process.key) in self._read:
                continue
            self._read.add((worker, process.key))
            reader, now = _reader(process), self._clock.now()
            if reader is not None and (found := reader.read(process, None, _root(process, fleet), now)):
                yield PolicyRequested(at=now, worker=worker, requested=found)

    def _past_request(self, fleet: Fleet, thread: Thread) -> Iterator[Event]:
        """Yield the request of a thread that no process runs: of its files alone, as they are now."""
        reader = adapters()[thread.agent].request_reader if thread.agent in adapters() else None
        if reader is None or thread.id in fleet.requests:
            return
        self._read.add((thread.id, None))
        if (found := reader.read_past(thread, self._clock.now())) is not None:
            yield PolicyRequested(at=self._clock.now(), worker=thread.id, requested=found)


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


def _request(
    reader: RequestReader, process: Process, thread: Thread, fleet: Fleet, at: float
) -> Requested | None:
    root = _root(process, fleet)
    if thread.parent:
        return reader.read_role(process, thread, root, at)
    return reader.read(process, thread, root, at)


def _reader(process: Process) -> RequestReader | None:
    adapter = adapters().get(process.agent or "codex")
    return adapter.request_reader if adapter else None


def _root(process: Process, fleet: Fleet) -> Path:
    """Return where the file system of a process can be opened."""
    own = fleet.kernel
    if process.kernel is None or own is None or "mnt" not in process.kernel.apart_from(own):
        return Path("/")
    return Path(f"/proc/{process.pid}/root")
