"""Read tmux panes: their properties and their screens.

One poll makes one call of `tmux` per server: `list-panes`, with a chained `capture-pane` for each pane that
keeps drawing; and a second one for panes that have just begun to. tmux answers a call in one go: a screen and
the size, cursor and title of its pane are of one moment.

Rows and screens are divided by marks that no program in a pane can know while it draws: each call has a new
one, which goes to tmux by a pipe.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from agentdash.collect.scheduler import (
    BUSY_INTERVAL_S,
    QUIET_INTERVAL_S,
    PollScheduler,
    busy_interval,
    poll_repeatedly,
)
from agentdash.collect.tmux.servers import NoAnswerError, TmuxServer, connect, failure_reason, run_commands
from agentdash.model.events import Event, PaneDrawn, PaneGone, PaneSeen, SourceSeen
from agentdash.model.fleet import Fleet
from agentdash.model.pane import NO_SERVER, Pane, PaneKey
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.model.times import possible_time
from agentdash.peers import ProvenSocket
from agentdash.procfs import run_time

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
    *("pane_dead", "pane_dead_status", "pane_dead_signal", "pane_dead_time", "window_activity"),
    *("session_name", "window_index", "window_name", "pane_current_command", "pane_title"),
)
"""All of these exist in tmux 3.2a; `pane_dead_signal` and `pane_dead_time` since 3.3, empty before.
`pane_current_path` is left out: /proc is more reliable."""
_REDRAW_WINDOW_S: Final = 2.0
"""A window that drew within this time may have drawn again unnoticed: `window_activity` counts whole
seconds."""
_PARTING_S: Final = 0.005
"""Until a server is done with a client that has ended. What is drawn meanwhile is found by the next poll but
one."""
_MAX_CAPTURES: Final = 500
"""Of one call, whose output is limited."""
_MAX_SCREEN_CHARS: Final = 1 << 20
"""Of a capture; no terminal has more."""


class TmuxSensor:
    """Reports panes as they appear, change, draw and vanish.

    A server that does not answer is reported as an unhealthy source; its panes stay as they were last seen.
    Once it answers again, panes that it does not list any more are reported as gone.

    Args:
        timeout: seconds after which a server that does not answer is given up.
        skip: a pane to leave out.
    """

    def __init__(
        self, servers: Sequence[TmuxServer], *, timeout: float = 2.0, skip: PaneKey | None = None
    ) -> None:
        self._views = [_ServerView(server, timeout, skip) for server in servers]

    def close(self) -> None:
        """Let go of the servers; the next poll connects again."""
        for view in self._views:
            view.close()

    def has_news(self) -> bool:
        """Return whether a server has run, or another one may have started, since it was polled."""
        return any(view.has_news() for view in self._views)

    async def poll(self, at: float) -> list[Event]:
        """Return what has changed since the last poll, and always a `SourceSeen` of each server.

        Args:
            at: now, unix seconds; the time of all events.
        """
        polled = await asyncio.gather(*(view.poll(at) for view in self._views))
        return [event for events in polled for event in events]


class _Row(msgspec.Struct, frozen=True):
    pane: Pane
    activity: int
    """When the pane's window last drew anything, unix seconds, whole."""


_SocketId = tuple[int, int, int]
"""Device, inode and time of change."""


def _socket_id(path: Path) -> _SocketId | None:
    """Return what identifies a socket: a server that starts makes a new one, also in place of one that a
    server has left. None: not there."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


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
        self._drawing: list[str] = []
        """Panes whose screens had changed at the last poll, and so probably have again."""
        self._socket: _SocketId | None = None
        """What was connected to last, or was to be."""
        self._proven: ProvenSocket | None = None
        """The same socket, since it was proven to be a server's."""
        self._ran: int | None = None
        """How long the server had run when it had answered last."""

    def has_news(self) -> bool:
        """Return whether anything may have been drawn since the last poll: tmux draws what a program writes,
        so a server that has not run has nothing new. True also where that cannot be known."""
        if _socket_id(self._server.socket) != self._socket:
            return True
        if self._proven is None:
            return False
        return self._ran is None or run_time(self._proven.pid) != self._ran

    async def poll(self, at: float) -> list[Event]:
        try:
            self._connect(_socket_id(self._server.socket))
            rows, malformed, drawn = await self._list(self._drawing[:_MAX_CAPTURES])
            begun = [
                key for key, row in rows.items() if key not in drawn and self._may_have_drawn(key, row, at)
            ]
            newer, captured = await self._capture(begun)
        except NoAnswerError as error:
            if str(error).startswith(NO_SERVER):
                self.close()
            return [SourceSeen(at=at, name=self._server.source, ok=False, detail=str(error))]
        rows |= newer
        drawn |= captured
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
        await asyncio.sleep(_PARTING_S)
        self._ran = run_time(self._proven.pid) if self._proven else None
        self._drawing = [
            key for key, screen in drawn.items() if key in rows and screen != self._screens.get(key)
        ]
        self._screens = {key: screen for key, screen in (self._screens | drawn).items() if key in rows}
        detail = f"{len(rows)} pane{'s' * (len(rows) != 1)}"
        detail += f", {malformed} not understood" if malformed else ""
        return [*events, SourceSeen(at=at, name=self._server.source, ok=True, detail=detail)]

    def _connect(self, socket: _SocketId | None) -> None:
        """Connect, unless that was done and nothing is in the place of this socket.

        Raises:
            NoAnswerError: there is no server, or what listens is not proven to be one.
        """
        if self._proven is not None and socket is not None and socket[:2] == (self._socket or ())[:2]:
            return
        self.close()
        self._socket = socket
        self._proven = connect(self._server)

    def close(self) -> None:
        """Let go of the connection."""
        if self._proven is not None:
            self._proven.close()
            self._proven = None

    def _may_have_drawn(self, key: str, row: _Row, at: float) -> bool:
        return key not in self._screens or row != self.rows.get(key) or at - row.activity < _REDRAW_WINDOW_S

    async def _list(self, keys: Sequence[str]) -> tuple[dict[str, _Row], int, dict[str, str]]:
        """Return all panes by id, the number of malformed rows, and the screens of some panes.

        Args:
            keys: the panes whose screens are captured by the same call; those that have gone are left out.
        """
        mark = secrets.token_hex(16)
        field, end = f"<{mark}>", f"</{mark}>"  # titles and program names may contain anything else
        row_format = field.join(f"#{{{name}}}" for name in _FIELDS) + end
        captures = [f"display-message -p '{mark} {key[1:]}'\ncapture-pane -e -p -t {key}" for key in keys]
        done = await self._tmux(f"list-panes -a -F '{row_format}'", *captures)
        *lines, captured = done.stdout.split(f"{end}\n")
        if done.returncode != 0 and not lines:
            if keys:  # of a server without panes the captures fail
                return await self._list(())
            raise NoAnswerError(failure_reason(done.stderr))
        rows: dict[str, _Row] = {}
        malformed = 0
        for line in lines:
            row = _parse_row(self._server.label, line.split(field))
            if row is None:
                malformed += 1
            # a linked window is listed several times
            elif row.pane.key != self._skip and (row.pane.key.id not in rows or row.pane.active):
                rows[row.pane.key.id] = row
        return rows, malformed, _captured(keys, captured, mark)

    async def _capture(self, keys: Sequence[str]) -> tuple[dict[str, _Row], dict[str, str]]:
        """Return the rows of these panes, and their screens; panes that have gone meanwhile are left out."""
        rows: dict[str, _Row] = {}
        drawn: dict[str, str] = {}
        for first in range(0, len(keys), _MAX_CAPTURES):
            listed, _, screens = await self._list(keys[first : first + _MAX_CAPTURES])
            rows |= {key: row for key, row in listed.items() if key in screens}
            drawn |= screens
        return rows, drawn

    async def _tmux(self, *commands: str) -> subprocess.CompletedProcess[str]:
        if self._proven is None:
            raise NoAnswerError(NO_SERVER)
        return await asyncio.to_thread(run_commands, self._proven, self._timeout, commands)


def _captured(keys: Sequence[str], text: str, mark: str) -> dict[str, str]:
    """Return the captures by pane; those that have gone have none.

    Raises:
        NoAnswerError: there are others than were asked for: all are suspect.
    """
    pieces = text.split(f"{mark} ")[1:]
    found = {f"%{number}": screen for number, _, screen in (piece.partition("\n") for piece in pieces)}
    if tuple(found) != tuple(keys) or len(pieces) != len(keys):
        raise NoAnswerError("answered with other screens than were asked for")
    return {key: screen for key, screen in found.items() if screen}


# ---------------------------------------------------------------- rows


def _parse_row(server: str, values: list[str]) -> _Row | None:
    """Parse a row of `list-panes`, or None if it is malformed."""
    fields = dict(zip(_FIELDS, values, strict=False))
    if len(values) != len(_FIELDS) or not re.fullmatch(r"%\d+", fields["pane_id"]):
        return None
    try:
        pane = Pane(
            key=PaneKey(server, fields["pane_id"]),
            session=clean_line(fields["session_name"]),
            window=clean_line(f"{fields['window_index']}:{fields['window_name']}"),
            # tmux 3.8 prints none for a dead pane
            pid=int(fields["pane_pid"] or ("0" if fields["pane_dead"] == "1" else "")),
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
        )
        activity = possible_time(float(fields["window_activity"])) or 0.0
        return _Row(pane=pane, activity=int(activity))
    except ValueError:
        return None


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


_INTERVAL_PER_SCREEN_S: Final = 1 / 30
"""Between two polls while panes draw, for each that has drawn: tmux and agentdash take half a millisecond of
CPU for a screen."""


_LOOK_INTERVAL_S: Final = 0.5
"""Between two looks whether a server has run, of 0.1 ms each; a poll takes milliseconds."""
_SILENT_INTERVAL_S: Final = 5.0
"""Between two polls of servers that have not run: the program in the foreground of a pane may change without
them."""


class TmuxPaneSource:
    """Reads panes: their properties and screens.

    Args:
        sensor: reads the servers.
        scheduler: sets the pauses between polls; a new pane starts a burst.
        default_optional: whether the default server may be absent without a report: other servers are
            configured, or agentdash runs in one.
    """

    name = "tmux"

    def __init__(
        self, sensor: TmuxSensor, clock: Clock, scheduler: PollScheduler, *, default_optional: bool
    ) -> None:
        self._sensor = sensor
        self._clock = clock
        self._scheduler = scheduler
        self._default_optional = default_optional
        self._interval_s = BUSY_INTERVAL_S
        """Between two polls while panes draw."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what changed in the panes of all servers."""
        polled = await self._sensor.poll(self._clock.now())
        events = [event for event in polled if not self._is_optional_absence(event)]
        screens = sum(isinstance(event, PaneDrawn) for event in events)
        self._interval_s = busy_interval(screens, _INTERVAL_PER_SCREEN_S)
        if any(isinstance(event, PaneSeen) and event.pane.key not in fleet.panes for event in events):
            self._scheduler.burst()  # some CLIs end within a second
        return events

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit changes as they are polled."""
        try:
            await poll_repeatedly(self, emit, channel, self._scheduler, rest=self._rest)
        finally:
            self._sensor.close()

    async def _rest(self, fleet: Fleet) -> None:
        """Return after a pause; while all is quiet, only once a server has run."""
        await asyncio.sleep(max(self._scheduler.pause(fleet), self._interval_s))
        if self._scheduler.is_quiet(fleet):
            rested = QUIET_INTERVAL_S
            while rested < _SILENT_INTERVAL_S and not self._sensor.has_news():
                await asyncio.sleep(_LOOK_INTERVAL_S)
                rested += _LOOK_INTERVAL_S

    def _is_optional_absence(self, event: Event) -> bool:
        """Return whether an event is the absence of an optional default server. Once it has been there, it is
        missed."""
        if not isinstance(event, SourceSeen) or event.name != self.name:
            return False
        self._default_optional = self._default_optional and not event.ok
        return self._default_optional
