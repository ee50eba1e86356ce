"""The status feed against a fake app-server that records every frame it receives."""

import asyncio
import json
import os
import re
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed

from agentdash.agents.codex.status_feed import ALLOWED_METHODS, ServerState, StatusFeed
from agentdash.model.events import Event, SourceSeen, StatusPushed
from agentdash.model.source import Clock
from agentdash.replay.clock import VirtualClock

MAIN = "01a1fb02-ccc5-7602-aebd-da70e407d204"
CHILD = "01a1fb04-bb29-7882-9a5a-2ebefc3cdefc"
TITLE = "01a1fb03-33ef-78a1-8be6-f63e8708b02d"
IDLE: dict[str, Any] = {"type": "idle"}
BUSY: dict[str, Any] = {"type": "active", "activeFlags": []}
WAITING: dict[str, Any] = {"type": "active", "activeFlags": ["waitingOnApproval"]}
AT = 1_795_212_653.774


def feed_of(home: Path, clock: Clock) -> StatusFeed:
    """Return a feed of the server of this module, which Python runs."""
    return StatusFeed(home, clock, program=re.compile(r"python[\d.]*"))


def thread(ident: str, status: dict[str, Any], *, helper: bool = False) -> dict[str, Any]:
    """Return a thread as 0.169 describes one, shortened."""
    found = {"id": ident, "status": status, "preview": "fix the tests", "source": "vscode", "turns": []}
    if helper:
        return found | {"cwd": "/home/dev", "ephemeral": True, "threadSource": "thread_title", "path": None}
    return found | {"cwd": "/home/dev", "ephemeral": False, "threadSource": "user"}


def load_thread(home: Path) -> None:
    """Create the lock file that Codex creates when its own client has loaded a thread."""
    lock = home / "thread-writer-locks" / f"{MAIN}.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.unlink(missing_ok=True)
    lock.touch()


class AppServer:
    """A fake app-server that responds to a feed, and on demand pushes, requests, sends garbage, stays silent
    and dies."""

    def __init__(self, home: Path, place: Path) -> None:
        self.threads: dict[str, dict[str, Any]] = {}
        self.frames: list[dict[str, Any]] = []
        self.user_agent = "codex-tui/0.169.0 (Debian 12.0.0; x86_64) xterm (codex-tui; 0.169.0)"
        self.codex_home: str | None = str(home)
        """Sent before anything else."""
        self.silent: set[str] = set()
        """Methods that get no response."""
        self.connections = 0
        self.close_codes: list[int | None] = []
        """How connections ended."""
        self._home, self._place = home, place / "socket"
        self._server: Server | None = None
        self._connection: ServerConnection | None = None
        self._arrived = asyncio.Condition()

    async def start(self) -> None:
        self._server = await unix_serve(self._serve, str(self._place), compression=None)
        link = self._home / "app-server-control" / "app-server-control.sock"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(self._place)
        load_thread(self._home)

    async def die(self) -> None:
        """End as if killed: the link and the socket stay behind."""
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
        assert self._connection
        await self._connection.send(json.dumps(message) if isinstance(message, dict) else message)

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10), self._arrived:
            await self._arrived.wait_for(condition)

    def methods(self) -> list[str]:
        return [frame["method"] for frame in self.frames]

    async def _serve(self, connection: ServerConnection) -> None:
        self._connection = connection
        self.connections += 1
        with suppress(ConnectionClosed):
            async for text in connection:
                frame = json.loads(text)
                self.frames.append(frame)
                if (response := self._respond(frame)) is not None:
                    await connection.send(json.dumps({"id": frame["id"], **response}))
                async with self._arrived:
                    self._arrived.notify_all()
        await connection.wait_closed()
        self.close_codes.append(connection.close_code)
        async with self._arrived:
            self._connection = None if self._connection is connection else self._connection
            self._arrived.notify_all()

    def _respond(self, frame: dict[str, Any]) -> dict[str, Any] | None:
        if frame["method"] in self.silent or "id" not in frame:
            return None
        match frame["method"]:
            case "initialize":
                return {"result": {"userAgent": self.user_agent, "codexHome": self.codex_home}}
            case "thread/loaded/list":
                return {"result": {"data": list(self.threads), "nextCursor": None}}
            case "thread/read" if found := self.threads.get(frame["params"]["threadId"]):
                return {"result": {"thread": found}}
        return {"error": {"code": -32600, "message": "thread not loaded"}}

    @property
    def listening(self) -> bool:
        return self._connection is not None


class Recorder:
    """Records the events of a feed."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._arrived = asyncio.Event()

    def __call__(self, events: Sequence[Event]) -> None:
        assert events
        self.events += events
        self._arrived.set()

    async def expect(self, *wanted: Event) -> None:
        """Return when the next events are these, in this order. Times are compared only where they were
        pushed."""
        async with asyncio.timeout(10):
            while len(self.events) < len(wanted):
                self._arrived.clear()
                await self._arrived.wait()
        received, self.events = self.events[: len(wanted)], self.events[len(wanted) :]
        assert [timeless(event) for event in received] == [timeless(event) for event in wanted]


def timeless(event: Event) -> tuple[Any, ...]:
    match event:
        case StatusPushed():
            return event.thread, event.status, event.flags, event.at == AT
        case SourceSeen():
            return event.name, event.ok, event.detail
    raise AssertionError(event)


def status(ident: str, state: Any, *flags: str, pushed: bool = False) -> StatusPushed:
    return StatusPushed(at=AT if pushed else 0.0, thread=ident, status=state, flags=flags)


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
    return VirtualClock(1_000.0, speed=100.0)  # a minute passes quickly


@pytest.fixture
def feed(tmp_path: Path, clock: Clock) -> StatusFeed:
    return feed_of(tmp_path, clock)


@asynccontextmanager
async def running(feed: StatusFeed) -> AsyncIterator[Recorder]:
    recorder = Recorder()
    task = asyncio.create_task(feed.stream(recorder))
    try:
        yield recorder
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_loaded_threads_then_changes(server: AppServer, feed: StatusFeed) -> None:
    server.threads = {MAIN: thread(MAIN, WAITING), CHILD: thread(CHILD, IDLE)}
    async with running(feed) as recorder:
        await recorder.expect(source(), status(MAIN, "active", "waitingOnApproval"), status(CHILD, "idle"))
        assert feed.connected
        await server.change(MAIN, BUSY)
        await recorder.expect(status(MAIN, "active", pushed=True))
        await server.change(MAIN, BUSY)  # unchanged
        await server.change(MAIN, {"type": "active", "activeFlags": ["waitingOnUserInput"]})
        await server.change(CHILD, {"type": "systemError"})
        await server.change(CHILD, {"type": "notLoaded"})
        await recorder.expect(
            status(MAIN, "active", "waitingOnUserInput", pushed=True),
            status(CHILD, "system-error", pushed=True),
            status(CHILD, "not-loaded", pushed=True),
        )
    await server.wait_for(lambda: not server.listening)
    assert server.close_codes == [1000]
    assert server.methods() == ["initialize", "initialized", "thread/loaded/list", *["thread/read"] * 2]


async def test_helpers_are_not_reported(server: AppServer, feed: StatusFeed) -> None:
    server.threads = {TITLE: thread(TITLE, BUSY, helper=True)}
    other = TITLE.replace("01a1", "01a2")
    async with running(feed) as recorder:
        await recorder.expect(source())
        await server.wait_for(lambda: "thread/read" in server.methods())
        server.threads[other] = thread(other, IDLE, helper=True)
        await server.push("thread/started", thread=server.threads[other])
        for ident in (TITLE, other):
            await server.change(ident, WAITING)
            await server.change(ident, {"type": "notLoaded"})
        await server.push("thread/started", thread=thread(MAIN, IDLE))
        await recorder.expect(status(MAIN, "idle", pushed=True))


async def test_only_allowed_methods_and_no_responses_are_sent(server: AppServer, feed: StatusFeed) -> None:
    server.threads = {MAIN: thread(MAIN, WAITING)}
    async with running(feed) as recorder:
        await recorder.expect(source(), status(MAIN, "active", "waitingOnApproval"))
        requests = (
            "item/commandExecution/requestApproval",
            "item/fileChange/requestApproval",
            "item/tool/requestUserInput",
        )
        for number, method in enumerate(requests, start=1):  # ids that the feed uses as well
            await server.send({"id": number, "method": method, "params": {"threadId": MAIN}})
            await server.wait_for(lambda: server.methods().count("initialized") == 2)
        await server.send(
            {"id": 9, "method": "account/chatgptAuthTokens/refresh", "params": {"reason": "unauthorized"}}
        )
        await server.change(MAIN, IDLE)
        await recorder.expect(status(MAIN, "idle", pushed=True))
    assert set(server.methods()) <= ALLOWED_METHODS
    assert not [frame for frame in server.frames if {"result", "error"} & set(frame)]


@pytest.mark.parametrize("method", ["thread/resume", "turn/start", "thread/unsubscribe", "Initialize"])
async def test_other_methods_cannot_be_sent(
    method: str, server: AppServer, feed: StatusFeed, clock: Clock
) -> None:
    async with feed._connection(ServerState(), clock.now) as connection:
        with pytest.raises(PermissionError, match="must not be sent"):
            await connection._send(method, {"threadId": MAIN})
        await connection._send("thread/read", {"limit": 1})
        await server.wait_for(lambda: "thread/read" in server.methods())
    assert method not in server.methods()


async def test_subscription_is_ended_by_closing_once(server: AppServer, feed: StatusFeed) -> None:
    server.threads = {MAIN: thread(MAIN, BUSY)}
    async with running(feed) as recorder:
        await recorder.expect(source(), status(MAIN, "active"))
        server.threads = {CHILD: thread(CHILD, WAITING)}  # and MAIN is unloaded meanwhile
        await server.push("turn/started", threadId=CHILD, turn={"id": "t", "items": []})
        await recorder.expect(status(MAIN, "not-loaded"), status(CHILD, "active", "waitingOnApproval"))
        assert server.connections == 2
        await server.push("turn/started", threadId=CHILD, turn={"id": "t", "items": []})
        await server.push("item/agentMessage/delta", threadId=CHILD, delta="x" * 100_000)
        await server.change(CHILD, IDLE)
        await recorder.expect(status(CHILD, "idle", pushed=True))
        assert server.connections == 2


async def test_reconnects_when_the_server_returns(server: AppServer, feed: StatusFeed) -> None:
    server.threads = {MAIN: thread(MAIN, IDLE)}
    async with running(feed) as recorder:
        await recorder.expect(source(), status(MAIN, "idle"))
        await server.die()
        await recorder.expect(
            source("app-server: received 1001 (going away); then sent 1001 (going away)", ok=False), ABSENT
        )
        assert not feed.connected
        await server.start()
        await recorder.expect(source(), status(MAIN, "idle"))


async def test_nothing_is_reported_without_a_server(server: AppServer, tmp_path: Path, clock: Clock) -> None:
    home = tmp_path / "other"
    feed = feed_of(home, clock)
    assert await feed.poll(clock.now()) == []
    async with running(feed) as recorder:
        await clock.sleep_until(clock.now() + 3)
        assert (feed.connected, recorder.events) == (False, [])
        home.symlink_to(tmp_path)
        await recorder.expect(source())


@pytest.mark.parametrize(
    "garbage",
    [
        "hello",
        b"\xff\xfe\x00",
        "[" * 100_000,
        json.dumps({"method": "thread/status/changed", "params": {"threadId": "\x1b[2J", "status": IDLE}}),
        json.dumps({"method": "thread/started"}),
    ],
    ids=lambda garbage: str(garbage[:60]),
)
async def test_malformed_messages_are_reported(
    garbage: str | bytes, server: AppServer, feed: StatusFeed
) -> None:
    server.threads = {MAIN: thread(MAIN, IDLE)}
    async with running(feed) as recorder:
        await recorder.expect(source(), status(MAIN, "idle"))
        await server.send(garbage)
        await recorder.expect(source("connected, with messages that are not understood"))
        await server.send(garbage)
        await server.change(MAIN, WAITING)
        await recorder.expect(status(MAIN, "active", "waitingOnApproval", pushed=True))


async def test_nothing_is_sent_to_an_unproven_listener(
    server: AppServer, tmp_path: Path, clock: Clock
) -> None:
    """The program of this server is not called `codex`."""
    feed = StatusFeed(tmp_path, clock)
    [health] = await feed.poll(1.0)
    assert isinstance(health, SourceSeen)
    assert not health.ok
    assert health.detail.startswith("not used: the control socket belongs to another program, ")
    async with running(feed) as recorder:
        await recorder.expect(source(health.detail, ok=False))
    assert server.frames == []


async def test_never_the_first_client_to_initialize(
    server: AppServer, feed: StatusFeed, tmp_path: Path
) -> None:
    """Codex would use this client's name as its own, and write it into every rollout."""
    lock = tmp_path / "thread-writer-locks" / f"{MAIN}.lock"
    os.utime(lock, (0, 0))  # left behind by an earlier server
    assert await feed.poll(1.0) == []
    (lock.parent / ".coordination.lock").touch()
    assert await feed.poll(1.0) == []
    assert server.connections == 0
    load_thread(tmp_path)
    assert await feed.poll(0.0, timeout=10) == [source("connected", ok=True)]


RENAMES = "not used: this Codex names its clients to the model provider"


@pytest.mark.parametrize(
    ("user_agent", "home", "reason"),
    [
        ("codex-tui/0.175.0 (x) xterm (codex_app_server_daemon; 0.1.0)", None, RENAMES),
        ("codex_app_server_daemon/0.175.0", None, RENAMES),
        ("codex-tui/0.169.0", "/", "not used: the app-server works in another Codex home, /"),
    ],
)
async def test_server_that_is_refused_is_left_alone(
    user_agent: str, home: str | None, reason: str, server: AppServer, feed: StatusFeed
) -> None:
    """It does not exempt the name, or is of another home: nothing is asked of it, nor is it tried again."""
    server.user_agent, server.codex_home = user_agent, home
    server.threads = {MAIN: thread(MAIN, IDLE)}
    async with running(feed) as recorder:
        await recorder.expect(source(reason, ok=False))
        await server.wait_for(lambda: not server.listening)
        for _ in range(3):
            assert len(await feed.poll(1.0)) == 1
    assert (server.methods(), server.connections) == (["initialize"], 1)
