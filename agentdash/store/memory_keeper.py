"""Save what agentdash sees into the memory file: what changed, at most once a second, and at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from agentdash.model.events import SourceSeen
from agentdash.model.fleet import Fleet, memory_of
from agentdash.model.memory import PastWorker, ThreadMemory, argument_digests, digest
from agentdash.model.pane import Pane
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Snapshot, Worker
from agentdash.store.memory import SOURCE, Memory, MemoryFileError
from agentdash.store.status_file import Engine

_SAVE_INTERVAL_S: Final = 1.0
"""Between two writes."""
_CHECK_INTERVAL_S: Final = 10.0
"""Between two looks at the fleet while no snapshot differs: what is saved hardly changes then."""


class MemoryKeeper:
    """Writes the memory file of a Codex home.

    Args:
        memory: the file.
        clock: the time of the rows.
    """

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._threads: Mapping[str, Thread] = {}
        """Of the newest fleet that was looked through."""
        self._fleet: Fleet | None = None
        self._snapshot: Snapshot | None = None
        self._failure: str | None = None

    async def keep(self, hub: Engine) -> None:
        """Save what the hub sees until cancelled, and once more then; a failure is reported as a source."""
        try:
            while True:
                await asyncio.sleep(_SAVE_INTERVAL_S)
                snapshot = hub.snapshot
                failure = await asyncio.to_thread(self.save, hub.fleet, snapshot)
                if failure != self._failure:
                    self._failure = failure
                    hub.emit([self._health(failure)])
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_INTERVAL_S):
                        await hub.wait_for_snapshot(snapshot)
        finally:
            self.save(hub.fleet, hub.snapshot)

    def save(self, fleet: Fleet, snapshot: Snapshot | None) -> str | None:
        """Save what is new in a fleet; return the error message if the file cannot be used."""
        is_unchanged = fleet is self._fleet and snapshot is self._snapshot
        if snapshot is None or fleet.processes_at is None or is_unchanged:
            return self._failure
        try:
            self._save(fleet, snapshot)
        except MemoryFileError as error:
            return clean_line(str(error))
        return None

    def _save(self, fleet: Fleet, snapshot: Snapshot) -> None:
        present = (
            _present(worker, worker.pane, fleet, snapshot.at)
            for worker in snapshot.workers
            if worker.pane is not None and worker.host is None and worker.state is not State.UNREACHABLE
        )
        workers = (*fleet.past_workers.values(), *present)
        self._memory.save(list(self._changed_threads(fleet)), workers, self._clock.now())
        self._fleet = fleet
        self._snapshot = snapshot

    def _health(self, failure: str | None) -> SourceSeen:
        return SourceSeen(
            at=self._clock.now(), name=SOURCE, ok=failure is None, detail=failure or "written again"
        )

    def _changed_threads(self, fleet: Fleet) -> Iterator[ThreadMemory]:
        requests = self._fleet.requests if self._fleet else {}
        if fleet.threads is not self._threads or fleet.requests is not requests:
            for thread in fleet.threads.values():
                asked = fleet.requests.get(thread.id, ())
                is_unchanged = self._threads.get(thread.id) is thread and requests.get(thread.id, ()) is asked
                if not is_unchanged and (thread.observations or thread.escapes or asked):
                    yield replace(memory_of(thread), requests=asked)
        self._threads = fleet.threads


def _present(worker: Worker, pane: Pane, fleet: Fleet, at: float) -> PastWorker:
    """Return what is kept of a worker that is in a pane now."""
    occupant, link = fleet.occupants.get(pane.key), fleet.links.panes.get(worker.id)
    decisive = worker.assessment.evidence[0] if worker.assessment.evidence else None
    return PastWorker(
        pane=pane.key,
        worker=worker.id,
        agent=worker.agent.name,
        seen=at,
        server_pid=pane.server_pid,
        name=pane.window,
        cwd=worker.cwd,
        pid=occupant.key.pid if occupant else None,
        own=link is not None and link.own,
        state=worker.state,
        since=worker.assessment.since,
        rule=decisive.rule if decisive else "",
        words=digest(decisive.text) if decisive else "",
        ended_at=occupant.gone_at if occupant else None,
        started=occupant.key.started if occupant else None,
        arguments=argument_digests(occupant.process.argv) if occupant and occupant.process else (),
    )
