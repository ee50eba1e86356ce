"""The status feed against an app-server of our own that records every frame it gets."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed

from agentdash.agents.codex import status_feed as control
from agentdash.agents.codex.status_feed import ALLOWED, ControlFeed
from agentdash.model.clock import Clock
from agentdash.model.events import Event, SourceSeen, StatusPushed
from agentdash.replay.clock import VirtualClock

MAIN = "01a1fb02-ccc5-7602-aebd-da70e407d204"
CHILD = "01a1fb04-bb29-7882-9a5a-2ebefc3cdefc"
TITLE = "01a1fb03-33ef-78a1-8be6-f63e8708b02d"
IDLE: dict[str, Any] = {"type": "idle"}
BUSY: dict[str, Any] = {"type": "active", "activeFlags": []}
WAITING: dict[str, Any] = {"type": "active", "activeFlags": ["waitingOnApproval"]}
AT = 1_795_212_653.774


def thread(ident: str, status: dict[str, Any], *, helper: bool = False) -> dict[str, Any]:
    """A thread as 0.169 describes one, shortened."""
    more = (
        {"ephemeral": True, "threadSource": "thread_title", "path": None}
        if helper
        else {"ephemeral": False, "threadSource": "user"}
    )
    return {
        "id": ident,
        "preview": "fix the tests",
        "status": status,
        "source": "vscode",
        "cwd": "/home/dev",
        "turns": [],
        **more,
    }


def load_thread(home: Path) -> None:
    """What Codex does on disk when its own client has begun with a thread."""
    lock = home / "thread-writer-locks" / f"{MAIN}.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.unlink(missing_ok=True)
    lock.touch()


class AppServer:
    """Answers what a feed may ask, and can be told to push, ask, babble, stay silent and die."""

    def __init__(self, home: Path, place: Path) -> None:
        self.threads: dict[str, dict[str, Any]] = {}
        self.frames: list[dict[str, Any]] = []
        self.greeting: str | bytes | None = None
        """Sent before anything else."""
        self.silent: set[str] = set()
        """Methods that get no answer."""
        self.calls = 0
        self.farewells: list[int | None] = []
        """How connections ended."""
        self._home, self._place = home, place / "socket"
        self._server: Server | None = None
        self._line: ServerConnection | None = None
        self._news = asyncio.Condition()

    async def start(self) -> None:
        self._server = await unix_serve(self._talk, str(self._place), compression=None)
        link = self._home / "app-server-control" / "app-server-control.sock"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(self._place)
        load_thread(self._home)

    async def die(self) -> None:
        """As a kill does: the link and the socket stay behind."""
        if self._server:
            self._server.close(close_connections=True)
            await self._server.wait_closed()
            if not self._place.exists():
                with socket.socket(socket.AF_UNIX) as left:
                    left.bind(str(self._place))

    async def push(self, method: str, **params: Any) -> None:
        await self.send({"method": method, "params": params, "emittedAtMs": round(AT * 1000)})

    async def change(self, ident: str, status: dict[str, Any]) -> None:
        self.threads[ident]["status"] = status
        await self.push("thread/status/changed", threadId=ident, status=status)

    async def send(self, message: dict[str, Any] | str | bytes) -> None:
        assert self._line
        await self._line.send(json.dumps(message) if isinstance(message, dict) else message)

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(condition)

    def methods(self) -> list[str]:
        return [frame["method"] for frame in self.frames]

    async def _talk(self, line: ServerConnection) -> None:
        self._line = line
        self.calls += 1
        if self.greeting is not None:
            await line.send(self.greeting)
        with suppress(ConnectionClosed):
            async for text in line:
                frame = json.loads(text)
                self.frames.append(frame)
                if (answer := self._answer(frame)) is not None:
                    await line.send(json.dumps({"id": frame["id"], **answer}))
                async with self._news:
                    self._news.notify_all()
        await line.wait_closed()
        self.farewells.append(line.close_code)
        async with self._news:
            self._line = None if self._line is line else self._line
            self._news.notify_all()

    def _answer(self, frame: dict[str, Any]) -> dict[str, Any] | None:
        if frame["method"] in self.silent or "id" not in frame:
            return None
        match frame["method"]:
            case "initialize":
                return {"result": {"userAgent": "codex-tui/0.169.0"}}
            case "thread/loaded/list":
                return {"result": {"data": list(self.threads), "nextCursor": None}}
            case "thread/read" if found := self.threads.get(frame["params"]["threadId"]):
                return {"result": {"thread": found}}
        return {"error": {"code": -32600, "message": "thread not loaded"}}

    @property
    def listening(self) -> bool:
        return self._line is not None


class Ear:
    """What a feed has said."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._news = asyncio.Event()

    def __call__(self, events: Sequence[Event]) -> None:
        assert events
        self.events += events
        self._news.set()

    async def hear(self, *wanted: Event) -> None:
        """Returns when the next events are these, in this order, whatever their time where it was not pushed."""
        async with asyncio.timeout(10):
            while len(self.events) < len(wanted):
                self._news.clear()
                await self._news.wait()
        heard, self.events = self.events[: len(wanted)], self.events[len(wanted) :]
        assert [timeless(event) for event in heard] == [timeless(event) for event in wanted]


def timeless(event: Event) -> tuple[Any, ...]:
    match event:
        case StatusPushed():
            return event.thread, event.status, event.flags, event.at == AT
        case SourceSeen():
            return event.name, event.ok, event.detail
    raise AssertionError(event)


def now(ident: str, status: Any, *flags: str, pushed: bool = False) -> StatusPushed:
    return StatusPushed(at=AT if pushed else 0.0, thread=ident, status=status, flags=flags)


def source(detail: str = "connected", *, ok: bool = True) -> SourceSeen:
    return SourceSeen(at=0.0, name="codex feed", ok=ok, detail=detail)


ABSENT = source("no app-server is running", ok=False)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[AppServer]:
    with tempfile.TemporaryDirectory() as short:  # sockets need short paths, and tmp_path has none
        server = AppServer(tmp_path, Path(short))
        await server.start()
        yield server
        await server.die()


@pytest.fixture
def clock() -> Clock:
    return VirtualClock(1_000.0, speed=100.0)  # so that a minute of waiting is over soon


@asynccontextmanager
async def running(feed: ControlFeed) -> AsyncIterator[Ear]:
    ear = Ear()
    task = asyncio.create_task(feed.stream(ear))
    try:
        yield ear
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_says_what_is_loaded_and_then_what_changes(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    server.threads = {MAIN: thread(MAIN, WAITING), CHILD: thread(CHILD, IDLE)}
    feed = ControlFeed(tmp_path, clock)
    async with running(feed) as ear:
        await ear.hear(source(), now(MAIN, "active", "waitingOnApproval"), now(CHILD, "idle"))
        assert (feed.connected, feed.problem) == (True, None)
        await server.change(MAIN, BUSY)
        await ear.hear(now(MAIN, "active", pushed=True))
        await server.change(MAIN, BUSY)  # not news
        await server.change(MAIN, {"type": "active", "activeFlags": ["waitingOnUserInput"]})
        await server.change(CHILD, {"type": "systemError"})
        await server.change(CHILD, {"type": "notLoaded"})
        await ear.hear(
            now(MAIN, "active", "waitingOnUserInput", pushed=True),
            now(CHILD, "system-error", pushed=True),
            now(CHILD, "not-loaded", pushed=True),
        )
    await server.wait_for(lambda: not server.listening)
    assert server.farewells == [1000]
    assert server.methods() == [
        "initialize",
        "initialized",
        "thread/loaded/list",
        "thread/read",
        "thread/read",
    ]


async def test_helpers_are_not_spoken_of(server: AppServer, tmp_path: Path, clock: Clock) -> None:
    server.threads = {TITLE: thread(TITLE, BUSY, helper=True)}
    other = TITLE.replace("01a1", "01a2")
    async with running(ControlFeed(tmp_path, clock)) as ear:
        await ear.hear(source())
        await server.wait_for(lambda: "thread/read" in server.methods())
        server.threads[other] = thread(other, IDLE, helper=True)
        await server.push("thread/started", thread=server.threads[other])
        for ident in (TITLE, other):
            await server.change(ident, WAITING)
            await server.change(ident, {"type": "notLoaded"})
        await server.push("thread/started", thread=thread(MAIN, IDLE))
        await ear.hear(now(MAIN, "idle", pushed=True))


async def test_a_thread_never_heard_of_is_asked_about_before_it_is_spoken_of(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    async with running(ControlFeed(tmp_path, clock)) as ear:
        await ear.hear(source())
        await server.wait_for(lambda: "thread/loaded/list" in server.methods())
        server.threads = {CHILD: thread(CHILD, IDLE), TITLE: thread(TITLE, IDLE, helper=True)}
        await server.change(TITLE, BUSY)
        await server.change(CHILD, WAITING)
        server.threads[CHILD]["status"] = IDLE  # the answer to the read is older than the push
        await ear.hear(now(CHILD, "active", "waitingOnApproval", pushed=True))
        gone = MAIN.replace("01a1", "01a2")
        await server.push("thread/status/changed", threadId=gone, status=IDLE)  # it cannot be read any more
        await ear.hear(now(gone, "idle", pushed=True))


async def test_asks_only_what_is_allowed_and_answers_nothing(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    server.threads = {MAIN: thread(MAIN, WAITING)}
    feed = ControlFeed(tmp_path, clock)
    async with running(feed) as ear:
        await ear.hear(source(), now(MAIN, "active", "waitingOnApproval"))
        requests = (
            "item/commandExecution/requestApproval",
            "item/fileChange/requestApproval",
            "item/tool/requestUserInput",
        )
        for number, method in enumerate(requests, start=1):  # numbers that are ours as well
            await server.send({"id": number, "method": method, "params": {"threadId": MAIN}})
            await server.wait_for(lambda: server.methods().count("initialized") == 2)
        await server.send(
            {"id": 9, "method": "account/chatgptAuthTokens/refresh", "params": {"reason": "unauthorized"}}
        )
        await server.change(MAIN, IDLE)
        await ear.hear(now(MAIN, "idle", pushed=True))
        assert feed.unanswered == 4
    assert set(server.methods()) <= ALLOWED
    assert not [frame for frame in server.frames if {"result", "error"} & set(frame)]


@pytest.mark.parametrize(
    "method",
    ["thread/resume", "thread/start", "turn/start", "turn/interrupt", "thread/unsubscribe", "", "Initialize"],
)
async def test_nothing_else_can_be_sent(method: str, server: AppServer, tmp_path: Path, clock: Clock) -> None:
    async with ControlFeed(tmp_path, clock)._dialled(control._Seen(), clock.now) as call:
        with pytest.raises(PermissionError, match="must not be sent"):
            await call._send(method, {"threadId": MAIN})
        await call._send("thread/list", {"limit": 1})
        await server.wait_for(lambda: "thread/list" in server.methods())
    assert method not in server.methods()


async def test_a_subscription_it_did_not_ask_for_is_ended_by_hanging_up_once(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    server.threads = {MAIN: thread(MAIN, BUSY)}
    async with running(ControlFeed(tmp_path, clock)) as ear:
        await ear.hear(source(), now(MAIN, "active"))
        server.threads = {CHILD: thread(CHILD, WAITING)}  # and MAIN goes meanwhile
        await server.push("turn/started", threadId=CHILD, turn={"id": "t", "items": []})
        await ear.hear(now(MAIN, "not-loaded"), now(CHILD, "active", "waitingOnApproval"))
        assert server.calls == 2
        await server.push("turn/started", threadId=CHILD, turn={"id": "t", "items": []})
        await server.push("item/agentMessage/delta", threadId=CHILD, delta="x" * 100_000)
        await server.change(CHILD, IDLE)
        await ear.hear(now(CHILD, "idle", pushed=True))
        assert server.calls == 2


async def test_dials_again_when_the_server_comes_back(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    server.threads = {MAIN: thread(MAIN, IDLE)}
    feed = ControlFeed(tmp_path, clock)
    async with running(feed) as ear:
        await ear.hear(source(), now(MAIN, "idle"))
        await server.die()
        await ear.hear(
            source("app-server: received 1001 (going away); then sent 1001 (going away)", ok=False), ABSENT
        )
        assert (feed.connected, feed.problem) == (False, None)
        await server.start()
        await ear.hear(source(), now(MAIN, "idle"))


async def test_says_nothing_while_there_never_was_a_server(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    home = tmp_path / "other"
    feed = ControlFeed(home, clock)
    assert await feed.poll(clock.now()) == []
    async with running(feed) as ear:
        await clock.sleep_until(clock.now() + 3)
        assert (feed.connected, feed.problem, ear.events) == (False, None, [])
        home.symlink_to(tmp_path)
        await ear.hear(source())


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "hello",
        b"\xff\xfe\x00",
        "[" * 100_000,
        "[]",
        '{"method": 7}',
        '{"id": 1',
        json.dumps({"method": "thread/status/changed", "params": {"threadId": "\x1b[2J", "status": IDLE}}),
        json.dumps({"method": "thread/status/changed", "params": {"threadId": MAIN + "\n", "status": IDLE}}),
        json.dumps(
            {"method": "thread/status/changed", "params": {"threadId": MAIN, "status": {"type": "dreaming"}}}
        ),
        json.dumps(
            {
                "method": "thread/status/changed",
                "params": {"threadId": MAIN, "status": {**BUSY, "activeFlags": ["\x1b[31m"]}},
            }
        ),
        json.dumps(
            {
                "method": "thread/status/changed",
                "params": {"threadId": MAIN, "status": {**BUSY, "activeFlags": ["a" * 1_000]}},
            }
        ),
        json.dumps({"method": "thread/started"}),
    ],
    ids=lambda garbage: str(garbage[:60]),
)
async def test_what_is_not_understood_is_counted_and_forgotten(
    garbage: str | bytes, server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    server.threads, server.greeting = {MAIN: thread(MAIN, IDLE)}, "["
    async with running(ControlFeed(tmp_path, clock)) as ear:
        await ear.hear(source("connected, 1 or more messages not understood"), now(MAIN, "idle"))
        await server.send(garbage)
        await ear.hear(source("connected, 2 or more messages not understood"))
        await server.send(garbage)
        await server.change(MAIN, WAITING)
        await ear.hear(now(MAIN, "active", "waitingOnApproval", pushed=True))


async def test_a_message_too_long_ends_the_connection_and_not_the_feed(
    server: AppServer, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_MESSAGE_CAP", 10_000)
    server.threads = {MAIN: thread(MAIN, IDLE)}
    async with running(ControlFeed(tmp_path, clock)) as ear:
        await ear.hear(source(), now(MAIN, "idle"))
        await server.push("thread/started", thread={**thread(CHILD, IDLE), "preview": "x" * 20_000})
        async with asyncio.timeout(10):
            await server.wait_for(lambda: server.calls == 2 and server.listening)
        lost = ear.events[0]
        assert isinstance(lost, SourceSeen)
        assert "1009 (message too big)" in lost.detail
        ear.events.pop(0)
        await ear.hear(source(), now(MAIN, "idle"))


async def test_a_server_that_never_answers_is_a_problem_and_tried_again(
    server: AppServer, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_PATIENCE", 0.05)
    server.silent = {"initialize"}
    feed = ControlFeed(tmp_path, clock)
    async with running(feed) as ear:
        await ear.hear(source("the app-server does not answer", ok=False))
        assert (feed.connected, feed.problem) == (False, "the app-server does not answer")
        server.silent = set()
        await ear.hear(source())
        assert feed.problem is None
    assert server.calls >= 2


async def test_something_else_behind_the_socket_is_a_problem(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    async def hello(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        writer.close()

    await server.die()
    server._place.unlink()
    async with await asyncio.start_unix_server(hello, server._place):
        load_thread(tmp_path)
        [said] = await ControlFeed(tmp_path, clock).poll(5.0)
    assert said == SourceSeen(
        at=5.0, name="codex feed", ok=False, detail="app-server: did not receive a valid HTTP response"
    )


async def test_a_socket_of_somebody_else_is_not_touched(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    feed = ControlFeed(tmp_path, clock, uid=os.getuid() + 1)
    async with running(feed) as ear:
        await ear.hear(source(f"{server._place} belongs to user {os.getuid()}", ok=False))
        assert feed.problem == f"{server._place} belongs to user {os.getuid()}"
        assert len(await feed.poll(1.0)) == 1
    assert server.calls == 0


async def test_we_are_never_the_first_to_introduce_ourselves(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    """Codex would take our name for its own, and write it into every rollout."""
    lock = tmp_path / "thread-writer-locks" / f"{MAIN}.lock"
    os.utime(lock, (0, 0))  # left over from a server before this one
    feed = ControlFeed(tmp_path, clock)
    assert await feed.poll(1.0) == []
    (lock.parent / ".coordination.lock").touch()
    assert await feed.poll(1.0) == []
    assert server.calls == 0
    load_thread(tmp_path)
    assert await feed.poll(0.0, timeout=10) == [source("connected", ok=True)]


async def test_a_file_in_the_sockets_place_is_a_problem(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "app-server-control" / "app-server-control.sock"
    file.parent.mkdir()
    file.touch()
    [said] = await ControlFeed(tmp_path, clock).poll(1.0)
    assert isinstance(said, SourceSeen)
    assert said.detail == f"{file} is not a socket"


async def test_a_look_asks_once_and_hangs_up(server: AppServer, tmp_path: Path, clock: Clock) -> None:
    server.threads = {
        MAIN: thread(MAIN, WAITING),
        TITLE: thread(TITLE, BUSY, helper=True),
        CHILD: thread(CHILD, IDLE),
    }
    assert await ControlFeed(tmp_path, clock).poll(77.0, timeout=10) == [
        StatusPushed(at=77.0, thread=MAIN, status="active", flags=("waitingOnApproval",)),
        StatusPushed(at=77.0, thread=CHILD, status="idle"),
        SourceSeen(at=77.0, name="codex feed", ok=True, detail="connected"),
    ]
    await server.wait_for(lambda: not server.listening)
    assert server.farewells == [1000]
    assert set(server.methods()) <= ALLOWED


async def test_a_look_gives_what_has_come_in_time(server: AppServer, tmp_path: Path, clock: Clock) -> None:
    server.silent = {"thread/read"}
    server.threads = {MAIN: thread(MAIN, IDLE)}
    assert await ControlFeed(tmp_path, clock).poll(77.0, timeout=0.2) == [
        SourceSeen(at=77.0, name="codex feed", ok=False, detail="the app-server does not answer")
    ]


def test_the_websocket_library_is_loaded_only_when_somebody_is_there(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys\nfrom agentdash.collect.clock import SystemClock\nfrom agentdash.agents.codex.status_feed import ControlFeed\n"
        "assert asyncio.run(ControlFeed(pathlib.Path(sys.argv[1]), SystemClock()).poll(1.0)) == []\n"
        "assert 'websockets' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=Path(__file__).parents[2])
