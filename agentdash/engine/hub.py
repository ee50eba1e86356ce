"""Runs sources, folds what they say, and gives out snapshots: the one place where time and facts meet.

Sources make events; `fold` and `picture` are pure. Live and replay differ in the sources and the clock that a hub is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final

from agentdash.engine.latest import LatestValue
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import STALLED_AFTER_S, WorkerCache, build_snapshot
from agentdash.model.clock import Clock
from agentdash.model.events import Event, ScreenRead, SessionSeen, SourceSeen, StatusPushed, TurnEnded
from agentdash.model.fleet import Fleet, FleetReplaced
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Source
from agentdash.model.worker import Snapshot

_SPACING, _SUSTAINED = 0.1, 0.25
"""Seconds between two snapshots, at least; and while they do not stop coming. News after a pause is drawn at once."""
_BURST: Final = 5.0
"""Snapshots that may follow each other at the shorter distance."""
_URGENT: Final = (StatusPushed, ScreenRead, SessionSeen, TurnEnded)
"""Events that may mean that a worker needs somebody: they do not wait for the longer distance."""
_SLICE: Final = 2_000
"""Events folded before the loop gets its turn again."""
_RETRY: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before a source that failed is started again."""


class Hub:
    """Sources in, snapshots out.

    Args:
        sources: where events come from; for `once` in the order in which they are asked.
        clock: what tells the time.
        stalled_after: seconds without a sign of life after which a worker that runs has stalled.
        observer: is told what was folded. It must be quick.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        clock: Clock,
        *,
        stalled_after: float = STALLED_AFTER_S,
        observer: Callable[[Sequence[Event]], None] | None = None,
    ) -> None:
        self._sources, self._clock = sources, clock
        self._stalled_after, self._observer = stalled_after, observer
        self._pending: list[Event] = []
        self._news, self._urgent = asyncio.Event(), asyncio.Event()
        self._memo = WorkerCache()
        self._due: float | None = None
        """When the newest picture will be another one by itself."""
        self._health: dict[str, tuple[bool, str]] = {}
        """What each source said last of itself."""
        self._channel = LatestValue(Fleet())
        self._shown: LatestValue[Snapshot | None] = LatestValue(None)

    @property
    def fleet(self) -> Fleet:
        """All that is known."""
        return self._channel.value

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest picture of it."""
        return self._shown.value

    def emit(self, events: Sequence[Event]) -> None:
        """Takes what a source says. That it is as well as before is no news."""
        if news := [event for event in events if not self._is_old(event)]:
            self._pending.extend(news)
            self._news.set()
            if any(isinstance(event, _URGENT) for event in news):
                self._urgent.set()

    async def once(self) -> Snapshot:
        """Asks every source once and judges what they said."""
        for source in self._sources:
            try:
                self._channel.value = _after(self.fleet, await source.poll(self.fleet))
            except Exception as error:  # a broken source must not take the others' facts away
                self._channel.value = reduce(self.fleet, [_failed(source, error, self._clock.now())])
        return self._build_snapshot()

    async def run(self) -> None:
        """Runs the sources and draws snapshots until cancelled."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(self._keep(source), name=source.name)
            group.create_task(self._draw(), name="draw")

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        """Snapshots as they come; whoever is slow gets the newest and misses those between."""
        last: Snapshot | None = None
        while True:
            if (last := await self._shown.wait_for_change(last)) is not None:
                yield last

    def _build_snapshot(self) -> Snapshot:
        return build_snapshot(self.fleet, self._clock.now(), self._memo, self._stalled_after)

    async def _something(self) -> None:
        """Returns at the next news, or when the picture will change by itself."""
        if self._due is None:
            await self._news.wait()
            return
        news, due = (
            asyncio.ensure_future(self._news.wait()),
            asyncio.ensure_future(self._clock.sleep_until(self._due)),
        )
        try:
            await asyncio.wait((news, due), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in (news, due):
                waiting.cancel()

    def _is_old(self, event: Event) -> bool:
        if not isinstance(event, SourceSeen):
            return False
        now = (event.ok, event.detail)
        before, self._health[event.name] = self._health.get(event.name), now
        return now == before

    async def _keep(self, source: Source) -> None:
        """Runs a source; one that fails says so and is started again, later each time."""
        for attempt in count():
            try:
                await source.stream(self.emit, self._channel)
            except Exception as error:  # shown as the source's health; the others go on
                self.emit([_failed(source, error, self._clock.now())])
                await asyncio.sleep(_RETRY[min(attempt, len(_RETRY) - 1)])
            else:
                return

    async def _draw(self) -> None:
        loop = asyncio.get_running_loop()
        credit, drawn = _BURST, loop.time()
        while True:
            await self._something()
            self._news.clear()
            self._urgent.clear()
            while self._pending:
                part, self._pending = self._pending[:_SLICE], self._pending[_SLICE:]
                self._channel.value = _after(self.fleet, part)
                if self._observer is not None:
                    self._observer(part)
                await asyncio.sleep(0)
            snapshot = self._build_snapshot()
            changed = self.snapshot is None or (snapshot.workers, snapshot.sources) != (
                self.snapshot.workers,
                self.snapshot.sources,
            )
            self._due = snapshot.due
            if changed:
                self._shown.value = snapshot
                credit = min(_BURST, credit + (loop.time() - drawn) / _SUSTAINED) - 1
                drawn = loop.time()
                await asyncio.sleep(_SPACING)
                if credit <= 0:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_SUSTAINED - _SPACING):
                            await self._urgent.wait()


def _after(fleet: Fleet, events: Sequence[Event]) -> Fleet:
    """What is known after these events."""
    for i in range(len(events) - 1, -1, -1):
        if isinstance(known := events[i], FleetReplaced):
            return reduce(known.fleet, events[i + 1 :])
    return reduce(fleet, events)


def _failed(source: Source, error: Exception, at: float) -> SourceSeen:
    return SourceSeen(
        at=at, name=source.name, ok=False, detail=clean_line(f"{type(error).__name__}: {error}", 200)
    )
