"""tmux panes: what they are, and what they show. Two calls of `tmux` a look and server: `list-panes`, and all `capture-pane`s chained.

libtmux is not used here: one hostile title makes it fail for the whole server, it has no timeout, and it takes a process per pane.
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
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.sanitize import clean_block, clean_line

_FIELDS: Final = (
    *(
        "pane_id",
        "pane_pid",
        "pid",
        "pane_width",
        "pane_height",
        "pane_active",
        "window_active",
        "pane_in_mode",
        "cursor_flag",
    ),
    *("pane_dead", "pane_dead_status", "pane_dead_signal", "window_activity"),
    *("session_name", "window_index", "window_name", "pane_current_command", "pane_title"),
)
"""All of these exist in tmux 3.2a; `pane_dead_signal` since 3.3, empty before. `pane_current_path` is left out: /proc knows it better."""
_RECENT: Final = 2.0
"""Seconds for which a window that drew may have drawn again unnoticed: `window_activity` counts whole seconds."""
_LAST: Final = 0.2
"""Seconds that a call may still take when nobody wants its answer any more; it takes milliseconds."""
_NOBODY: Final = "no server running"
_SCREEN: Final = 1 << 20
"""Characters of a screen that are looked at."""


# ---------------------------------------------------------------- servers


class TmuxServer(msgspec.Struct, frozen=True):
    """A tmux server to look at, running or not."""

    label: str
    """As in `PaneKey.server`: `default`, `-L NAME`, or the path of its socket."""
    args: tuple[str, ...]
    """What makes `tmux` ask this server and no other, wherever agentdash itself runs."""
    socket: Path
    """Where it listens while it runs."""

    @property
    def source(self) -> str:
        """Its name as a source of facts."""
        return "tmux" if self.label == "default" else f"tmux {self.label.removeprefix('-L ')}"


def servers(
    names: Sequence[str], sockets: Sequence[Path], default: bool, environ: Mapping[str, str] = os.environ
) -> list[TmuxServer]:
    """The servers that are asked for, each once.

    Args:
        names: of `tmux -L NAME`.
        sockets: of `tmux -S PATH`.
        default: also the one that plain `tmux` means, and the one that agentdash itself runs in.
        environ: where `TMUX` and `TMUX_TMPDIR` are looked up.
    """
    folder = _folder(environ)
    paths = [folder / name for name in names] + list(sockets)
    if default:
        own = own_socket(environ)
        paths = [folder / "default", *([own] if own else []), *paths]
    return list(dict.fromkeys(_server(path, folder) for path in paths))


def current_pane(environ: Mapping[str, str] = os.environ) -> PaneKey | None:
    """The pane that agentdash runs in, by `TMUX` and `TMUX_PANE`."""
    socket, pane = own_socket(environ), environ.get("TMUX_PANE", "")
    return (
        PaneKey(_server(socket, _folder(environ)).label, pane)
        if socket and re.fullmatch(r"%\d+", pane)
        else None
    )


def beside(pane: str, environ: Mapping[str, str] = os.environ) -> PaneKey | None:
    """A pane, by its id, of the server that agentdash runs in."""
    here = current_pane(environ)
    return PaneKey(here.server, pane) if here else None


def own_socket(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The socket of the tmux server that agentdash runs in, by `TMUX`."""
    parts = environ.get("TMUX", "").rsplit(",", 2)  # socket, server's pid, session
    return Path(parts[0]) if len(parts) == 3 and parts[0] else None


def _folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}").resolve()  # noqa: S108 - tmux's own rule


def _server(socket: Path, folder: Path) -> TmuxServer:
    socket = socket.expanduser().parent.resolve() / socket.name
    if socket.parent != folder:
        return TmuxServer(clean_line(str(socket)), ("-S", str(socket)), socket)
    label = "default" if socket.name == "default" else clean_line(f"-L {socket.name}")
    return TmuxServer(label, ("-L", socket.name), socket)


def tmux_version() -> str | None:
    """What `tmux -V` says, `tmux 3.3a`; None where tmux is not installed or does not answer."""
    try:
        done = subprocess.run(
            ["tmux", "-V"], capture_output=True, text=True, errors="replace", timeout=2, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return clean_line(done.stdout)


# ---------------------------------------------------------------- looking


class TmuxSensor:
    """Reports panes as they come, change, draw and go.

    A server that does not answer is reported as a source that is not well; its panes stay as they were last seen. Once it answers again,
    those that it does not list any more are gone.

    Args:
        servers: which servers to look at.
        timeout: seconds that a server may take to answer.
        skip: a pane to leave out.
    """

    def __init__(
        self, servers: Sequence[TmuxServer], *, timeout: float = 2.0, skip: PaneKey | None = None
    ) -> None:
        self._views = [_View(server, timeout, skip) for server in servers]

    async def poll(self, at: float) -> list[Event]:
        """What has changed since the last look, and a `SourceSeen` of each server every time.

        Args:
            at: now, unix seconds; the time of all events.
        """
        return [
            event
            for events in await asyncio.gather(*(view.poll(at) for view in self._views))
            for event in events
        ]


class _NoAnswerError(Exception):
    """Why a server did not answer, in one clean line."""


class _Row(msgspec.Struct, frozen=True):
    pane: Pane
    activity: int
    """When the pane's window last drew anything, in whole seconds."""


class _View:
    """One server, as seen last."""

    def __init__(self, server: TmuxServer, timeout: float, skip: PaneKey | None) -> None:
        self._server, self._timeout, self._skip = server, timeout, skip
        self._rows: dict[str, _Row] = {}
        self._drawn: dict[str, str] = {}
        """Screens by pane id, as captured last."""
        self._absent = False
        """Whether the last look found nobody there."""

    async def poll(self, at: float) -> list[Event]:
        try:
            if self._is_still_absent():
                raise _NoAnswerError(_NOBODY)
            rows, odd = await self._list()
            drawn = await self._capture(
                [key for key, row in rows.items() if self._may_have_drawn(key, row, at)]
            )
        except _NoAnswerError as error:
            self._absent = str(error) == _NOBODY
            return [SourceSeen(at=at, name=self._server.source, ok=False, detail=str(error))]
        events: list[Event] = [
            PaneGone(at=at, key=row.pane.key) for key, row in self._rows.items() if key not in rows
        ]
        for key, row in rows.items():
            if key not in self._rows or row.pane != self._rows[key].pane:
                events.append(PaneSeen(at=at, pane=row.pane))
            if key in drawn and drawn[key] != self._drawn.get(key):
                events.append(PaneDrawn(at=at, key=row.pane.key, screen=_screen(drawn[key])))
        self._rows = rows
        self._drawn = {key: screen for key, screen in (self._drawn | drawn).items() if key in rows}
        detail = f"{len(rows)} pane{'s' * (len(rows) != 1)}" + (f", {odd} not understood" if odd else "")
        return [*events, SourceSeen(at=at, name=self._server.source, ok=True, detail=detail)]

    def _is_still_absent(self) -> bool:
        """Whether there was no server and is no socket: that spares the call, and to start a program costs more than all else of a look."""
        return self._absent and not os.path.lexists(self._server.socket)

    def _may_have_drawn(self, key: str, row: _Row, at: float) -> bool:
        return key not in self._drawn or row != self._rows.get(key) or at - row.activity < _RECENT

    async def _list(self) -> tuple[dict[str, _Row], int]:
        """All panes by id, and how many lines about them were not understood."""
        nonce = secrets.token_hex(
            6
        )  # titles and program names may hold anything, line breaks too, but not this
        field, end = f"<{nonce}>", f"</{nonce}>"
        status, text, complaint = await self._tmux(
            "list-panes", "-a", "-F", field.join(f"#{{{name}}}" for name in _FIELDS) + end
        )
        if status != 0:
            raise _NoAnswerError(_explain(complaint))
        rows: dict[str, _Row] = {}
        odd = 0
        for line in text.split(f"{end}\n")[:-1]:
            row = _row(self._server.label, line.split(field))
            if row is None:
                odd += 1
            elif row.pane.key != self._skip and (
                row.pane.key.id not in rows or row.pane.active
            ):  # a linked window is listed several times
                rows[row.pane.key.id] = row
        return rows, odd

    async def _capture(self, keys: list[str]) -> dict[str, str]:
        """The screens of these panes; panes that have gone meanwhile are left out."""
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
            # a pane that is gone fails, and with it all that come after it: go on behind it
            keys = keys[len(screens) + 1 :] if status else []
        return drawn

    async def _tmux(self, *args: str) -> tuple[int, str, str]:
        """Exit status, output and complaints of one call. Who is cancelled lets it end first: a loop that kills what has just ended
        reaps it behind its own back, and complains of an unknown child."""
        call = asyncio.create_task(self._call(*args))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            with suppress(_NoAnswerError, TimeoutError):
                async with asyncio.timeout(_LAST):
                    await call
            raise

    async def _call(self, *args: str) -> tuple[int, str, str]:
        """One call. `-u`: else tmux replaces what is not ASCII under a plain locale."""
        try:
            transport, call = await asyncio.get_running_loop().subprocess_exec(
                _Call, *("tmux", "-u", *self._server.args, *args), stdin=asyncio.subprocess.DEVNULL
            )
        except FileNotFoundError:
            raise _NoAnswerError("tmux is not installed") from None
        except OSError as error:
            raise _NoAnswerError(f"tmux cannot be started: {error.strerror}") from None
        try:
            async with asyncio.timeout(self._timeout):
                await call.ended.wait()
        except TimeoutError:
            raise _NoAnswerError(f"no answer within {self._timeout:g} s") from None
        finally:
            transport.close()  # ends it if it has not ended
            with suppress(TimeoutError):  # and takes note of its end, which a loop that closes now could not
                async with asyncio.timeout(self._timeout):
                    await call.ended.wait()
        return (
            transport.get_returncode() or 0,
            call.said[1].decode("utf-8", "replace"),
            call.said[2].decode("utf-8", "replace"),
        )


class _Call(asyncio.SubprocessProtocol):
    """A running `tmux`. Not `asyncio.subprocess.Process`: that one waits for its pipes to close, even after a kill, and tmux hands them to
    its server. One that hangs would never close them."""

    def __init__(self) -> None:
        self.said = {1: bytearray(), 2: bytearray()}
        """What it wrote, by file descriptor."""
        self.ended = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.said[fd] += data

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.ended.set()


def _explain(complaint: str) -> str:
    """What tmux says when it cannot reach a server, in words that say what is the matter."""
    if "Operation not permitted" in complaint:
        return "may not be connected to from inside of this sandbox (Operation not permitted)"
    if "Permission denied" in complaint:
        return "belongs to another user (Permission denied)"
    if any(
        words in complaint
        for words in (
            "no server running",
            "No such file",
            "Connection refused",
            "server exited",
            "lost server",
        )
    ):
        return _NOBODY
    return clean_line(complaint.partition("\n")[0]) or "failed without a word"


# ---------------------------------------------------------------- rows


def _row(server: str, values: list[str]) -> _Row | None:
    """A line of `list-panes`; None where it is not what was asked for."""
    said = dict(zip(_FIELDS, values, strict=False))
    if len(values) != len(_FIELDS) or not re.fullmatch(r"%\d+", said["pane_id"]):
        return None
    try:
        pane = Pane(
            key=PaneKey(server, said["pane_id"]),
            session=clean_line(said["session_name"]),
            window=clean_line(f"{said['window_index']}:{said['window_name']}"),
            pid=int(said["pane_pid"]),
            command=clean_line(said["pane_current_command"]),
            title=clean_line(said["pane_title"]),
            width=int(said["pane_width"]),
            height=int(said["pane_height"]),
            active=said["pane_active"] == said["window_active"] == "1",
            dead=said["pane_dead"] == "1",
            dead_status=int(said["pane_dead_status"]) if said["pane_dead_status"] else None,
            dead_signal=_signal(said["pane_dead_signal"]),
            in_mode=said["pane_in_mode"] not in ("", "0"),
            cursor_visible=said["cursor_flag"] == "1",
            server_pid=int(said["pid"]),
        )
        return _Row(pane, int(said["window_activity"]))
    except ValueError:
        return None


def _signal(said: str) -> int | None:
    """tmux gives a number, or, where the system has names for signals (BSD, macOS), a name."""
    if not said or said.isdecimal():
        return int(said) if said else None
    return signal.Signals.__members__.get(f"SIG{said.upper().removeprefix('SIG')}")


# ---------------------------------------------------------------- screens

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_LINES_DRAWN = re.compile(r"\x0e([^\x0f]*)\x0f?")
"""Line-drawing characters of curses programs come as letters between SO and SI; a run may go on over several lines."""
_LINE_DRAWING: Final = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")


def _screen(text: str) -> tuple[str, ...]:
    """A capture as clean lines. Colours are only asked for because without them boxes cannot be told from letters."""
    plain = _LINES_DRAWN.sub(lambda run: run[1].translate(_LINE_DRAWING), _COLOUR.sub("", text))
    return tuple(line.rstrip() for line in clean_block(plain, _SCREEN).removesuffix("\n").split("\n"))
