"""The git repositories that live workers work in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agentdash.collect.git.repository import find_repository, read_repository
from agentdash.collect.scheduler import QUIET_INTERVAL_S
from agentdash.collect.sources.directories import working_directories
from agentdash.model.events import Event, RepositorySeen
from agentdash.model.fleet import Fleet
from agentdash.model.git import Repository
from agentdash.model.source import Clock, Emit, FleetChannel, until_beat

_MAX_DIRECTORIES: Final = 100
_ONCE_S: Final = 0.05
"""For all repositories of a single look: `status` must be quick; of the rest nothing is known then."""
_READ_AGAIN_S: Final = 10.0
_CHECK_INTERVAL_S: Final = QUIET_INTERVAL_S
"""Between two checks for directories that are new: these are read at once."""
_COST_FACTOR: Final = 50
"""Least pause between two looks, as a multiple of the CPU time that one takes: at most 2 % of a core."""


class GitSource:
    """Emits the repositories of live workers' directories, where they changed."""

    name = "git"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, Repository | None] = {}
        self._cost = 0.0
        """CPU seconds of the newest look."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what changed, as far as it can be read quickly."""
        return await asyncio.to_thread(self._read, fleet, time.monotonic() + _ONCE_S)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what changes."""
        read: set[str] = set()
        due = 0.0
        while True:
            directories = set(_directories(channel.value))
            if time.monotonic() >= due or directories - read:
                if events := await asyncio.to_thread(self._read, channel.value, None):
                    emit(events)
                read = directories
                due = time.monotonic() + max(_READ_AGAIN_S, _COST_FACTOR * self._cost)
            await asyncio.sleep(
                max(until_beat(_CHECK_INTERVAL_S, time.monotonic()), _COST_FACTOR * self._cost / 10)
            )

    def _read(self, fleet: Fleet, deadline: float | None) -> list[Event]:
        began = time.thread_time()
        events: list[Event] = []
        for directory in _directories(fleet)[:_MAX_DIRECTORIES]:
            if deadline is not None and time.monotonic() > deadline:
                break
            place = find_repository(Path(directory))
            repository = read_repository(place) if place is not None else None
            if self._known.get(directory) != repository:
                self._known[directory] = repository
                events.append(
                    RepositorySeen(at=self._clock.now(), directory=directory, repository=repository)
                )
        self._cost = time.thread_time() - began
        return events


def _directories(fleet: Fleet) -> list[str]:
    return list(dict.fromkeys(directory for directory, _ in working_directories(fleet)))
