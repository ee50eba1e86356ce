"""Run sources, reduce their events, and publish snapshots.

Sources emit events; `reduce` and `build_snapshot` are pure. Live and replay differ only in the sources and
the clock of a hub.

A failure is part of the snapshot. An event that cannot be reduced is dropped and counted; a snapshot that
cannot be built leaves the workers as they were, with the error beside them. Neither ends the hub: it goes on
with the next events.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from msgspec.structs import replace

from agentdash.model.engine_failure import EngineFailedError, EngineFailure, FailedStep
from agentdash.model.events import (
    AttentionRecalled,
    CallStarted,
    Event,
    ScreenRead,
    SessionSeen,
    SourceSeen,
    StatusPushed,
    TurnEnded,
)
from agentdash.model.fleet import Fleet, FleetReplaced
from agentdash.model.limits import STALLED_AFTER_S
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock, ClosableSource, Source
from agentdash.model.worker import Snapshot

if TYPE_CHECKING:
    from agentdash.engine.snapshot import WorkerCache

log = logging.getLogger(__name__)

ENGINE: Final = "engine"
"""Name under which the engine's own health stands among the sources of a snapshot."""
_MIN_INTERVAL_S: Final = 0.1
"""Between two snapshots."""
_MAX_INTERVAL_S: Final = 2.0
"""Where a snapshot of a large fleet costs much: as often as k9s draws."""
_COST_FACTOR: Final = 20
"""Interval between two snapshots while events keep coming, as a multiple of the CPU time that the loop spends
for each, drawing included: 5 % of a core, between the two intervals. More would delay a worker that reports
twice a second: drawing takes 15 ms."""
_SAVED_S: Final = 5.0
"""Of a pause, by which the next snapshots may be earlier: some follow each other at the shortest interval."""
_URGENT: Final = (StatusPushed, ScreenRead, SessionSeen, TurnEnded, AttentionRecalled)
"""Events that may mean that a worker needs a person, and what a person did: they do not wait for the longer
interval. Nor does a call that asks to leave its sandbox."""
_BATCH_EVENTS: Final = 2_000
"""Events reduced before other tasks of the loop run."""
_MAX_PENDING_EVENTS: Final = 4 * _BATCH_EVENTS
"""Events that wait to be reduced before sources that read files pause: a second of reducing on a slow
machine."""
_RETRY_DELAYS_S: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Before a failed source is started again; the last one repeats."""
_SLOW_STEP_S: Final = 0.25
"""A step that takes longer is written to the debug log: keys and paints wait for it."""
_MAX_ERROR_CHARS: Final = 200


class Hub:
    """Sources in, snapshots out.

    Args:
        sources: where events come from; `once` polls them in this order. Iterated first when it runs.
        stalled_after: seconds without a sign of life after which a running worker has stalled.
        observer: called with each batch of reduced events, on the loop; it must be quick.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        clock: Clock,
        *,
        stalled_after: float = STALLED_AFTER_S,
        observer: Callable[[Sequence[Event]], None] | None = None,
    ) -> None:
        self._sources = sources
        self._clock = clock
        self._stalled_after = stalled_after
        self._observer = observer
        self._pending: list[Event] = []
        self._arrived = asyncio.Event()
        self._urgent = asyncio.Event()
        self._cache: WorkerCache | None = None
        self._due: float | None = None
        """When the newest snapshot changes although no event arrives."""
        self._health: dict[str, tuple[bool, str]] = {}
        """The newest state and detail of each source."""
        self._channel = LatestFleet()
        self._latest: LatestValue[Snapshot | None] = LatestValue(None)
        self._lost: EngineFailure | None = None
        """Events that could not be reduced, or recorded, so far."""
        self._broken: EngineFailure | None = None
        """Why the newest snapshot could not be built."""

    @property
    def fleet(self) -> Fleet:
        """Return the newest fleet."""
        return self._channel.value

    @property
    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; None before the first."""
        return self._latest.value

    def now(self) -> float:
        """Return the time of the hub's clock (unix seconds)."""
        return self._clock.now()

    def emit(self, events: Sequence[Event]) -> None:
        """Accept events. A source's health that has not changed is dropped."""
        if new := [event for event in events if not self._is_known_health(event)]:
            self._pending.extend(new)
            self._arrived.set()
            if len(self._pending) > _MAX_PENDING_EVENTS:
                self._channel.has_room.clear()
            if any(map(_is_urgent, new)):
                self._urgent.set()

    async def once(self, *, settles: bool = True) -> Snapshot:
        """Poll every source once and return the snapshot of what they emitted.

        Args:
            settles: whether a later snapshot shows the states that have just begun; without one, this does.
        """
        for source in self._sources:
            try:
                events = await source.poll(self.fleet)
            except Exception as error:  # a broken source must not take the others' facts away
                log.exception("source %s failed", source.name)
                events = [_failed_source(source.name, error, self._clock.now())]
            self._reduce(events)
        return self._next_snapshot(settles=settles)

    async def close(self) -> None:
        """End what sources go on with after `once`.

        Before the event loop ends: that cancels all tasks at once, and asyncio (3.11) then waits for ever for
        a process that is just being started.
        """
        for source in self._sources:
            if isinstance(source, ClosableSource):
                await source.close()

    def take(self, events: Sequence[Event]) -> Snapshot:
        """Reduce events between two passes, and return the snapshot."""
        self._reduce(events)
        return self._next_snapshot()

    async def run(self) -> None:
        """Run the sources and publish snapshots until cancelled.

        An error of the hub itself is published as the last snapshot's failure before it is raised.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for source in self._sources:
                    group.create_task(self._supervise(source), name=source.name)
                group.create_task(self._publish(), name="publish")
        except Exception as error:
            log.exception("the engine stopped")
            self._broken = self._failure("stopped", error, self._broken)
            self._latest.value = self._mark(self.snapshot or Snapshot(self._clock.now()))
            raise

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        """Yield snapshots as they are published; a slow reader gets the newest and misses those between."""
        last: Snapshot | None = None
        while True:
            if (last := await self.wait_for_snapshot(last)) is not None:
                yield last

    async def wait_for_snapshot(self, last: Snapshot | None) -> Snapshot | None:
        """Return the newest snapshot as soon as it is not `last`."""
        return await self._latest.wait_for_change(last)

    # ------------------------------------------------------------ steps

    def _reduce(self, events: Sequence[Event]) -> None:
        """Reduce a batch; where that fails, in halves, so that a bad event costs itself alone."""
        try:
            with _timed("reduce", len(events)):
                self._channel.value = _reduce_all(self.fleet, events)
        except Exception as error:
            if len(events) == 1:
                log.exception("dropped an event: %s", type(events[0]).__name__)
                self._lost = self._failure("reduce", error, self._lost)
            else:
                self._reduce(events[: len(events) // 2])
                self._reduce(events[len(events) // 2 :])

    def _next_snapshot(self, *, settles: bool = True) -> Snapshot:
        """Build the snapshot of the fleet; the last one, marked, where that fails."""
        # the first picture comes first
        from agentdash.engine.snapshot import WorkerCache, build_snapshot  # noqa: PLC0415

        now = self._clock.now()
        self._cache = self._cache or WorkerCache()
        try:
            with _timed("snapshot", len(self.fleet.threads)):
                snapshot = build_snapshot(self.fleet, now, self._cache, self._stalled_after, settles=settles)
            self._broken = None
        except Exception as error:
            log.exception("no snapshot could be built")
            self._cache = None  # what it holds may be the cause
            self._broken = self._failure("snapshot", error, self._broken)
            snapshot = replace(self.snapshot or Snapshot(now), due=None)
        return self._mark(snapshot)

    def _mark(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the engine's failure in it, and among its sources."""
        failure = self._broken or self._lost
        sources = tuple(source for source in snapshot.sources if source.name != ENGINE)
        if failure is None:
            return snapshot if len(sources) == len(snapshot.sources) else replace(snapshot, sources=sources)
        health = SourceSeen(name=ENGINE, ok=False, detail=failure.text, at=failure.at)
        return replace(snapshot, sources=(health, *sources), failure=failure)

    def _failure(self, step: FailedStep, error: Exception, before: EngineFailure | None) -> EngineFailure:
        text = _error_text(error)
        if before is not None and before.step == step:
            return replace(before, error=text, count=before.count + 1)
        return EngineFailure(at=self._clock.now(), step=step, error=text)

    # ------------------------------------------------------------ sources

    def _is_known_health(self, event: Event) -> bool:
        if not isinstance(event, SourceSeen):
            return False
        health = (event.ok, event.detail)
        known = self._health.get(event.name)
        self._health[event.name] = health
        return health == known

    async def _supervise(self, source: Source) -> None:
        """Run a source; one that fails is reported and started again, later each time."""
        for attempt in count():
            try:
                await source.stream(self.emit, self._channel)
            except Exception as error:  # shown as the source's health; the others go on
                delay = _RETRY_DELAYS_S[min(attempt, len(_RETRY_DELAYS_S) - 1)]
                log.exception("source %s failed; it starts again in %g s", source.name, delay)
                self.emit([_failed_source(source.name, error, self._clock.now())])
                await asyncio.sleep(delay)
                log.info("source %s starts again", source.name)
            else:
                return

    # ------------------------------------------------------------ snapshots

    async def _wait_for_work(self) -> None:
        """Return when events arrive, or when the newest snapshot is due to change without any."""
        if self._due is None:
            await self._arrived.wait()
            return
        arrived = asyncio.ensure_future(self._arrived.wait())
        due = asyncio.ensure_future(self._clock.sleep_until(self._due))
        try:
            await asyncio.wait((arrived, due), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in (arrived, due):
                waiting.cancel()

    async def _drain(self) -> None:
        """Reduce what has arrived, in batches, so that other tasks run between them."""
        self._arrived.clear()
        self._urgent.clear()
        while self._pending:
            batch = self._pending[:_BATCH_EVENTS]
            self._pending = self._pending[_BATCH_EVENTS:]
            if len(self._pending) <= _MAX_PENDING_EVENTS:
                self._channel.has_room.set()
            self._reduce(batch)
            try:
                if self._observer is not None:
                    self._observer(batch)
            except Exception as error:
                log.exception("the observer failed")
                self._lost = self._failure("observe", error, self._lost)
            await asyncio.sleep(0)

    async def _publish(self) -> None:
        """Publish snapshots: at once after a pause, less often while events keep coming."""
        loop = asyncio.get_running_loop()
        due = 0.0
        while True:
            await self._wait_for_work()
            began, spent = loop.time(), time.thread_time()
            await self._drain()
            snapshot = self._next_snapshot()
            self._due = snapshot.due
            if not snapshot.differs_from(self.snapshot):
                continue
            self._latest.value = snapshot
            await asyncio.sleep(_MIN_INTERVAL_S)  # meanwhile it is drawn
            interval = min(_COST_FACTOR * (time.thread_time() - spent), _MAX_INTERVAL_S)
            due = max(due, began - _SAVED_S) + interval
            if (rest := due - loop.time()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(rest):
                        await self._urgent.wait()


def _reduce_all(fleet: Fleet, events: Sequence[Event]) -> Fleet:
    """Return the fleet after these events; a replaced fleet makes those before it void."""
    from agentdash.engine.reduce.fleet import reduce  # noqa: PLC0415 - the first picture comes first

    for i in range(len(events) - 1, -1, -1):
        if isinstance(replaced := events[i], FleetReplaced):
            return reduce(replaced.fleet, events[i + 1 :])
    return reduce(fleet, events)


def _is_urgent(event: Event) -> bool:
    return isinstance(event, _URGENT) or (isinstance(event, CallStarted) and event.escalation is not None)


def _error_text(error: Exception) -> str:
    return clean_line(f"{type(error).__name__}: {error}", _MAX_ERROR_CHARS)


def _failed_source(name: str, error: Exception, at: float) -> SourceSeen:
    return SourceSeen(at=at, name=name, ok=False, detail=_error_text(error))


@contextmanager
def _timed(step: str, size: int) -> Iterator[None]:
    """Write a slow step to the debug log."""
    start = time.perf_counter()
    yield
    if (took := time.perf_counter() - start) > _SLOW_STEP_S:
        log.warning("slow step: %s took %.0f ms (%d)", step, took * 1000, size)


# ------------------------------------------------------------
# The latest value of something, with a wait for its next change


T = TypeVar("T")


class LatestValue(Generic[T]):
    """The newest value, and a wait for the next one."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._changed = asyncio.Event()

    @property
    def value(self) -> T:
        """Return the newest value."""
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        self._value = value
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self, value: T) -> T:
        """Return the newest value as soon as it is not `value`; a slow reader misses those between."""
        while self._value is value:
            await self._changed.wait()
        return self._value


class LatestFleet(LatestValue[Fleet]):
    """The newest fleet of a hub, and whether its sources may emit more."""

    def __init__(self) -> None:
        super().__init__(Fleet())
        self.has_room = asyncio.Event()
        """Cleared while too many events wait to be reduced."""
        self.has_room.set()

    async def wait_for_room(self) -> None:
        """Return when few events wait to be reduced."""
        await self.has_room.wait()


# ------------------------------------------------------------
# Run a hub, and services beside it, for as long as a block runs
# The dashboard and all headless commands use this runner.


Service = tuple[str, Callable[[], Coroutine[Any, Any, None]]]
"""A name, and what runs beside the hub under it."""


@asynccontextmanager
async def running(
    hub: Hub, *services: Service, after: Callable[[], Awaitable[object]] | None = None
) -> AsyncIterator[None]:
    """Run a hub and its services while the block runs.

    The services are cancelled before the hub, the last one first: they read its snapshots. A service that
    fails is reported as a failed source of the snapshot; the hub's own failure is part of its last snapshot.

    Args:
        after: awaited before each of them starts.
    """

    async def serve(name: str, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if after is not None:
            await after()
        try:
            await start()
        except Exception as error:
            log.exception("%s failed", name)
            hub.emit([_failed_source(name, error, hub.now())])

    everything: tuple[Service, ...] = (("hub", hub.run), *services)
    tasks = [asyncio.create_task(serve(*service), name=service[0]) for service in everything]
    try:
        yield
    finally:
        for task in reversed(tasks):
            task.cancel()
            await asyncio.wait((task,))
            if not task.cancelled():
                task.exception()  # retrieved: it is in the snapshot and in the debug log


def sound(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot.

    Raises:
        EngineFailedError: it is old or incomplete.
    """
    if snapshot.failure is not None:
        raise EngineFailedError(snapshot.failure)
    return snapshot


async def sound_snapshots(hub: Hub) -> AsyncIterator[Snapshot]:
    """Yield the snapshots of a running hub.

    Raises:
        EngineFailedError: a snapshot is old or incomplete.
    """
    async for snapshot in hub.snapshots():
        yield sound(snapshot)
