"""A hub over a lab, and waiting for its snapshots."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.model.fleet import Fleet
from agentdash.model.states import State
from agentdash.model.worker import Snapshot, Worker
from agentdash.store.journal import Recorder
from tests.live.patience import within
from tests.live.tmux import ScriptedLab, TmuxPane

Wanted = Callable[[Worker], bool]


def is_observed(worker: Worker) -> bool:
    """Return whether a command of a worker was seen alive."""
    return worker.sandbox.got.sandboxed is not None


def kinds(worker: Worker) -> set[str]:
    """Return the kinds of its findings."""
    return {str(finding.kind) for finding in worker.sandbox.findings}


def is_judged(worker: Worker) -> bool:
    """Return whether a worker has a verdict: first what was asked for is read, or found to be unreadable."""
    return worker.sandbox.verdict != "unverified"


def in_pane(pane: TmuxPane, *states: State) -> Wanted:
    """Return whether a worker runs in a pane, in one of these states where any are given."""
    return lambda worker: (
        worker.pane is not None and worker.pane.key.id == pane.id and worker.state in (states or State)
    )


def thread_in(*states: State) -> Wanted:
    """Return whether a worker is a Codex thread in one of these states.

    A pane has a row of its own, with a state and without a verdict, until the thread in it is known.
    """
    return lambda worker: worker.kind == "codex-thread" and worker.state in states


class Watched:
    """A running hub over a lab."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    @property
    def fleet(self) -> Fleet:
        """Return the state of the fleet."""
        return self._hub.fleet

    @property
    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return self._hub.snapshot

    async def until(self, *wanted: Wanted, **values: object) -> Worker:
        """Wait for a snapshot with a worker that is as wanted; return the worker.

        Args:
            wanted: all of these hold of it.
            values: of its fields, or of those of its sandbox.
        """

        def fits(worker: Worker) -> bool:
            found = {name: getattr(worker, name, getattr(worker.sandbox, name, None)) for name in values}
            return found == values and all(each(worker) for each in wanted)

        snapshot = await self.until_snapshot(lambda each: any(map(fits, each.workers)))
        return next(filter(fits, snapshot.workers))

    async def until_snapshot(
        self, wanted: Callable[[Snapshot], bool], seen: list[Snapshot] | None = None
    ) -> Snapshot:
        """Wait for a snapshot that is as wanted, and return it; `seen` gets all until then."""
        last: Snapshot | None = None
        try:
            async with within():
                async for last in self._hub.snapshots():
                    if seen is not None:
                        seen.append(last)
                    if wanted(last):
                        return last
        except TimeoutError:
            workers = last.workers if last else ()
            states = [(w.id, str(w.state), w.assessment.why, w.sandbox.verdict, w.links) for w in workers]
            raise AssertionError(f"not seen; the last snapshot: {states}, {last and last.sources}") from None
        raise AssertionError("the hub ended")

    @contextmanager
    def states(self, wanted: Wanted) -> Iterator[list[State]]:
        """Collect the states of a worker in the snapshots of this context, in order."""
        shown: list[State] = []

        async def listen() -> None:
            async for snapshot in self._hub.snapshots():
                shown.extend(w.state for w in snapshot.workers if wanted(w) and shown[-1:] != [w.state])

        listening = asyncio.ensure_future(listen())
        try:
            yield shown
        finally:
            listening.cancel()


@asynccontextmanager
async def watching_config(config: Config, journal: Path | None = None) -> AsyncIterator[Watched]:
    """Run a hub with the live sources of a configuration, and record it if there is a directory for it."""
    clock = SystemClock()
    if journal is None:
        hub = Hub(live_sources(config, clock), clock)
    else:
        recorder = Recorder(journal, clock)
        hub = Hub([*live_sources(config, clock), recorder], clock, observer=recorder.record)
    running = asyncio.create_task(hub.run())
    try:
        yield Watched(hub)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@asynccontextmanager
async def watching(lab: ScriptedLab, journal: Path | None = None) -> AsyncIterator[Watched]:
    """Run a hub over a lab, and record it if there is a directory for it."""
    config = Config(codex_home=lab.home, claude_home=lab.claude_home, socket_paths=(lab.tmux,))
    async with watching_config(config, journal) as watched:
        yield watched
