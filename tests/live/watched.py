"""A hub over a lab, and waiting for what it shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.model.fleet import Fleet
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from tests.live.codex import PATIENCE, Lab

Wanted = Callable[[Worker], bool]


class Watched:
    """A running hub over a lab."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    @property
    def fleet(self) -> Fleet:
        """All that is known."""
        return self._hub.fleet

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest one."""
        return self._hub.snapshot

    async def until(self, wanted: Wanted) -> Worker:
        """The first worker, in any snapshot from now on, that is as wanted."""
        return (await self.at(wanted))[0]

    async def at(self, wanted: Wanted) -> tuple[Worker, float]:
        """Likewise, with the time of the snapshot."""
        last: Snapshot | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                async for last in self._hub.snapshots():
                    if (found := next((w for w in last.workers if wanted(w)), None)) is not None:
                        return found, last.at
        except TimeoutError:
            seen = (
                [(w.id, str(w.state), w.assessment.why, w.sandbox.verdict) for w in last.workers]
                if last
                else []
            )
            raise AssertionError(f"not seen; at the end: {seen}, {last and last.sources}") from None
        raise AssertionError("the hub ended")

    @contextmanager
    def states(self, whose: Wanted) -> Iterator[list[State]]:
        """Every state of a worker that is shown while this is open, one after the other."""
        shown: list[State] = []

        async def listen() -> None:
            async for snapshot in self._hub.snapshots():
                shown.extend(w.state for w in snapshot.workers if whose(w) and shown[-1:] != [w.state])

        listening = asyncio.ensure_future(listen())
        try:
            yield shown
        finally:
            listening.cancel()


@asynccontextmanager
async def watching(lab: Lab) -> AsyncIterator[Watched]:
    clock = SystemClock()
    hub = Hub(live_sources(Config(codex_home=lab.home, socket_paths=(lab.tmux,)), clock), clock)
    running = asyncio.create_task(hub.run())
    try:
        yield Watched(hub)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
