"""A server behind Codex's control socket that answers anything but what Codex does: its harm has bounds."""

import asyncio
import itertools
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed

from agentdash.agents.codex.status_feed import ALLOWED_METHODS
from agentdash.collect.clock import SystemClock
from agentdash.model.events import SourceSeen, StatusPushed
from tests.unit.test_status_feed import IDLE, MAIN, feed_of, load_thread, thread

HANDSHAKE: Final = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
POLL_S: Final = 0.3
LIMIT_S: Final = 5.0
"""Far above the longest poll, for slow machines; an answer without end takes for ever."""
Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Answer = Callable[[ServerConnection, dict[str, Any]], Awaitable[None]]


async def sends_an_endless_line(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 101 ")
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


async def closes_in_the_handshake(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(4_096)
    writer.write(HANDSHAKE)
    writer.close()


async def never_answers(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    while await reader.read(4_096):
        pass


@pytest.mark.parametrize("behaviour", [sends_an_endless_line, closes_in_the_handshake, never_answers])
async def test_no_websocket_is_a_failed_source(behaviour: Behaviour, tmp_path: Path) -> None:
    served: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.ensure_future(behaviour(reader, writer)))
        await asyncio.wait(served)
        writer.close()

    async with at(tmp_path) as place, await asyncio.start_unix_server(serve, place):
        [health] = await polled(tmp_path)
        for task in served:
            task.cancel()
        await asyncio.gather(*served, return_exceptions=True)
    assert isinstance(health, SourceSeen)
    assert not health.ok


def number(count: int) -> str:
    return f"01a1fb02-ccc5-7602-aebd-{count:012x}"


async def lists_too_many(connection: ServerConnection, request: dict[str, Any]) -> None:
    await respond(connection, request, {"data": [number(each) for each in range(100_000)]})


async def sends_a_huge_frame(connection: ServerConnection, request: dict[str, Any]) -> None:
    await respond(connection, request, {"data": ["x" * (17 << 20)]})


async def starts_threads_without_end(connection: ServerConnection, request: dict[str, Any]) -> None:
    await respond(connection, request, {"data": []})
    for count in itertools.count():
        started = {**thread(number(count), IDLE), "cwd": "/x" * 10_000}
        await connection.send(json.dumps({"method": "thread/started", "params": {"thread": started}}))


async def subscribes_without_end(connection: ServerConnection, request: dict[str, Any]) -> None:
    await respond(connection, request, {"data": []})
    for count in itertools.count():
        begun = {"threadId": number(count)}
        await connection.send(json.dumps({"id": count, "method": "turn/started", "params": begun}))


async def asks_for_everything(connection: ServerConnection, request: dict[str, Any]) -> None:
    for method in (
        "execCommandApproval",
        "item/commandExecution/requestApproval",
        "thread/read",
        "initialize",
    ):
        await connection.send(json.dumps({"id": method, "method": method, "params": {"threadId": MAIN}}))
    await respond(connection, request, {"data": []})


@pytest.mark.parametrize(
    "answer",
    [
        lists_too_many,
        sends_a_huge_frame,
        starts_threads_without_end,
        subscribes_without_end,
        asks_for_everything,
    ],
)
async def test_answers_are_bounded(answer: Answer, tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = []

    async def serve(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            async for text in connection:
                requests.append(request := json.loads(text))
                if request["method"] == "thread/loaded/list":
                    await answer(connection, request)
                elif request["method"] == "initialize":
                    await respond(connection, request, {"userAgent": "codex-tui/0.171.0"})

    async with at(tmp_path) as place, unix_serve(serve, place, compression=None, max_size=None):
        events = await polled(tmp_path)
    pushed = [event for event in events if isinstance(event, StatusPushed)]
    assert len(pushed) <= 1_000
    assert all(len(event.cwd or "") < 10_000 for event in pushed)
    assert {request["method"] for request in requests} <= ALLOWED_METHODS
    assert len(requests) <= 1_100


async def respond(connection: ServerConnection, request: dict[str, Any], result: dict[str, Any]) -> None:
    await connection.send(json.dumps({"id": request["id"], "result": result}))


async def polled(home: Path) -> list[Any]:
    start = time.monotonic()
    events = await feed_of(home, SystemClock()).poll(1.0, timeout=POLL_S)
    assert time.monotonic() - start < LIMIT_S
    return list(events)


@asynccontextmanager
async def at(home: Path) -> AsyncIterator[str]:
    """Yield a short path for a socket behind the link of a home."""
    with tempfile.TemporaryDirectory() as short:
        link = home / "app-server-control" / "app-server-control.sock"
        link.parent.mkdir()
        link.symlink_to(place := Path(short, "socket"))
        load_thread(home)
        os.utime(home / "thread-writer-locks" / f"{MAIN}.lock", (2**31, 2**31))
        yield str(place)
