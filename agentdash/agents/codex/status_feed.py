"""The status feed of Codex's app-server: the state of its loaded threads, received and never answered.

Since 0.160 the TUI starts a daemon (`codex app-server --managed-daemon`) that speaks JSON-RPC over a
WebSocket on `$CODEX_HOME/app-server-control/app-server-control.sock`, a link to a socket under
`/tmp/codex-daemon-UID/`. `codex exec` and older releases have none. Every client that has sent `initialize`
receives `thread/status/changed` of every thread, without a subscription. Observed with 0.169.0 (0.160.0
behaves alike in all that was tried):

- Connecting takes 1-2 ms, `thread/read` 1-2 ms per thread. `waitingOnApproval` arrives 0.7-0.9 s before the
  menu is on the TUI's screen. A question gives `waitingOnUserInput`, a turn that ended in an error
  `systemError`, an interrupted one `idle`.
- `thread/loaded/list` and a `thread/read` of each give everything, also children, threads without a file yet,
  and which are helpers. `thread/list` omits some of these, and scans the disk.
- The daemon and a prompt outlive their TUI. A killed daemon leaves its link behind; connections are refused.
- **A child that is spawned while a client is connected gets this client as a subscriber**: it receives all
  items and requests for approval. Not answering is harmless, but a thread with a subscriber is never
  unloaded. So at the first sign of a subscription, `turn/started`, which only subscribers receive, the
  connection is closed and opened again: that ends the subscription.
- **A client's name becomes a part of what the server sends to its model provider**, for all its threads and
  until the next client names itself: see `CLIENT_NAME`. A connection is opened only when a thread
  has been loaded.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from agentdash import __version__
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import Event, SourceSeen, StatusPushed
from agentdash.model.sanitize import clean_line
from agentdash.model.source import NO_APP_SERVER, Clock
from agentdash.model.times import possible_time
from agentdash.peers import UnprovenError, prove

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_SOCKET: Final = "app-server-control/app-server-control.sock"
_PROGRAM: Final = re.compile("codex")
_BURST_MESSAGES: Final = 100
_BURST_PAUSE_S: Final = 0.05
"""Pause after so many messages: a server that sends without end must not keep the event loop busy."""
_LOCKS: Final = "thread-writer-locks"
_CLOSE_TIMEOUT_S: Final = 0.5
_MAX_MESSAGE_BYTES: Final = 16 << 20
"""Codex's own limit for one frame; longer messages end the connection. Usual ones are short, but a read
thread has its preview."""
_RETRY_S: Final = 5.0
"""Before connecting again after a failure."""
_SEARCH_INTERVAL_S: Final = 0.1
"""Between two checks whether there is an app-server with a loaded thread. In a fresh home the socket appears
0.35 s before the first menu is on the screen, and the first thread's lock 0.15 s before it."""
_IDLE_SEARCH_INTERVAL_S: Final = 1.0
"""The same while nothing happens: a check takes a quarter of a millisecond of CPU, all told."""


class StatusFeed:
    """The status of the threads that Codex's app-server has loaded.

    Nothing is sent before it is proven that a Codex of this user listens, outside every sandbox: a worker
    may have put a server of its own behind the link.

    Args:
        clock: the time of events without one, and of the pauses between connections.
        program: the name of the executable that may listen.
        is_idle: returns whether nothing has happened for a while, on the screens and in the logs.
    """

    name = "codex feed"

    def __init__(
        self,
        home: Path,
        clock: Clock,
        *,
        program: re.Pattern[str] = _PROGRAM,
        is_idle: Callable[[], bool] = lambda: False,
    ) -> None:
        self._home = home
        self._path = home / _SOCKET
        self._locks = home / _LOCKS
        self._clock = clock
        self._program = program
        self._is_idle = is_idle
        self._health: tuple[bool, str] = (False, NO_APP_SERVER)
        """Whether connected, and the detail, as emitted last."""
        self._state = ServerState()
        self._useless: tuple[tuple[int, int], OSError] | None = None
        """The last socket of an app-server that was killed or refused, and why it is of no use."""

    @property
    def connected(self) -> bool:
        """Whether `stream` is connected to an app-server now."""
        return self._health[0]

    async def stream(self, emit: Callable[[Sequence[Event]], None]) -> None:
        """Emit status changes while an app-server is running, until cancelled.

        `SourceSeen` is emitted when a connection opens, closes or fails, and when messages are malformed; not
        while no app-server has been found. A thread that is no longer loaded when the connection is opened
        again is emitted as `not-loaded`.
        """
        while True:
            try:
                async with self._connection(self._state, self._clock.now) as connection:
                    for number in count(1):
                        if connection.subscribed:
                            break
                        if number % _BURST_MESSAGES == 0:
                            await asyncio.sleep(_BURST_PAUSE_S)
                        self._emit_health(emit, True, _connected_detail(self._state))
                        if events := await connection.receive():
                            emit(events)
            except _AbsentError:
                self._emit_health(emit, False, NO_APP_SERVER)
                pause = _IDLE_SEARCH_INTERVAL_S if self._is_idle() else _SEARCH_INTERVAL_S
            except OSError as error:
                pause = _RETRY_S
                self._emit_health(emit, False, _reason(error))
            else:
                continue  # closed to end a subscription: connect again with the same state
            self._state = ServerState()
            await self._clock.sleep_until(self._clock.now() + pause)

    async def poll(self, at: float, timeout: float = 0.3) -> list[Event]:  # noqa: ASYNC109 - returns what arrived by then
        """Return the status of every loaded thread, as of `at` (unix seconds), then the health of this
        source.

        Returns what has arrived within `timeout` seconds, and nothing where no app-server is running.
        """
        state = ServerState()
        events: list[Event] = []
        try:
            async with asyncio.timeout(timeout), self._connection(state, lambda: at) as connection:
                while not connection.settled:
                    events += await connection.receive()
        except _AbsentError:
            return []
        except OSError as error:
            return [*events, SourceSeen(at=at, name=self.name, ok=False, detail=_reason(error))]
        return [*events, SourceSeen(at=at, name=self.name, ok=True, detail=_connected_detail(state))]

    @asynccontextmanager
    async def _connection(
        self, state: ServerState, now: Callable[[], float]
    ) -> AsyncIterator[AppServerConnection]:
        """Open a connection and initialize it.

        Raises:
            _AbsentError: no app-server is running.
            OSError: one is running, but does not respond, refuses, or has closed the connection.
        """
        identity = self._find_socket()
        from websockets.asyncio.client import unix_connect  # noqa: PLC0415 - imported only when needed
        from websockets.exceptions import WebSocketException  # noqa: PLC0415

        try:
            with prove(self._path, self._program, may_be_link=True) as proven:
                connecting = unix_connect(
                    proven.path,
                    "ws://localhost/",
                    open_timeout=RESPONSE_TIMEOUT_S,
                    close_timeout=_CLOSE_TIMEOUT_S,
                    max_size=_MAX_MESSAGE_BYTES,
                    compression=None,
                )
                async with connecting as socket:
                    connection = AppServerConnection(socket, self._home, state, now)
                    try:
                        await connection.initialize()
                        yield connection
                    finally:
                        try:
                            await socket.close()  # with a close frame, also when cancelled
                        finally:
                            socket.transport.abort()
        except UnprovenError as error:
            raise PermissionError(f"not used: the control socket {error}") from error
        except RefusedError as error:
            self._useless = identity, error
            raise
        except (ConnectionRefusedError, FileNotFoundError) as error:
            self._useless = identity, _AbsentError()
            raise _AbsentError from error
        except (WebSocketException, EOFError) as error:
            raise ConnectionError(f"app-server: {error}") from error

    def _find_socket(self) -> tuple[int, int]:
        """Return the identity of the socket behind the link, which Codex places where the path is short
        enough for any home; only once a thread has been loaded since it was created: each has a lock file
        then."""
        if not os.path.lexists(self._path):  # first, since it is the usual result many times a second
            raise _AbsentError
        try:
            status = self._path.stat()
            with os.scandir(self._locks) as locks:
                loaded = (lock.stat().st_mtime for lock in locks if re.fullmatch(r"[^.].*\.lock", lock.name))
                if all(at < status.st_mtime for at in loaded):
                    raise _AbsentError
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _AbsentError from error
        identity = (status.st_ino, status.st_mtime_ns)
        if self._useless is not None and self._useless[0] == identity:
            raise self._useless[1]
        return identity

    def _emit_health(self, emit: Callable[[Sequence[Event]], None], ok: bool, detail: str) -> None:
        if (ok, detail) != self._health:
            self._health = (ok, detail)
            emit([SourceSeen(at=self._clock.now(), name=self.name, ok=ok, detail=detail)])


class _AbsentError(ConnectionError):
    """No app-server is running, or no other client has initialized it yet."""


def _connected_detail(state: ServerState) -> str:
    return "connected, with messages that are not understood" if state.malformed else "connected"


def _reason(error: OSError) -> str:
    return clean_line(str(error), 200) or "the app-server does not answer"


# ---------------------------------------------------------------- the connection, which only reads
#
# `initialize`, list and read the loaded threads, then listen: JSON-RPC over a WebSocket. No method that
# changes anything is sent, and no request of the server is answered: see `ALLOWED_METHODS`.


ALLOWED_METHODS: Final = frozenset(("initialize", "initialized", "thread/loaded/list", "thread/read"))
"""The methods that may be sent. The server would accept others too, such as start turns and grant
approvals."""
CLIENT_NAME: Final = "codex_app_server_daemon"
"""The name by which this client introduces itself: that of Codex's own probe of its daemon.

Any other name becomes a part of the User-Agent of all later model requests of the server, whoever's they are,
and the first one even the `originator` of its threads. Codex exempts two names from that, this one and
`codex-backend` (`NON_ORIGINATING_CLIENT_NAMES`); with it, requests stay equal (0.160.0, 0.169.0, 0.171.0).
"""
RESPONSE_TIMEOUT_S: Final = 2.0
"""For opening the connection, and again for the response to `initialize`; each takes milliseconds."""
_MAX_THREADS: Final = 1_000
"""Loaded threads that are noticed in one connection."""
_T = TypeVar("_T")
_ThreadId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
_Flag = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z]{1,40}\Z")]
_STATUS: Final[dict[str, Literal["active", "idle", "not-loaded", "system-error"]]] = {
    "active": "active",
    "idle": "idle",
    "notLoaded": "not-loaded",
    "systemError": "system-error",
}


class ServerState:
    """What is kept between connections to the same app-server."""

    def __init__(self) -> None:
        self.statuses: dict[str, StatusPushed] = {}
        """The last status of each thread that is loaded."""
        self.unsubscribed: set[str] = set()
        """Threads that Codex subscribed this client to, and whose subscription was ended by closing the
        connection."""
        self.malformed = False
        """Whether a message could not be parsed."""


class RefusedError(ConnectionError):
    """An app-server that is not used, since a connection changes its requests, or since it is of another
    home: what it states of threads is not about those of this home. The message is the reason, one line."""


class _Introduction(msgspec.Struct, rename="camel"):
    """The result of `initialize`."""

    user_agent: str = ""
    """What the server sends to its model provider from now on."""
    codex_home: str | None = None


class _LoadedThreads(msgspec.Struct):
    """The result of `thread/loaded/list`."""

    data: list[_ThreadId]


class _Status(msgspec.Struct, rename="camel"):
    type: Literal["active", "idle", "notLoaded", "systemError"]
    active_flags: tuple[_Flag, ...] = ()


class _Changed(msgspec.Struct, rename="camel"):
    """The parameters of `thread/status/changed`."""

    thread_id: _ThreadId
    status: _Status


class _About(msgspec.Struct, rename="camel"):
    """The parameters of `turn/started` and of requests."""

    thread_id: _ThreadId | None = None


class _Thread(msgspec.Struct, rename="camel"):
    id: _ThreadId
    status: _Status
    ephemeral: bool = False
    cwd: str | None = None
    thread_source: str | None = None


class _ThreadResult(msgspec.Struct):
    """The parameters of `thread/started`, and the result of `thread/read`."""

    thread: _Thread


class _Message(msgspec.Struct):
    """A response (no method), a notification (no id) or a request; the content is decoded only where it is
    used."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    emitted_at: float | None = msgspec.field(default=None, name="emittedAtMs")


_message = JsonDecoder(_Message)


class AppServerConnection:
    """One connection to an app-server.

    Args:
        home: the Codex home that the server is expected to work in.
        state: what is kept between connections; updated.
        now: returns the time of messages without one, unix seconds.
    """

    def __init__(
        self, socket: ClientConnection, home: Path, state: ServerState, now: Callable[[], float]
    ) -> None:
        self._socket = socket
        self._home = home
        self._state = state
        self._now = now
        self._pending: dict[str, StatusPushed | None] = {}
        """Requests without a response: the method, or the thread that is read, with the status pushed
        meanwhile: it waits until the thread is known to be no helper."""
        self._helpers: dict[str, bool] = {}
        """Threads that have been read, and whether they are helpers (titles, reviews), which are not
        reported."""
        self.subscribed = False
        """Whether Codex has subscribed this client to a thread: the connection has to be closed."""

    @property
    def settled(self) -> bool:
        """Whether all requests have got a response."""
        return not self._pending

    async def initialize(self) -> None:
        """Introduce this client and request the list of loaded threads.

        Raises:
            TimeoutError: no response.
            RefusedError: the server names this client to its model provider, or works in another home.
        """
        info = {"name": CLIENT_NAME, "title": "agentdash", "version": __version__}
        async with asyncio.timeout(RESPONSE_TIMEOUT_S):
            await self._request("initialize", "initialize", {"clientInfo": info})
            while self._pending:
                await self.receive()
        await self._send("initialized")
        await self._request("thread/loaded/list", "thread/loaded/list", {})

    async def receive(self) -> list[StatusPushed]:
        """Handle the next message; return the statuses that changed with it."""
        text = await self._socket.recv()
        try:
            message = _message.decode(text)
            at = possible_time((message.emitted_at or 0.0) / 1000) or self._now()
            if message.method is None:
                return await self._on_response(message, at)
            if "initialize" in self._pending:  # the list of loaded threads will include it
                return []
            if message.method == "thread/started":
                return self._add_thread(_decode(message.params, _ThreadResult).thread, at)
            if message.method == "thread/status/changed":
                changed = _decode(message.params, _Changed)
                return await self._on_status(_event(at, changed.thread_id, changed.status))
            if message.id is not None or message.method == "turn/started":
                self._on_subscription(_decode(message.params, _About).thread_id)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._state.malformed = True
        return []

    async def _on_response(self, message: _Message, at: float) -> list[StatusPushed]:
        if not isinstance(message.id, str) or message.id not in self._pending:
            return []
        pushed = self._pending.pop(message.id)
        if message.id == "initialize":
            self._check(_decode(message.result, _Introduction))
            return []
        if message.id == "thread/loaded/list":
            return await self._on_loaded(_decode(message.result, _LoadedThreads).data)
        try:
            return self._add_thread(_decode(message.result, _ThreadResult).thread, at, pushed)
        except msgspec.MsgspecError:  # an error: the thread has been unloaded meanwhile
            return [] if pushed is None else self._changed(pushed)

    def _check(self, server: _Introduction) -> None:
        if CLIENT_NAME in server.user_agent:
            raise RefusedError("not used: this Codex names its clients to the model provider")
        if server.codex_home is not None and not _is_same(self._home, server.codex_home):
            other = clean_line(server.codex_home, 120)
            raise RefusedError(f"not used: the app-server works in another Codex home, {other}")

    async def _on_loaded(self, threads: Sequence[str]) -> list[StatusPushed]:
        """Return the threads unloaded since the last connection; read the others."""
        unloaded = self._state.statuses.keys() - set(threads)
        for thread in threads[:_MAX_THREADS]:
            await self._read_thread(thread)
        gone = (StatusPushed(at=self._now(), thread=thread, status="not-loaded") for thread in unloaded)
        return [event for status in gone for event in self._changed(status)]

    async def _read_thread(self, thread: str, pushed: StatusPushed | None = None) -> None:
        if thread in self._pending:
            self._pending[thread] = pushed
        elif thread not in self._helpers and len(self._helpers) + len(self._pending) < _MAX_THREADS:
            await self._request(thread, "thread/read", {"threadId": thread, "includeTurns": False})
            self._pending[thread] = pushed

    async def _on_status(self, event: StatusPushed) -> list[StatusPushed]:
        if event.thread not in self._helpers:  # a child that was just spawned
            await self._read_thread(event.thread, event)
            return []
        return [] if self._helpers[event.thread] else self._changed(event)

    def _add_thread(
        self, thread: _Thread, at: float, newer: StatusPushed | None = None
    ) -> list[StatusPushed]:
        if thread.id not in self._helpers and len(self._helpers) >= _MAX_THREADS:
            return []
        # ephemeral threads have no rollout
        self._helpers[thread.id] = is_helper = thread.ephemeral or thread.thread_source == "thread_title"
        event = newer or _event(at, thread.id, thread.status)
        cwd = clean_line(thread.cwd) if thread.cwd else None
        return [] if is_helper else self._changed(replace(event, cwd=cwd))

    def _changed(self, event: StatusPushed) -> list[StatusPushed]:
        """Return the event if it differs from the last one of its thread."""
        last = self._state.statuses.pop(event.thread, None)
        if event.status != "not-loaded":
            event = replace(event, cwd=event.cwd or (last.cwd if last else None))
            self._state.statuses[event.thread] = event
        return [] if last and (last.status, last.flags) == (event.status, event.flags) else [event]

    def _on_subscription(self, thread: str | None) -> None:
        # once per thread: if another version subscribes this client again, the connection stays open
        ended = self._state.unsubscribed
        if thread and thread not in ended and len(ended) < _MAX_THREADS:
            ended.add(thread)
            self.subscribed = True

    async def _request(self, about: str, method: str, params: dict[str, object]) -> None:
        self._pending[about] = None
        await self._send(method, params, about)

    async def _send(
        self, method: str, params: dict[str, object] | None = None, ident: str | None = None
    ) -> None:
        """Send a message: the only place that does.

        Raises:
            PermissionError: the method is not one of those that only read.
        """
        if method not in ALLOWED_METHODS:
            raise PermissionError(f"{method} must not be sent: agentdash only reads")
        message = {"id": ident, "method": method, "params": params}
        content = {key: value for key, value in message.items() if value is not None}
        await self._socket.send(msgspec.json.encode(content).decode())


def _is_same(home: Path, other: str) -> bool:
    try:
        return str(home) == other or home.samefile(other)
    except (OSError, ValueError):
        return False


def _decode(raw: msgspec.Raw, kind: type[_T]) -> _T:
    return msgspec.json.decode(raw, type=kind)


def _event(at: float, thread: str, status: _Status) -> StatusPushed:
    return StatusPushed(at=at, thread=thread, status=_STATUS[status.type], flags=status.active_flags)
