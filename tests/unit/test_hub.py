"""The hub: sources in, snapshots out; failures of sources and of the engine are part of the snapshot."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from unittest.mock import AsyncMock

import pytest

from agentdash.collect.clock import SystemClock
from agentdash.collect.sources.workers import ScreenReadingSource
from agentdash.engine import hub as hub_module
from agentdash.engine import snapshot as snapshot_module
from agentdash.engine.hub import Hub, running
from agentdash.engine.reduce import fleet as fleet_module
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.source import Emit, FleetChannel
from agentdash.model.states import State
from agentdash.model.worker import Snapshot
from tests.unit.story import PANE, T, begun, called, done, pane, polled, process

IDLE = ('  ┃  Ask anything... "Fix a TODO in the codebase"', "  ╹▀▀▀▀▀▀▀▀▀▀")
PATIENCE_S = 20


class QueueSource:
    """A source that emits what a test puts into its queue; an exception in the queue is raised."""

    def __init__(self, name: str = "queue") -> None:
        self.name = name
        self.queue: asyncio.Queue[Sequence[e.Event] | Exception] = asyncio.Queue()
        self.starts = 0
        self.ended: list[str] = []

    async def poll(self, fleet: Fleet) -> Sequence[e.Event]:
        del fleet
        return ()

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        del channel
        self.starts += 1
        try:
            while True:
                item = await self.queue.get()
                if isinstance(item, Exception):
                    raise item
                emit(item)
        finally:
            self.ended.append(self.name)


def health(snapshot: Snapshot) -> dict[str, tuple[bool, str]]:
    return {source.name: (source.ok, source.detail) for source in snapshot.sources}


@asynccontextmanager
async def running_hub(source: QueueSource) -> AsyncIterator[tuple[Hub, AsyncIterator[Snapshot]]]:
    hub = Hub([source], SystemClock())
    async with running(hub), asyncio.timeout(PATIENCE_S), aclosing(hub.snapshots()) as snapshots:
        yield hub, snapshots


async def until(snapshots: AsyncIterator[Snapshot], accept: object) -> Snapshot:
    async for snapshot in snapshots:
        if accept(snapshot):
            return snapshot
    raise AssertionError("the snapshots ended")


async def test_hub_and_services_start_after_what_they_wait_for() -> None:
    source, painted, served = QueueSource(), asyncio.Event(), asyncio.Event()

    async def serve() -> None:
        served.set()

    hub = Hub([source], SystemClock())
    async with running(hub, ("service", serve), after=painted.wait), asyncio.timeout(PATIENCE_S):
        source.queue.put_nowait([e.SourceSeen(at=1.0, name="fake", ok=True, detail="fine")])
        for _ in range(10):
            await asyncio.sleep(0)
        assert (hub.snapshot, served.is_set(), source.queue.qsize()) == (None, False, 1)
        painted.set()
        assert health(await anext(hub.snapshots()))["fake"] == (True, "fine")
        await served.wait()


async def test_a_screen_and_its_reading_are_in_one_snapshot() -> None:
    clock, source = SystemClock(), QueueSource()
    hub = Hub([source, ScreenReadingSource(clock)], clock)
    async with running(hub), asyncio.timeout(PATIENCE_S):
        opencode = process(11, 10, started=85.0, agent="opencode")
        drawn = e.PaneDrawn(at=100.0, key=PANE, screen=IDLE)
        source.queue.put_nowait([pane(), process(10, started=80.0), opencode, *polled(100), drawn])
        (worker,) = (await anext(hub.snapshots())).workers
        assert (worker.agent.name, worker.state) == ("opencode", State.WAITING_INPUT)


class FastSource(QueueSource):
    """A source that can read faster than its events are reduced."""

    batches = 100
    batch_events = 1_000
    emitted = 0

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        for _ in range(self.batches):
            await channel.wait_for_room()
            lines = range(self.emitted, self.emitted + self.batch_events)
            emit([e.LineSkipped(thread=T, at=100, what="malformed", detail=str(line)) for line in lines])
            self.emitted += self.batch_events


async def test_a_source_waits_for_what_it_has_emitted() -> None:
    reduced: list[str] = []
    waiting: list[int] = []
    source = FastSource()

    def observe(events: Sequence[e.Event]) -> None:
        waiting.append(source.emitted - len(reduced))
        reduced.extend(event.detail for event in events if isinstance(event, e.LineSkipped))

    hub = Hub([source], SystemClock(), observer=observe)
    total = source.batches * source.batch_events
    async with running(hub), asyncio.timeout(PATIENCE_S):
        async for snapshot in hub.snapshots():
            if len(reduced) == total and snapshot is hub.snapshot:
                break
    assert reduced == [str(number) for number in range(total)]
    assert max(waiting) <= hub_module._MAX_PENDING_EVENTS + source.batch_events + hub_module._BATCH_EVENTS
    assert hub.fleet.threads[T].skipped == (("malformed", total),)


# ---------------------------------------------------------------- sources that fail


async def test_a_failed_source_is_shown_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "_RETRY_DELAYS_S", (0.01, 0.02))
    source = QueueSource()
    async with running_hub(source) as (_, snapshots):
        source.queue.put_nowait(ValueError("torn"))
        failed = await until(snapshots, lambda s: "queue" in health(s))
        assert health(failed)["queue"] == (False, "ValueError: torn")
        source.queue.put_nowait(begun())
        restarted = await until(snapshots, lambda s: s.workers)
        assert [worker.id for worker in restarted.workers] == [T]
    assert source.starts == 2


async def test_a_source_that_fails_when_polled_does_not_hide_the_others() -> None:
    broken, files = QueueSource("broken"), QueueSource("files")
    broken.poll = AsyncMock(side_effect=OSError("no such device"))
    files.poll = AsyncMock(return_value=begun())
    snapshot = await Hub([broken, files], SystemClock()).once()
    assert health(snapshot)["broken"] == (False, "OSError: no such device")
    assert [worker.id for worker in snapshot.workers] == [T]
    assert snapshot.failure is None


# ---------------------------------------------------------------- engine failures


async def test_a_bad_event_costs_itself_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    real = fleet_module.reduce

    def reduce(fleet: Fleet, events: Sequence[e.Event]) -> Fleet:
        if any(isinstance(event, e.MessageLogged) for event in events):
            raise KeyError("message")
        return real(fleet, events)

    monkeypatch.setattr(fleet_module, "reduce", reduce)
    source = QueueSource()
    async with running_hub(source) as (hub, snapshots):
        source.queue.put_nowait([*begun(), called("c1", "make")])
        snapshot = await until(snapshots, lambda s: s.failure)
        assert snapshot.failure is not None
        assert snapshot.failure.text == "KeyError: 'message' (1 events lost)"
        assert health(snapshot)["engine"] == (False, "KeyError: 'message' (1 events lost)")
        assert [call.text for call in snapshot.workers[0].calls] == ["make"]
        source.queue.put_nowait([done()])
        later = await until(snapshots, lambda s: s.workers and s.workers[0].moments[-1].text != "make")
        assert later.failure is not None
        assert hub.snapshot is later


async def test_a_snapshot_that_cannot_be_built_is_shown_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    real, broken = snapshot_module.build_snapshot, [False]

    def build(*args: object, settles: bool) -> Snapshot:
        if broken[0]:
            raise KeyError("layer")
        return real(*args, settles=settles)

    monkeypatch.setattr(snapshot_module, "build_snapshot", build)
    source = QueueSource()
    async with running_hub(source) as (_, snapshots):
        source.queue.put_nowait(begun())
        await until(snapshots, lambda s: s.workers)
        broken[0] = True
        source.queue.put_nowait([called()])
        failed = await until(snapshots, lambda s: s.failure)
        assert failed.failure is not None
        assert (failed.failure.step, failed.failure.error) == ("snapshot", "KeyError: 'layer'")
        assert [worker.id for worker in failed.workers] == [T]
        assert not health(failed)["engine"][0]
        broken[0] = False
        source.queue.put_nowait([done()])
        healthy = await until(snapshots, lambda s: s.failure is None)
        assert "engine" not in health(healthy)


async def test_a_hub_that_stops_publishes_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hub, "_wait_for_work", AsyncMock(side_effect=RuntimeError("loop")))
    hub = Hub([QueueSource()], SystemClock())
    async with running(hub), asyncio.timeout(PATIENCE_S):
        snapshot = await anext(hub.snapshots())
    assert snapshot.failure is not None
    assert snapshot.failure.step == "stopped"


async def test_a_failed_service_is_a_failed_source() -> None:
    service = AsyncMock(side_effect=PermissionError("read-only"))
    hub = Hub([QueueSource()], SystemClock())
    async with running(hub, ("status file", service)), asyncio.timeout(PATIENCE_S):
        snapshot = await anext(hub.snapshots())
    assert health(snapshot)["status file"] == (False, "PermissionError: read-only")


# ---------------------------------------------------------------- timing and order


@pytest.mark.parametrize(
    ("event", "urgent"), [(done(), True), (called("c2", ask=True), True), (called("c2"), False)]
)
async def test_urgent_events_do_not_wait_for_the_longer_interval(
    monkeypatch: pytest.MonkeyPatch, event: e.Event, urgent: bool
) -> None:
    limits = {"_MIN_INTERVAL_S": 0.001, "_COST_FACTOR": 1e9, "_MAX_INTERVAL_S": 3600.0, "_SAVED_S": 0.0}
    for name, value in limits.items():
        monkeypatch.setattr(hub_module, name, value)
    source = QueueSource()
    async with running_hub(source) as (_, snapshots):
        source.queue.put_nowait(begun())
        first = await until(snapshots, lambda s: s.workers)
        await asyncio.sleep(0.05)
        source.queue.put_nowait([event])
        if urgent:
            assert await anext(snapshots) is not first
        else:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await anext(snapshots)


async def test_cancelling_ends_services_before_sources() -> None:
    source = QueueSource()

    async def service() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            source.ended.append("service")

    hub = Hub([source], SystemClock())
    async with running(hub, ("service", service)):
        await asyncio.sleep(0.01)
    assert source.ended == ["service", "queue"]
