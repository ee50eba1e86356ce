"""Emit what the memory file has of threads and panes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from agentdash.model.events import Event, ObservationsRecalled, PanesRecalled, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.memory import PastWorker
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.store.memory import SOURCE, Memory, MemoryFileError

_REREAD_INTERVAL_S: Final = 1.0
_REREAD_PANES: Final = 50
"""The newest ones, which may have come and gone since."""


class _MemorySource:
    """Reads the memory file.

    Args:
        memory: the file.
        clock: the time of the events.
    """

    name = SOURCE

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    def _read(self, read: Callable[[], Sequence[Event]]) -> Sequence[Event]:
        """Return the events; the failure as the source's health where the file cannot be used."""
        try:
            return read()
        except MemoryFileError as error:
            failure = clean_line(str(error))
            return [SourceSeen(at=self._clock.now(), name=self.name, ok=False, detail=failure)]


class PaneMemorySource(_MemorySource):
    """Recalls the workers of panes. A single pass polls it before panes are linked to threads."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what is remembered of panes."""
        del fleet
        return self._read(self._panes)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what is remembered of panes, and then what other agentdashes saw of panes that are not there
        any more."""
        emit(await asyncio.to_thread(self._read, self._panes))
        read = self._memory.changed_at()
        while True:
            await asyncio.sleep(_REREAD_INTERVAL_S)
            if (changed := self._memory.changed_at()) != read:
                read = changed
                emit(await asyncio.to_thread(self._read, partial(self._unseen, channel.value)))

    def _panes(self) -> Sequence[Event]:
        return self._recalled(self._memory.past_workers())

    def _unseen(self, fleet: Fleet) -> Sequence[Event]:
        past = self._memory.past_workers(_REREAD_PANES)
        return self._recalled(
            [each for each in past if each.pane not in fleet.panes and each.pane not in fleet.past_workers]
        )

    def _recalled(self, workers: Sequence[PastWorker]) -> Sequence[Event]:
        return [PanesRecalled(at=self._clock.now(), workers=tuple(workers))] if workers else []


class ThreadMemorySource(_MemorySource):
    """Recalls the observations of each thread once it is known. A single pass polls it behind all sources
    that name threads."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        super().__init__(memory, clock)
        self._recalled: set[str] = set()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what is remembered of the threads that are known."""
        return self._read(partial(self._threads, fleet.threads))

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what is remembered of threads as they appear."""
        fleet = channel.value
        while True:
            if new := fleet.threads.keys() - self._recalled:
                emit(await asyncio.to_thread(self._read, partial(self._threads, new)))
            fleet = await channel.wait_for_change(fleet)

    def _threads(self, threads: Iterable[str]) -> Sequence[Event]:
        names = set(threads)
        self._recalled |= names
        at = self._clock.now()
        return [ObservationsRecalled(at=at, memory=memory) for memory in self._memory.threads(names)]
