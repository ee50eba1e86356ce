"""Sources in, snapshots out: who is told when, and what belongs together is shown together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agentdash.collect.clock import SystemClock
from agentdash.collect.live import ScreenSource
from agentdash.engine.hub import Hub
from agentdash.engine.latest import LatestValue
from agentdash.model import events as e
from agentdash.model.fleet import Fleet
from agentdash.model.source import Emit
from agentdash.model.states import State
from tests.unit.story import PANE, pane, polled, process

IDLE = (
    "",
    "  ┃",
    '  ┃  Ask anything... "Fix a TODO in the codebase"',
    "  ┃",
    "  ┃  Build  Big Pickle OpenCode Zen",
    "  ╹▀▀▀▀▀▀▀▀▀▀",
    "",
)


class NotificationState:
    """A source that says what it is told to."""

    name = "told"

    def __init__(self) -> None:
        self.events: asyncio.Queue[Sequence[e.Event]] = asyncio.Queue()

    async def poll(self, fleet: Fleet) -> Sequence[e.Event]:
        del fleet
        return ()

    async def stream(self, emit: Emit, channel: LatestValue[Fleet]) -> None:
        del channel
        while True:
            emit(await self.events.get())


async def test_a_board_wakes_who_waits_for_something_else() -> None:
    channel, first, second = LatestValue(Fleet()), Fleet(), Fleet(processes_at=1.0)
    channel.value = first
    waiting = asyncio.create_task(channel.wait_for_change(first))
    await asyncio.sleep(0)
    assert not waiting.done()
    channel.value = first
    await asyncio.sleep(0)
    assert not waiting.done()
    channel.value = second
    assert await waiting is second
    assert await channel.wait_for_change(first) is second


async def test_a_screen_and_what_it_is_read_as_are_shown_at_once(tmp_path: Path) -> None:
    clock, source = SystemClock(), NotificationState()
    hub = Hub([source, ScreenSource(clock, tmp_path)], clock)
    running = asyncio.create_task(hub.run())
    try:
        opencode = process(11, 10, started=85.0, agent="opencode")
        source.events.put_nowait(
            [
                pane(),
                process(10, started=80.0),
                opencode,
                *polled(100),
                e.PaneDrawn(at=100.0, key=PANE, screen=IDLE),
            ]
        )
        async with asyncio.timeout(20):
            (worker,) = (await anext(hub.snapshots())).workers
        assert (worker.agent.name, worker.state) == ("opencode", State.WAITING_INPUT)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
