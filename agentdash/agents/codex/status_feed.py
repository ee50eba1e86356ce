"""Codex's own word on its threads: the status feed of its app-server, listened to and never answered.

From 0.160 on the TUI starts a daemon (`codex app-server --managed-daemon`) that speaks JSON-RPC over a WebSocket on
`$CODEX_HOME/app-server-control/app-server-control.sock`, a link to a socket under `/tmp/codex-daemon-UID/`. `codex exec` has none, nor
have older releases. Whoever connects and says `initialize` is sent `thread/status/changed` of every thread, with nothing to subscribe
to. Seen with the real 0.169.0 (0.160.0 is alike in all that was tried):

- Connecting and asking takes 1-2 ms, `thread/read` 1-2 ms for each thread. `waitingOnApproval` arrives 1-11 ms after Codex sent it; that
  is 12-60 ms before the command's text and 0.7-0.9 s before the menu is on the TUI's screen. A question (`request_user_input`) gives
  `waitingOnUserInput`, a turn that ended in an error `systemError`, an interrupted one `idle`.
- `thread/loaded/list` and a `thread/read` of each give everything: also children, each with its own status, threads that have no file
  yet, and which are helpers (`ephemeral`, no rollout). `thread/list` has `status` with `activeFlags` too, but leaves out children unless
  `sourceKinds` names them, threads without a file, and `threadSource`, and it scans the disk. Threads that are not loaded in this very
  process are `notLoaded` there.
- The daemon outlives its TUI with and without us (70 minutes seen), and so does a prompt: a TUI killed at one leaves its thread at
  `waitingOnApproval`. A killed daemon leaves its link behind; connecting is refused.
- **A child that is spawned while we are connected has us as a subscriber, unasked**: we are sent all its items and its requests for
  approval. Silence does no harm: the TUI's answer counts, and neither hanging up nor a killed client denies anything. But a thread that
  has a subscriber is never unloaded (others are after a minute of idleness). So at the first sign of it, `turn/started`, which only
  subscribers get, we hang up and dial again: that ends the subscription, and threads that exist already do not get us as another.

- **Whoever says `initialize` first gives the app-server its name**: all its threads then say `originator: "agentdash"`. So we dial only
  when a thread has been loaded: then Codex's own client has introduced itself, and who comes later changes nothing.

Nothing is asked that changes anything, and nothing that Codex asks is answered: see `ALLOWED`.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

import msgspec

from agentdash import __version__
from agentdash.model.clock import Clock
from agentdash.model.events import Event, SourceSeen, StatusPushed
from agentdash.model.sanitize import clean_line

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

ALLOWED: Final = frozenset(
    (
        "initialize",
        "initialized",
        "thread/loaded/list",
        "thread/list",
        "thread/read",
        "thread/backgroundTerminals/list",
    )
)
"""The methods that may be sent. The socket would take others too, also such as start turns and grant approvals."""

_SOCKET: Final = "app-server-control/app-server-control.sock"
_LOCKS: Final = "thread-writer-locks"
_PATIENCE: Final = 2.0
"""Seconds that an app-server has for opening the connection, and again for answering `initialize`; it takes milliseconds."""
_MESSAGE_CAP: Final = 16 << 20
"""Bytes of one message; longer ones end the connection. Codex's own limit for one frame. Ours are short, but a read brings the preview."""
_THREADS_CAP: Final = 1_000
"""Loaded threads asked about at most."""
_RETRY: Final = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds before dialling again, each time that talking fails."""
_MOMENT: Final = 0.05
"""Seconds before looking again whether there is an app-server, and whether Codex's own client has introduced itself to it. In a fresh home
the socket comes 0.35 s before the first menu is on the screen, and the first thread's lock 0.15 s before it. A look takes 20 µs."""
_CALM: Final = 0.25
"""Likewise while nothing happens in this home."""
_GREETING, _LISTING = "initialize", "thread/loaded/list"
_ABSENT: Final = "no app-server is running"

_T = TypeVar("_T")
_ThreadId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
_Flag = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z]{1,40}\Z")]
_STATUS: Final[dict[str, Literal["active", "idle", "not-loaded", "system-error"]]] = {
    "active": "active",
    "idle": "idle",
    "notLoaded": "not-loaded",
    "systemError": "system-error",
}


class ControlFeed:
    """What Codex's app-server says of the threads it has loaded.

    Args:
        home: the Codex home.
        clock: what tells the time, and how long to wait before dialling again.
        uid: the user whose sockets may be connected to; by default the one we run as.
    """

    name = "codex feed"

    def __init__(self, home: Path, clock: Clock, *, uid: int | None = None) -> None:
        self._path, self._locks, self._clock = home / _SOCKET, home / _LOCKS, clock
        self._uid = os.getuid() if uid is None else uid
        self._told: tuple[bool, str] = (False, _ABSENT)
        self._seen = _Seen()
        self._dead: tuple[int, int] | None = None
        """The socket that a killed app-server left behind: nobody will ever answer there."""

    @property
    def connected(self) -> bool:
        """Whether `run` is listening to an app-server now."""
        return self._told[0]

    @property
    def problem(self) -> str | None:
        """Why an app-server that is there cannot be listened to; None where there is none."""
        ok, detail = self._told
        return None if ok or detail == _ABSENT else detail

    @property
    def unanswered(self) -> int:
        """Requests that the app-server has sent us and somebody else has to answer."""
        return self._seen.requests

    async def stream(
        self, emit: Callable[[Sequence[Event]], None], is_idle: Callable[[], bool] = lambda: False
    ) -> None:
        """Says what threads are doing whenever an app-server is there, until cancelled.

        `SourceSeen` is said when that begins, ends or fails, and when messages are not understood; not for an app-server that was
        never there. A thread that is no longer loaded when we dial again is said to be `not-loaded`.

        Args:
            emit: takes what is said.
            is_calm: whether nothing happens in this home: then an app-server is not expected any moment.
        """
        failed = 0
        while True:
            try:
                async with self._dialled(self._seen, self._clock.now) as call:
                    failed = 0
                    while not call.joined:
                        self._tell(emit, True, _connected(self._seen))
                        if news := await call.step():
                            emit(news)
            except _AbsentError:
                failed, pause = 0, _CALM if is_idle() else _MOMENT
                self._tell(emit, False, _ABSENT)
            except OSError as error:
                failed = failed + 1 if not self.connected else 0
                pause = _RETRY[min(failed, len(_RETRY) - 1)]
                self._tell(emit, False, _reason(error))
            else:
                continue  # hung up to get rid of a subscription
            self._seen = _Seen()
            await self._clock.sleep_until(self._clock.now() + pause)

    async def poll(self, at: float, timeout: float = 0.3) -> list[Event]:  # noqa: ASYNC109 - what has come by then is returned
        """Asks once: the status of every loaded thread, as of `at` (unix seconds), then how that went.

        What has come within `timeout` seconds is returned. Nothing where no app-server is running.
        """
        seen, out = _Seen(), list[Event]()
        try:
            async with asyncio.timeout(timeout), self._dialled(seen, lambda: at) as call:
                while not call.settled:
                    out += await call.step()
        except _AbsentError:
            return []
        except OSError as error:
            return [*out, SourceSeen(at=at, name=self.name, ok=False, detail=_reason(error))]
        return [*out, SourceSeen(at=at, name=self.name, ok=True, detail=_connected(seen))]

    @asynccontextmanager
    async def _dialled(self, seen: _Seen, now: Callable[[], float]) -> AsyncIterator[_Call]:
        """A connection on which Codex has answered.

        Raises:
            _AbsentError: nobody is there.
            OSError: somebody is, but cannot be talked to, or has hung up.
        """
        path, made = self._socket()
        from websockets.asyncio.client import unix_connect  # noqa: PLC0415 - only now is it worth its import
        from websockets.exceptions import WebSocketException  # noqa: PLC0415

        dial = unix_connect(
            path,
            "ws://localhost/",
            open_timeout=_PATIENCE,
            close_timeout=0.5,
            max_size=_MESSAGE_CAP,
            compression=None,
        )
        try:
            async with dial as socket:
                call = _Call(socket, seen, now)
                try:
                    await call.greet()
                    yield call
                finally:
                    await socket.close()  # politely, also when cancelled
        except (ConnectionRefusedError, FileNotFoundError) as error:
            self._dead = made
            raise _AbsentError from error
        except (WebSocketException, EOFError) as error:
            raise ConnectionError(f"app-server: {error}") from error

    def _socket(self) -> tuple[str, tuple[int, int]]:
        """The socket behind the link, and what tells it from the next one. Codex puts it where its path is short enough for any home."""
        if not os.path.lexists(
            self._path
        ):  # the usual case, asked many times a second: to resolve a path takes ten times as long
            raise _AbsentError
        path = os.path.realpath(self._path)
        try:
            status = os.stat(path)  # noqa: PTH116 - as the line above
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _AbsentError from error
        if not stat.S_ISSOCK(status.st_mode):
            raise OSError(f"{path} is not a socket")
        if status.st_uid != self._uid:
            raise PermissionError(f"{path} belongs to user {status.st_uid}")
        if not self._loaded_since(status.st_mtime):
            raise _AbsentError
        if (made := (status.st_ino, status.st_mtime_ns)) == self._dead:
            raise _AbsentError
        return path, made

    def _loaded_since(self, began: float) -> bool:
        """Whether a thread has been loaded since the socket was made: each has a lock file then."""
        try:
            with os.scandir(self._locks) as locks:
                return any(
                    lock.name.endswith(".lock") and lock.name[0] != "." and lock.stat().st_mtime >= began
                    for lock in locks
                )
        except OSError:
            return False

    def _tell(self, emit: Callable[[Sequence[Event]], None], ok: bool, detail: str) -> None:
        if (ok, detail) != self._told:
            self._told = (ok, detail)
            emit([SourceSeen(at=self._clock.now(), name=self.name, ok=ok, detail=detail)])


class _AbsentError(ConnectionError):
    """No app-server is running, or nobody has introduced himself to it yet: any moment now."""


class _Seen:
    """What is remembered from one connection to the next, of the same app-server."""

    def __init__(self) -> None:
        self.said: dict[str, StatusPushed] = {}
        """The last status of each thread that is loaded."""
        self.left: set[str] = set()
        """Threads that we were made a subscriber of, and hung up on."""
        self.requests = 0
        """Requests that Codex sent us, left unanswered."""
        self.garbled = 0
        """Messages that were not understood."""


class _Status(msgspec.Struct, rename="camel"):
    type: Literal["active", "idle", "notLoaded", "systemError"]
    active_flags: tuple[_Flag, ...] = ()


class _About(msgspec.Struct, rename="camel"):
    """Whom a notification or a request is about."""

    thread_id: _ThreadId | None = None


class _Changed(msgspec.Struct, rename="camel"):
    """Of `thread/status/changed`."""

    thread_id: _ThreadId
    status: _Status


class _Thread(msgspec.Struct, rename="camel"):
    id: _ThreadId
    status: _Status
    ephemeral: bool = False
    thread_source: str | None = None

    @property
    def helper(self) -> bool:
        """Whether Codex runs it for itself: titles, reviews. What is ephemeral has no rollout."""
        return self.ephemeral or self.thread_source == "thread_title"


class _Started(msgspec.Struct):
    """Of `thread/started`; also what `thread/read` gives."""

    thread: _Thread


class _Loaded(msgspec.Struct):
    data: list[_ThreadId]


class _Message(msgspec.Struct):
    """A response (no method), a notification (no id) or a request; what it carries is not decoded until it is known to matter."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    emitted_at: float | None = msgspec.field(default=None, name="emittedAtMs")


_message = msgspec.json.Decoder(_Message)


class _Call:
    """One connection: asks what is loaded, then listens."""

    def __init__(self, socket: ClientConnection, seen: _Seen, now: Callable[[], float]) -> None:
        self._socket, self._seen, self._now = socket, seen, now
        self._greeted, self._sent = False, 0
        self._asked: dict[int, str] = {}
        """Requests under way, by their number, and what they ask about: a thread, or `_GREETING`, `_LISTING`."""
        self._reading: dict[str, StatusPushed | None] = {}
        """Threads being read, with what was pushed of them meanwhile: that is kept back until it is known whether they are helpers."""
        self._known: dict[str, bool] = {}
        """Threads that have been read: whether they are helpers."""
        self.joined = False
        """Whether Codex has made us a subscriber of a thread, so that it is time to hang up."""

    async def greet(self) -> None:
        """Introduces us and asks what is loaded.

        Raises:
            TimeoutError: no answer.
        """
        async with asyncio.timeout(_PATIENCE):
            await self._ask(
                "initialize", {"clientInfo": {"name": "agentdash", "version": __version__}}, _GREETING
            )
            while self._asked:
                await self.step()
        self._greeted = True
        await self._send("initialized")
        await self._ask("thread/loaded/list", {}, _LISTING)

    @property
    def settled(self) -> bool:
        """Whether all that was asked has been answered."""
        return not self._asked

    async def step(self) -> list[StatusPushed]:
        """Takes the next message; what it says of the threads' status."""
        text = await self._socket.recv()
        try:
            message = _message.decode(text)
            at = self._now() if message.emitted_at is None else message.emitted_at / 1000
            match message.method:
                case None:
                    return await self._answered(message, at)
                case _ if not self._greeted:  # what is loaded will be asked anyway
                    return []
                case "thread/status/changed":
                    changed = _read(message.params, _Changed)
                    return await self._pushed(_event(at, changed.thread_id, changed.status))
                case "thread/started":
                    return self._met(_read(message.params, _Started).thread, at)
            if message.id is not None:
                self._seen.requests += 1
            if message.id is not None or message.method == "turn/started":
                self._subscribed(_read(message.params, _About).thread_id)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._seen.garbled += 1
        return []

    async def _answered(self, message: _Message, at: float) -> list[StatusPushed]:
        about = self._asked.pop(message.id, _GREETING) if isinstance(message.id, int) else _GREETING
        if about == _GREETING:
            return []
        if about == _LISTING:
            return await self._listed(_read(message.result, _Loaded).data)
        held = self._reading.pop(about, None)
        try:
            return self._met(_read(message.result, _Started).thread, at, held)
        except msgspec.MsgspecError:  # refused: it is gone by now
            return [] if held is None else self._say(held)

    async def _listed(self, threads: Sequence[str]) -> list[StatusPushed]:
        """What has gone since the last connection; the others are asked about."""
        gone = self._seen.said.keys() - set(threads)
        for thread in threads[:_THREADS_CAP]:
            await self._inquire(thread)
        return [
            said
            for thread in gone
            for said in self._say(StatusPushed(at=self._now(), thread=thread, status="not-loaded"))
        ]

    async def _inquire(self, thread: str) -> None:
        if thread not in self._known and thread not in self._reading:
            self._reading[thread] = None
            await self._ask("thread/read", {"threadId": thread, "includeTurns": False}, thread)

    async def _pushed(self, event: StatusPushed) -> list[StatusPushed]:
        if event.thread not in self._known:  # a child, spawned this moment
            await self._inquire(event.thread)
            self._reading[event.thread] = event
            return []
        return [] if self._known[event.thread] else self._say(event)

    def _met(self, thread: _Thread, at: float, newer: StatusPushed | None = None) -> list[StatusPushed]:
        self._known[thread.id] = thread.helper
        return [] if thread.helper else self._say(newer or _event(at, thread.id, thread.status))

    def _say(self, event: StatusPushed) -> list[StatusPushed]:
        """The event, if it is news."""
        last = self._seen.said.pop(event.thread, None)
        if event.status != "not-loaded":
            self._seen.said[event.thread] = event
        return [] if last and (last.status, last.flags) == (event.status, event.flags) else [event]

    def _subscribed(self, thread: str | None) -> None:
        if (
            thread and thread not in self._seen.left
        ):  # once for each: should another version subscribe us again, we stay
            self._seen.left.add(thread)
            self.joined = True

    async def _ask(self, method: str, params: dict[str, object], about: str) -> None:
        self._sent += 1
        self._asked[self._sent] = about
        await self._send(method, params, self._sent)

    async def _send(
        self, method: str, params: dict[str, object] | None = None, number: int | None = None
    ) -> None:
        """The one place where anything is sent.

        Raises:
            PermissionError: the method is not one of those that only read.
        """
        if method not in ALLOWED:
            raise PermissionError(f"{method} must not be sent: agentdash only reads")
        message = {"id": number, "method": method, "params": params}
        await self._socket.send(
            msgspec.json.encode({k: v for k, v in message.items() if v is not None}).decode()
        )


def _read(raw: msgspec.Raw, kind: type[_T]) -> _T:
    return msgspec.json.decode(raw, type=kind)


def _event(at: float, thread: str, status: _Status) -> StatusPushed:
    return StatusPushed(at=at, thread=thread, status=_STATUS[status.type], flags=status.active_flags)


def _connected(seen: _Seen) -> str:
    """Told anew each time that the number doubles."""
    return (
        f"connected, {1 << seen.garbled.bit_length() - 1} or more messages not understood"
        if seen.garbled
        else "connected"
    )


def _reason(error: OSError) -> str:
    return clean_line(str(error), 200) or "the app-server does not answer"
