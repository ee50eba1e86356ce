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
  until the next client names itself: see `app_server.CLIENT_NAME`. A connection is opened only when a thread
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
from typing import Final

from agentdash.agents.codex.app_server import (
    RESPONSE_TIMEOUT_S,
    AppServerConnection,
    RenamedError,
    ServerState,
)
from agentdash.model.events import Event, SourceSeen
from agentdash.model.sanitize import clean_line
from agentdash.model.source import NO_APP_SERVER, Clock
from agentdash.peers import UnprovenError, prove

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
_RETRY_DELAYS_S: Final = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Before connecting again after a failure; the last one repeats."""
_SEARCH_INTERVAL_S: Final = 0.1
"""Between two checks whether there is an app-server with a loaded thread; a check takes 20 µs. In a fresh
home the socket appears 0.35 s before the first menu is on the screen, and the first thread's lock 0.15 s
before it."""
_IDLE_SEARCH_INTERVAL_S: Final = 0.5
"""Likewise while nothing happens in this home."""


class StatusFeed:
    """The status of the threads that Codex's app-server has loaded.

    Nothing is sent before it is proven that a Codex of this user listens, outside of every sandbox: a worker
    may have put a server of its own behind the link.

    Args:
        clock: the time of events without one, and of the pauses between connections.
        program: the name of the executable that may listen.
    """

    name = "codex feed"

    def __init__(self, home: Path, clock: Clock, *, program: re.Pattern[str] = _PROGRAM) -> None:
        self._path = home / _SOCKET
        self._locks = home / _LOCKS
        self._clock = clock
        self._program = program
        self._health: tuple[bool, str] = (False, NO_APP_SERVER)
        """Whether connected, and the detail, as emitted last."""
        self._state = ServerState()
        self._dead: tuple[int, int] | None = None
        """The socket that a killed app-server left behind."""
        self._refused: tuple[int, int] | None = None
        """The socket of an app-server whose requests a connection has changed."""

    @property
    def connected(self) -> bool:
        """Whether `stream` is connected to an app-server now."""
        return self._health[0]

    @property
    def problem(self) -> str | None:
        """Why a running app-server cannot be connected to, or None."""
        ok, detail = self._health
        return None if ok or detail == NO_APP_SERVER else detail

    @property
    def unanswered(self) -> int:
        """Number of requests that the app-server has sent; other clients answer them."""
        return self._state.requests

    async def stream(
        self,
        emit: Callable[[Sequence[Event]], None],
        is_idle: Callable[[], bool] = lambda: False,
    ) -> None:
        """Emit status changes while an app-server is running, until cancelled.

        `SourceSeen` is emitted when a connection opens, closes or fails, and when messages are malformed; not
        while no app-server has been found. A thread that is no longer loaded when the connection is opened
        again is emitted as `not-loaded`.

        Args:
            is_idle: returns whether nothing happens in this home: then an app-server is looked for less
                often.
        """
        failures = 0
        while True:
            try:
                async with self._connection(self._state, self._clock.now) as connection:
                    failures = 0
                    for number in count(1):
                        if connection.subscribed:
                            break
                        if number % _BURST_MESSAGES == 0:
                            await asyncio.sleep(_BURST_PAUSE_S)
                        self._emit_health(emit, True, _connected_detail(self._state))
                        if events := await connection.receive():
                            emit(events)
            except _AbsentError:
                failures = 0
                self._emit_health(emit, False, NO_APP_SERVER)
                self._state = ServerState()
                pause = _IDLE_SEARCH_INTERVAL_S if is_idle() else _SEARCH_INTERVAL_S
            except OSError as error:
                failures = failures + 1 if not self.connected else 0
                pause = _RETRY_DELAYS_S[min(failures, len(_RETRY_DELAYS_S) - 1)]
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
                    connection = AppServerConnection(socket, state, now)
                    try:
                        await connection.initialize()
                        yield connection
                    finally:
                        await socket.close()  # with a close frame, also when cancelled
        except UnprovenError as error:
            raise PermissionError(f"not used: the control socket {error}") from error
        except RenamedError:
            self._refused = identity
            raise
        except (ConnectionRefusedError, FileNotFoundError) as error:
            self._dead = identity
            raise _AbsentError from error
        except (WebSocketException, EOFError) as error:
            raise ConnectionError(f"app-server: {error}") from error

    def _find_socket(self) -> tuple[int, int]:
        """Return the identity of the socket behind the link. Codex places it where the path is short enough
        for any home."""
        # first, since it is the usual result many times a second
        if not os.path.lexists(self._path):
            raise _AbsentError
        try:
            status = self._path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _AbsentError from error
        identity = (status.st_ino, status.st_mtime_ns)
        if identity == self._dead or not self._is_loaded_since(status.st_mtime):
            raise _AbsentError
        if identity == self._refused:
            raise RenamedError
        return identity

    def _is_loaded_since(self, created: float) -> bool:
        """Return whether a thread has been loaded since the socket was created: each has a lock file then."""
        try:
            with os.scandir(self._locks) as locks:
                return any(
                    lock.name.endswith(".lock") and lock.name[0] != "." and lock.stat().st_mtime >= created
                    for lock in locks
                )
        except OSError:
            return False

    def _emit_health(self, emit: Callable[[Sequence[Event]], None], ok: bool, detail: str) -> None:
        if (ok, detail) != self._health:
            self._health = (ok, detail)
            emit([SourceSeen(at=self._clock.now(), name=self.name, ok=ok, detail=detail)])


class _AbsentError(ConnectionError):
    """No app-server is running, or no other client has initialized it yet."""


def _connected_detail(state: ServerState) -> str:
    """Return the detail of a healthy source. It changes only when the number of malformed messages
    doubles."""
    if not state.malformed:
        return "connected"
    return f"connected, {1 << state.malformed.bit_length() - 1} or more messages not understood"


def _reason(error: OSError) -> str:
    return clean_line(str(error), 200) or "the app-server does not answer"
