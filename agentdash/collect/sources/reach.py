"""What the processes of workers could write or reach."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.collect.scheduler import QUIET_INTERVAL_S
from agentdash.collect.sources.directories import working_directories
from agentdash.model.events import Event, ReachSeen
from agentdash.model.fleet import Fleet
from agentdash.model.process import Process, ProcessKey
from agentdash.model.reach import Reach, ReachTarget, union
from agentdash.model.source import Clock, Emit, FleetChannel, until_beat

_LOOK_AGAIN_S: Final = 10.0
_CHECK_INTERVAL_S: Final = QUIET_INTERVAL_S
"""Between two checks for processes that are new: these are looked at as soon as that is affordable."""
_COST_FACTOR: Final = 100
"""Least pause between two looks, as a multiple of the CPU time that one takes: at most 1 % of a core."""
_MAX_PROCESSES: Final = 4
"""Newest processes of one worker that are looked at; `agentdash reach` looks at more."""


class ReachSource:
    """Emits what workers could reach, while it streams: single looks have no need of it. Linux only."""

    name = "reach"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, Reach] = {}
        self._cost = 0.0
        """CPU seconds of the newest look."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return nothing."""
        del fleet
        return ()

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what changes."""
        looked: set[ProcessKey] = set()
        due = 0.0
        while sys.platform == "linux":
            present = {process.key for _, _, several in _workers(channel.value) for process in several}
            if time.monotonic() >= due or present != looked:
                if events := await asyncio.to_thread(self._look, channel.value):
                    emit(events)
                looked = present
                due = time.monotonic() + _LOOK_AGAIN_S
            await asyncio.sleep(
                max(until_beat(_CHECK_INTERVAL_S, time.monotonic()), _COST_FACTOR * self._cost)
            )

    def _look(self, fleet: Fleet) -> list[Event]:
        from agentdash.collect.processes.reach import (  # noqa: PLC0415
            reach_of,
            reach_targets,
            with_fleet,
        )

        began = time.thread_time()
        machine = with_fleet(reach_targets(), {key.server for key in fleet.panes}, None, {})
        trees = dict(working_directories(fleet))
        found = {"": reach_of(os.getpid(), with_fleet(machine, (), None, trees))}
        for worker, cwd, processes in _workers(fleet):
            targets: list[ReachTarget] = with_fleet(machine, (), cwd, trees)
            looks = [reach_of(process.pid, targets) for process in processes[-_MAX_PROCESSES:]]
            several = tuple(look for look in looks if look is not None)
            found[worker] = union(several).compact() if several else None
        events: list[Event] = []
        for worker in self._known.keys() | found.keys():
            reach = found.get(worker)
            if reach != self._known.get(worker):
                events.append(ReachSeen(at=self._clock.now(), worker=worker, reach=reach))
        self._known = {worker: reach for worker, reach in found.items() if reach is not None}
        self._cost = time.thread_time() - began
        return events


def _workers(fleet: Fleet) -> Iterator[tuple[str, str | None, tuple[Process, ...]]]:
    """Yield workers with live processes: thread id or pane, directory, processes."""
    for thread, processes in fleet.links.commands.items():
        known = fleet.threads.get(thread)
        yield thread, known.cwd if known else None, processes
    linked = {link.key for link in fleet.links.panes.values()}
    for key, occupant in fleet.occupants.items():
        process = fleet.processes.get(occupant.key)
        if key not in linked and process is not None:
            yield str(key), process.cwd, (process, *fleet.links.below.get(key, ()))
