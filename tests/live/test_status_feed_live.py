"""The status feed of a real Codex 0.169: what it says, how soon, and that nobody notices us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from agentdash.agents.codex.status_feed import ControlFeed
from agentdash.collect.clock import SystemClock
from agentdash.model.events import Event, SourceSeen, StatusPushed
from tests.live.codex import PATIENCE, Lab, until
from tests.live.conftest import OpenLab

MENU = "Would you like to run the following command?"
ASK = [{"run": "touch allowed", "escalate": "May I?"}, {"say": "all done"}]


class Listener:
    """A running feed and what it has said."""

    def __init__(self, home: Path) -> None:
        self.feed = ControlFeed(home, SystemClock())
        self.events: list[Event] = []
        self.spoken_of: set[str] = set()
        self._news = asyncio.Event()

    def emit(self, events: Sequence[Event]) -> None:
        self.events += events
        self.spoken_of |= {event.thread for event in events if isinstance(event, StatusPushed)}
        self._news.set()

    async def hears(self, thread: str, status: str, *flags: str) -> None:
        """Returns when a thread is said to be at this; what was said before that is forgotten."""
        async with asyncio.timeout(PATIENCE):
            while True:
                while self.events:
                    match self.events.pop(0):
                        case StatusPushed() as said if (said.thread, said.status, said.flags) == (
                            thread,
                            status,
                            flags,
                        ):
                            return
                self._news.clear()
                await self._news.wait()


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


async def test_an_approval_is_pushed_and_answering_it_still_works(codex: OpenLab) -> None:
    lab = codex({"ask": ASK})
    pane = await lab.tui()
    async with listening(lab) as listener:
        await until(lambda: listener.feed.connected, "the feed")
        pane.submit("[[ask]] go")
        await until(lab.threads, "a rollout")
        [thread] = lab.threads()
        await pane.shows(MENU)
        async with asyncio.timeout(1):
            await listener.hears(thread, "active", "waitingOnApproval")
        assert not (lab.workspace / "allowed").exists()
        await pane.answer(MENU, "y")
        await listener.hears(thread, "active")
        await listener.hears(thread, "idle")
        await pane.shows("all done")
        assert (lab.workspace / "allowed").exists()
        assert listener.feed.unanswered == 0
        assert listener.spoken_of == {thread}  # not of the helper that finds a title


async def test_who_comes_late_is_told_what_is_waiting(codex: OpenLab) -> None:
    lab = codex({"ask": ASK})
    feed = ControlFeed(lab.home, SystemClock())
    assert await feed.poll(5.0) == []  # no daemon yet
    pane = await lab.tui()
    pane.submit("[[ask]] go")
    await pane.shows(MENU)
    [thread] = lab.threads()
    assert await feed.poll(5.0, timeout=PATIENCE) == [
        StatusPushed(at=5.0, thread=thread, status="active", flags=("waitingOnApproval",)),
        SourceSeen(at=5.0, name="codex feed", ok=True, detail="connected"),
    ]
    lab.run_tmux("kill-session", "-t", pane.id)  # the prompt outlives its TUI
    assert StatusPushed(
        at=6.0, thread=thread, status="active", flags=("waitingOnApproval",)
    ) in await feed.poll(6.0, timeout=PATIENCE)


async def test_a_child_spawned_while_we_listen_does_not_get_us_as_a_subscriber(codex: OpenLab) -> None:
    """Codex subscribes whoever is connected to the threads it spawns: it must not have to ask us, nor to keep the child for us."""
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
        await listener.hears(child, "active")
        lab.model.release("child")
        await listener.hears(child, "active", "waitingOnApproval")
        await pane.answer(MENU, "y")
        await listener.hears(child, "idle")
        await pane.shows("all done")
        assert listener.feed.unanswered == 0


async def test_a_question_is_pushed(codex: OpenLab) -> None:
    options = [{"label": "Left", "description": "this way"}, {"label": "Right", "description": "that way"}]
    question = {"id": "way", "header": "Way", "question": "Which way?", "options": options}
    script = {"q": [{"tool": "request_user_input", "args": {"questions": [question]}}, {"say": "all done"}]}
    lab = codex(script, config="features.default_mode_request_user_input = true")
    pane = await lab.tui()
    async with listening(lab) as listener:
        pane.submit("[[q]] go")
        await pane.shows("Which way?")
        [thread] = lab.threads()
        await listener.hears(thread, "active", "waitingOnUserInput")
        await pane.answer("enter to submit answer", "Enter")
        await listener.hears(thread, "idle")


async def test_an_exec_has_no_feed(codex: OpenLab) -> None:
    lab = codex({"slow": [{"hold": "end"}, {"say": "all done"}]})
    pane = lab.exec("[[slow]] go")
    await until(lambda: lab.model.requests, "a request to the model")
    assert await ControlFeed(lab.home, SystemClock()).poll(5.0) == []
    lab.model.release("end")
    await pane.shows("all done")
