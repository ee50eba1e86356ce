"""Read tmux panes: their properties and their screens.

One poll makes two calls of `tmux` per server: `list-panes`, and all `capture-pane`s chained. libtmux is not
used here: one hostile title makes it fail for the whole server, it has no timeout, and it starts a process
per pane.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from agentdash.model.events import Event, PaneDrawn, PaneGone, PaneSeen, SourceSeen
from agentdash.model.pane import NO_SERVER, NO_TMUX, Pane, PaneKey, tmux_source
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.model.times import possible_time

_FIELDS: Final = (
    *(
        "pane_id",
        "pane_pid",
        "pane_tty",
        "pid",
        "pane_width",
        "pane_height",
        "pane_active",
        "window_active",
        "pane_in_mode",
        "cursor_flag",
    ),
    *("pane_dead", "pane_dead_status", "pane_dead_signal", "pane_dead_time", "window_activity"),
    *("session_name", "window_index", "window_name", "pane_current_command", "pane_title"),
    "window_active_clients_list",
)
"""All of these exist in tmux 3.2a; `pane_dead_signal` and `pane_dead_time` since 3.3, empty before.
`pane_current_path` is left out: /proc is more reliable."""
_REDRAW_WINDOW_S: Final = 2.0
"""A window that drew within this time may have drawn again unnoticed: `window_activity` counts whole
seconds."""
_CANCELLED_CALL_S: Final = 0.2
"""Grace for a cancelled call to end by itself; a call takes milliseconds."""
_TMUX_VERSION_TIMEOUT_S: Final = 2.0
_NO_SERVER_MESSAGES: Final = (
    "no server running",
    "No such file",
    "Connection refused",
    "server exited",
    "lost server",
)
"""What tmux prints when there is no server, by version and circumstance."""
_MAX_OUTPUT_BYTES: Final = 32 << 20
"""Of one call of `tmux`; 500 panes of 200 columns and 50 lines have 5 MB."""
_MAX_SCREEN_CHARS: Final = 1 << 20
"""Of a capture; no terminal has more."""


# ---------------------------------------------------------------- servers


class TmuxServer(msgspec.Struct, frozen=True):
    """A tmux server, running or not."""

    label: str
    """As in `PaneKey.server`: `default`, `-L NAME`, or the path of its socket."""
    args: tuple[str, ...]
    """The options that select this server, regardless of `TMUX`."""
    socket: Path
    """Where it listens while it runs."""

    @property
    def source(self) -> str:
        """The name under which its health is reported."""
        return tmux_source(self.label)


def servers(
    names: Sequence[str], sockets: Sequence[Path], default: bool, environ: Mapping[str, str] = os.environ
) -> list[TmuxServer]:
    """Return the servers that are configured, each once.

    Args:
        names: the servers of `tmux -L NAME`.
        sockets: the servers of `tmux -S PATH`.
        default: also the server of plain `tmux`, and the one that agentdash runs in.
        environ: supplies `TMUX` and `TMUX_TMPDIR`.
    """
    folder = _socket_folder(environ)
    paths = [folder / name for name in names] + list(sockets)
    if default:
        own = own_socket(environ)
        paths = [folder / "default", *([own] if own else []), *paths]
    return list(dict.fromkeys(_server(path, folder) for path in paths))


def current_pane(environ: Mapping[str, str] = os.environ) -> PaneKey | None:
    """Return the pane that agentdash runs in, by `TMUX` and `TMUX_PANE`; None outside of tmux."""
    socket, pane = own_socket(environ), environ.get("TMUX_PANE", "")
    if socket is None or not re.fullmatch(r"%\d+", pane):
        return None
    return PaneKey(_server(socket, _socket_folder(environ)).label, pane)


def own_server(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the label of the server that agentdash runs in, by `TMUX`; None outside of tmux."""
    socket = own_socket(environ)
    return _server(socket, _socket_folder(environ)).label if socket else None


def beside(pane: str, environ: Mapping[str, str] = os.environ) -> PaneKey | None:
    """Return the key of a pane, by its id, on the server that agentdash runs in; None outside of tmux."""
    here = current_pane(environ)
    return PaneKey(here.server, pane) if here else None


def own_socket(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the socket of the tmux server that agentdash runs in, by `TMUX`; None outside of tmux."""
    parts = environ.get("TMUX", "").rsplit(",", 2)  # socket, pid of the server, session
    return Path(parts[0]) if len(parts) == 3 and parts[0] else None


def _socket_folder(environ: Mapping[str, str]) -> Path:
    # the rule by which tmux itself places its sockets
    return Path(environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}").resolve()  # noqa: S108


def _server(socket: Path, folder: Path) -> TmuxServer:
    socket = socket.expanduser().parent.resolve() / socket.name
    if socket.parent != folder:
        return TmuxServer(clean_line(str(socket)), ("-S", str(socket)), socket)
    label = "default" if socket.name == "default" else clean_line(f"-L {socket.name}")
    return TmuxServer(label, ("-L", socket.name), socket)


def tmux_version() -> str | None:
    """Return the output of `tmux -V`, `tmux 3.3a`; None where tmux is not installed or does not answer."""
    try:
        done = subprocess.run(
            ["tmux", "-V"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TMUX_VERSION_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return clean_line(done.stdout)


# ---------------------------------------------------------------- panes


class TmuxSensor:
    """Reports panes as they appear, change, draw and vanish.

    A server that does not answer is reported as an unhealthy source; its panes stay as they were last seen.
    Once it answers again, panes that it does not list any more are reported as gone.

    Args:
        servers: the servers to read.
        timeout: seconds after which a server that does not answer is given up.
        skip: a pane to leave out.
    """

    def __init__(
        self, servers: Sequence[TmuxServer], *, timeout: float = 2.0, skip: PaneKey | None = None
    ) -> None:
        self._views = [_ServerView(server, timeout, skip) for server in servers]

    @property
    def terminals(self) -> set[str]:
        """The paths of the terminals of all panes, as listed last."""
        return {row.terminal for view in self._views for row in view.rows.values() if not row.pane.dead}

    async def poll(self, at: float) -> list[Event]:
        """Return what has changed since the last poll, and always a `SourceSeen` of each server.

        Args:
            at: now, unix seconds; the time of all events.
        """
        polled = await asyncio.gather(*(view.poll(at) for view in self._views))
        return [event for events in polled for event in events]


class _NoAnswerError(Exception):
    """A server did not answer; the message is the reason, one clean line."""


class _Row(msgspec.Struct, frozen=True):
    pane: Pane
    activity: int
    """When the pane's window last drew anything, unix seconds, whole."""
    terminal: str
    """Path of the pane's terminal."""


class _ServerView:
    """One server, as polled last."""

    def __init__(self, server: TmuxServer, timeout: float, skip: PaneKey | None) -> None:
        self._server = server
        self._timeout = timeout
        self._skip = skip
        self.rows: dict[str, _Row] = {}
        """Panes by id, as listed last."""
        self._screens: dict[str, str] = {}
        """Captures by pane id."""
        self._absent = False
        """Whether the last poll found no server."""

    async def poll(self, at: float) -> list[Event]:
        try:
            if self._is_still_absent():
                raise _NoAnswerError(NO_SERVER)
            rows, malformed = await self._list()
            drawn = await self._capture(
                [key for key, row in rows.items() if self._may_have_drawn(key, row, at)]
            )
        except _NoAnswerError as error:
            self._absent = str(error) == NO_SERVER
            return [SourceSeen(at=at, name=self._server.source, ok=False, detail=str(error))]
        events: list[Event] = [
            PaneGone(at=at, key=row.pane.key) for key, row in self.rows.items() if key not in rows
        ]
        for key, row in rows.items():
            if key not in self.rows or row.pane != self.rows[key].pane:
                events.append(PaneSeen(at=at, pane=row.pane))
            if key in drawn and drawn[key] != self._screens.get(key):
                # a screen that is seen for the first time has not changed since its window last drew
                since = None if key in self._screens else min(at, row.activity + 1.0)
                screen = _parse_screen(drawn[key])
                events.append(PaneDrawn(at=at, key=row.pane.key, screen=screen, since=since))
        self.rows = rows
        self._screens = {key: screen for key, screen in (self._screens | drawn).items() if key in rows}
        detail = f"{len(rows)} pane{'s' * (len(rows) != 1)}"
        detail += f", {malformed} not understood" if malformed else ""
        return [*events, SourceSeen(at=at, name=self._server.source, ok=True, detail=detail)]

    def _is_still_absent(self) -> bool:
        """Return whether there was no server and is no socket: then no `tmux` is started, the main cost of a
        poll."""
        return self._absent and not os.path.lexists(self._server.socket)

    def _may_have_drawn(self, key: str, row: _Row, at: float) -> bool:
        return key not in self._screens or row != self.rows.get(key) or at - row.activity < _REDRAW_WINDOW_S

    async def _list(self) -> tuple[dict[str, _Row], int]:
        """Return all panes by id, and the number of malformed rows."""
        nonce = secrets.token_hex(
            6
        )  # titles and program names may contain anything, line breaks too, but not this
        field, end = f"<{nonce}>", f"</{nonce}>"
        status, text, stderr = await self._tmux(
            "list-panes", "-a", "-F", field.join(f"#{{{name}}}" for name in _FIELDS) + end
        )
        if status != 0:
            raise _NoAnswerError(_failure_reason(stderr))
        rows: dict[str, _Row] = {}
        malformed = 0
        for line in text.split(f"{end}\n")[:-1]:
            row = _parse_row(self._server.label, line.split(field))
            if row is None:
                malformed += 1
            # a linked window is listed several times
            elif row.pane.key != self._skip and (row.pane.key.id not in rows or row.pane.active):
                rows[row.pane.key.id] = row
        return rows, malformed

    async def _capture(self, keys: list[str]) -> dict[str, str]:
        """Return the screens of these panes; panes that have gone meanwhile are left out."""
        drawn: dict[str, str] = {}
        while keys:
            nonce = secrets.token_hex(6)
            args = [
                arg
                for key in keys
                for arg in ("capture-pane", "-e", "-p", "-t", key, ";", "display-message", "-p", nonce, ";")
            ]
            status, text, _ = await self._tmux(*args[:-1])
            screens = text.split(f"{nonce}\n")[:-1]
            drawn |= dict(zip(keys, screens, strict=False))
            # the first pane that is gone fails, and so do all after it: continue behind it
            keys = keys[len(screens) + 1 :] if status else []
        return drawn

    async def _tmux(self, *args: str) -> tuple[int, str, str]:
        """Return exit status, stdout and stderr of one call.

        A cancelled call is allowed to end first: asyncio would kill and reap a process that has just ended,
        and log an unknown child.
        """
        call = asyncio.create_task(self._call(*args))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            with suppress(_NoAnswerError, TimeoutError):
                async with asyncio.timeout(_CANCELLED_CALL_S):
                    await call
            raise

    async def _call(self, *args: str) -> tuple[int, str, str]:
        """Run `tmux`. With `-u`, since tmux replaces non-ASCII characters under a plain locale."""
        try:
            transport, call = await asyncio.get_running_loop().subprocess_exec(
                _TmuxCall, *("tmux", "-u", *self._server.args, *args), stdin=asyncio.subprocess.DEVNULL
            )
        except FileNotFoundError:
            raise _NoAnswerError(NO_TMUX) from None
        except OSError as error:
            raise _NoAnswerError(f"tmux cannot be started: {error.strerror}") from None
        try:
            async with asyncio.timeout(self._timeout):
                await call.ended.wait()
        except TimeoutError:
            raise _NoAnswerError(f"no answer within {self._timeout:g} s") from None
        finally:
            transport.close()  # kills the process if it has not ended
            with suppress(TimeoutError):  # reap it here: a loop that is closed next could not
                async with asyncio.timeout(self._timeout):
                    await call.ended.wait()
        if call.overflowed:
            raise _NoAnswerError(f"wrote more than {_MAX_OUTPUT_BYTES >> 20} MB")
        return (
            transport.get_returncode() or 0,
            call.output[1].decode("utf-8", "replace"),
            call.output[2].decode("utf-8", "replace"),
        )


class _TmuxCall(asyncio.SubprocessProtocol):
    """A running `tmux`.

    Not `asyncio.subprocess.Process`, which waits for its pipes to close even after a kill: tmux passes them
    to its server, and one that hangs would never close them.
    """

    def __init__(self) -> None:
        self.output = {1: bytearray(), 2: bytearray()}
        """What it wrote, by file descriptor: 1 stdout, 2 stderr."""
        self.ended = asyncio.Event()
        self.overflowed = False
        """Whether it wrote more than is read."""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if len(self.output[fd]) + len(data) <= _MAX_OUTPUT_BYTES:
            self.output[fd] += data
        elif not self.overflowed and self._transport is not None:
            self.overflowed = True
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.ended.set()


def _failure_reason(stderr: str) -> str:
    """Return why a server could not be reached, from what tmux printed."""
    if "Operation not permitted" in stderr:
        return "may not be connected to from inside of this sandbox (Operation not permitted)"
    if "Permission denied" in stderr:
        return "belongs to another user (Permission denied)"
    if any(message in stderr for message in _NO_SERVER_MESSAGES):
        return NO_SERVER
    return clean_line(stderr.partition("\n")[0]) or "failed without a message"


# ---------------------------------------------------------------- rows


def _parse_row(server: str, values: list[str]) -> _Row | None:
    """Parse a row of `list-panes`; None where it is malformed."""
    fields = dict(zip(_FIELDS, values, strict=False))
    if len(values) != len(_FIELDS) or not re.fullmatch(r"%\d+", fields["pane_id"]):
        return None
    try:
        pane = Pane(
            key=PaneKey(server, fields["pane_id"]),
            session=clean_line(fields["session_name"]),
            window=clean_line(f"{fields['window_index']}:{fields['window_name']}"),
            pid=_parse_pid(fields["pane_pid"], dead=fields["pane_dead"] == "1"),
            command=clean_line(fields["pane_current_command"]),
            title=clean_line(fields["pane_title"]),
            width=int(fields["pane_width"]),
            height=int(fields["pane_height"]),
            active=fields["pane_active"] == fields["window_active"] == "1",
            dead=fields["pane_dead"] == "1",
            dead_status=int(fields["pane_dead_status"]) if fields["pane_dead_status"] else None,
            dead_signal=_parse_signal(fields["pane_dead_signal"]),
            dead_at=possible_time(float(fields["pane_dead_time"] or 0)),
            in_mode=fields["pane_in_mode"] not in ("", "0"),
            cursor_visible=fields["cursor_flag"] == "1",
            server_pid=int(fields["pid"]),
            clients=tuple(filter(None, clean_line(fields["window_active_clients_list"]).split(","))),
        )
        activity = possible_time(float(fields["window_activity"])) or 0.0
        return _Row(pane=pane, activity=int(activity), terminal=fields["pane_tty"])
    except ValueError:
        return None


def _parse_pid(text: str, *, dead: bool) -> int:
    """Parse the pid of a pane's first process: tmux 3.8 prints none for a dead pane."""
    return 0 if dead and not text else int(text)


def _parse_signal(text: str) -> int | None:
    """Parse the signal that ended a pane: tmux prints its number, or its name where the system has names
    (BSD, macOS)."""
    if not text or text.isdecimal():
        return int(text) if text else None
    return signal.Signals.__members__.get(f"SIG{text.upper().removeprefix('SIG')}")


# ---------------------------------------------------------------- screens

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_LINE_DRAWING_RUN = re.compile(r"\x0e([^\x0f]*)\x0f?")
"""curses programs print line-drawing characters as letters between SO and SI; a run may span several
lines."""
_LINE_DRAWING: Final = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")


def _parse_screen(text: str) -> tuple[str, ...]:
    """Return a capture as clean lines. It is taken with colours, since without them boxes come as plain
    letters."""
    plain = _LINE_DRAWING_RUN.sub(lambda run: run[1].translate(_LINE_DRAWING), _COLOUR.sub("", text))
    lines = clean_block(plain, _MAX_SCREEN_CHARS).removesuffix("\n").split("\n")
    return tuple(line.rstrip() for line in lines)
