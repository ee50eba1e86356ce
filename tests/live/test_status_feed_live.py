"""The status feed of a real Codex 0.169: its events, and no effect on Codex."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from agentdash.agents.codex.status_feed import StatusFeed
from agentdash.collect.clock import SystemClock
from agentdash.model.events import Event, SourceSeen, StatusPushed
from tests.live.codex import MENU, Lab
from tests.live.conftest import OpenLab
from tests.live.patience import scaled, until, within

ASK = [{"run": "touch allowed", "escalate": "May I?"}, {"say": "all done"}]


class Listener:
    """A running feed and its events."""

    def __init__(self, home: Path) -> None:
        self.feed = StatusFeed(home, SystemClock())
        self.events: list[Event] = []
        self.threads: set[str] = set()
        self._received = asyncio.Event()

    def emit(self, events: Sequence[Event]) -> None:
        self.events += events
        self.threads |= {event.thread for event in events if isinstance(event, StatusPushed)}
        self._received.set()

    async def receives(self, thread: str, status: str, *flags: str) -> None:
        """Wait for a status of a thread, and drop the events before it."""
        async with within():
            while True:
                while self.events:
                    match self.events.pop(0):
                        case StatusPushed() as event if (event.thread, event.status, event.flags) == (
                            thread,
                            status,
                            flags,
                        ):
                            return
                self._received.clear()
                await self._received.wait()


@asynccontextmanager
async def listening(lab: Lab) -> AsyncIterator[Listener]:
    listener = Listener(lab.home)
    task = asyncio.create_task(listener.feed.stream(listener.emit))
    try:
        yield listener
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_late_connection_gets_pending_approvals(codex: OpenLab) -> None:
    lab = codex({"ask": ASK})
    feed = StatusFeed(lab.home, SystemClock())
    assert await feed.poll(5.0) == []  # no daemon yet
    pane = await lab.tui()
    pane.submit("[[ask]] go")
    await pane.shows(MENU)
    [thread] = lab.threads()
    asking = StatusPushed(
        at=5.0, thread=thread, status="active", flags=("waitingOnApproval",), cwd=str(lab.workspace)
    )
    assert await feed.poll(5.0, timeout=scaled(30)) == [
        asking,
        SourceSeen(at=5.0, name="codex feed", ok=True, detail="connected"),
    ]
    lab.run_tmux("kill-session", "-t", pane.id)  # the prompt outlives its TUI
    assert msgspec.structs.replace(asking, at=6.0) in await feed.poll(6.0, timeout=scaled(30))


async def test_connection_is_no_subscriber_of_a_spawned_child(codex: OpenLab) -> None:
    """Codex subscribes clients to spawned threads; it must not ask agentdash for approvals."""
    lab = codex(
        {
            "parent": [{"spawn": ["child"]}, {"wait": True}, {"say": "all done"}],
            "child": [{"hold": "child"}, *ASK],
        }
    )
    pane = await lab.tui()
    async with listening(lab) as listener:
        await until(lambda: listener.feed.connected, "the feed")
        pane.submit("[[parent]] go")
        await until(lambda: any(lab.threads().values()), "a child")
        [child] = (thread for thread, parent in lab.threads().items() if parent)
        await listener.receives(child, "active")
        lab.model.release("child")
        await listener.receives(child, "active", "waitingOnApproval")
        await pane.answer(MENU, "y")
        await listener.receives(child, "idle")
        await pane.shows("all done")
