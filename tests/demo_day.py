"""The demo's day, played second by second."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from agentdash.demo import day
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model.fleet import Fleet
from agentdash.model.worker import Snapshot, Worker

_STEP_BEFORE_S: Final = 10
"""Between two snapshots of what happened before the demo's start: less than any command took."""


@cache
def snapshots(seconds: int = 130) -> tuple[Snapshot, ...]:
    """Return the snapshots at every second; after two minutes nothing new happens."""
    start, _ = day.demo_events()
    return tuple(snapshot for snapshot in all_snapshots(seconds) if snapshot.at >= start)


@cache
def all_snapshots(seconds: int = 130) -> tuple[Snapshot, ...]:
    """Return the snapshots, also those of what happened before the demo's start."""
    start, events = day.demo_events()
    events.sort(key=lambda event: event.at)
    fleet, cache_of_workers, reduced, found = Fleet(), WorkerCache(), 0, []
    before = int(events[0].at - start) // _STEP_BEFORE_S * _STEP_BEFORE_S
    for second in (*range(before, 0, _STEP_BEFORE_S), *range(seconds)):
        at = start + second
        due = next((n for n in range(reduced, len(events)) if events[n].at > at), len(events))
        fleet, reduced = reduce(fleet, events[reduced:due]), due
        found.append(build_snapshot(fleet, at, cache_of_workers))
    return tuple(found)


def workers() -> Iterator[Worker]:
    """Yield every worker each time that its sandbox has changed."""
    seen: dict[str, Worker] = {}
    for snapshot in all_snapshots():
        for worker in snapshot.workers:
            if worker.id not in seen or seen[worker.id].sandbox is not worker.sandbox:
                yield worker
            seen[worker.id] = worker
