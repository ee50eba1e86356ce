"""The tmux servers of this machine: which there are, and the only place that runs `tmux` on one.

A tmux client does what its server tells it: run a shell command, start a program in its own place. It hands
over its environment, too. So a server is proven first to be a tmux of this user outside every sandbox
(`agentdash.peers`), and the client is the very program that the server runs, which always speaks its
protocol. Commands go through its standard input: arguments can be read by every process.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from agentdash.model.pane import NO_SERVER, REFUSED, PaneKey, tmux_source
from agentdash.model.sanitize import clean_line
from agentdash.peers import ProvenSocket, UnprovenError, prove
from agentdash.programs import environment, find_program

_TMUX_VERSION_TIMEOUT_S: Final = 2.0


class TmuxServer(msgspec.Struct, frozen=True):
    """A tmux server, running or not."""

    label: str
    """As in `PaneKey.server`: `default`, `-L NAME`, or the path of its socket."""
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
    """Return the pane that agentdash runs in, by `TMUX` and `TMUX_PANE`; None outside tmux."""
    socket, pane = own_socket(environ), environ.get("TMUX_PANE", "")
    if socket is None or not re.fullmatch(r"%\d+", pane):
        return None
    return PaneKey(_server(socket, _socket_folder(environ)).label, pane)


def own_server(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the label of the server that agentdash runs in, by `TMUX`; None outside tmux."""
    socket = own_socket(environ)
    return _server(socket, _socket_folder(environ)).label if socket else None


def beside(pane: str, environ: Mapping[str, str] = os.environ) -> PaneKey | None:
    """Return the key of a pane, by its id, on the server that agentdash runs in; None outside tmux."""
    here = current_pane(environ)
    return PaneKey(here.server, pane) if here else None


def server_of(label: str, environ: Mapping[str, str] = os.environ) -> TmuxServer:
    """Return the server of a label (`PaneKey.server`)."""
    folder = _socket_folder(environ)
    return _server(folder / label.removeprefix("-L ") if not label.startswith("/") else Path(label), folder)


def own_socket(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the socket of the tmux server that agentdash runs in, by `TMUX`; None outside tmux."""
    parts = environ.get("TMUX", "").rsplit(",", 2)  # socket, pid of the server, session
    return Path(parts[0]) if len(parts) == 3 and parts[0] else None


def _socket_folder(environ: Mapping[str, str]) -> Path:
    # the rule by which tmux itself places its sockets
    return Path(environ.get("TMUX_TMPDIR") or "/tmp", f"tmux-{os.getuid()}").resolve()  # noqa: S108


def _server(socket: Path, folder: Path) -> TmuxServer:
    socket = socket.expanduser().parent.resolve() / socket.name
    if socket.parent != folder:
        return TmuxServer(clean_line(str(socket)), socket)
    return TmuxServer("default" if socket.name == "default" else clean_line(f"-L {socket.name}"), socket)


def tmux_version() -> str | None:
    """Return the output of `tmux -V`, `tmux 3.3a`, or None if tmux is not installed or does not answer."""
    try:
        done = subprocess.run(
            [find_program("tmux"), "-V"],
            env=environment("tmux"),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TMUX_VERSION_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return clean_line(done.stdout)


_PROGRAM: Final = re.compile(r"\.?tmux(?:[-_.\d].*)?")
"""`tmux`, `tmux-3.4`, `.tmux-wrapped`."""
_TIMEOUT_S: Final = 2.0
"""A server that does not answer within it hangs, or is stopped."""
_NO_SERVER_MESSAGES: Final = (
    "no server running",
    "No such file",
    "Connection refused",
    "server exited",
    "lost server",
)
"""What tmux prints when there is no server, by version and circumstance."""


class NoAnswerError(Exception):
    """A server did not answer; the message is the reason, one clean line."""


def connect(server: TmuxServer) -> ProvenSocket:
    """Return the socket of a server that is proven to be one.

    Raises:
        NoAnswerError: there is none, it cannot be connected to, or it is refused: nothing was sent to it.
    """
    try:
        return prove(server.socket, _PROGRAM)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        reason = NO_SERVER
    except UnprovenError as error:
        reason = f"{REFUSED}: the socket {error}"
    except OSError as error:
        reason = _reason(error)
    raise NoAnswerError(reason)


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.EPERM:
            return "may not be connected to from inside this sandbox (Operation not permitted)"
        case errno.EACCES:
            return "belongs to another user (Permission denied)"
        case errno.EAGAIN:
            return "does not accept connections"
        case _:
            return clean_line(error.strerror or str(error))


def ask(server: TmuxServer, *command: str, given: str = "") -> str:
    """Return the output of one tmux command.

    Args:
        given: its standard input.

    Raises:
        NoAnswerError: the server did not answer, was refused, or the command failed.
    """
    with connect(server) as proven:
        done = _run(proven, command, given, _TIMEOUT_S)
    if done.returncode:
        raise NoAnswerError(clean_line(done.stderr) or f"tmux {command[0]} failed")
    return done.stdout


def run_commands(
    proven: ProvenSocket, limit_s: float, commands: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run one `tmux` with several commands; one that fails does not keep the next ones from being run.

    Args:
        limit_s: seconds after which the call is given up.
        commands: lines in the syntax of `tmux.conf`.

    Raises:
        NoAnswerError: tmux did not answer in time.
    """
    return _run(proven, ("source-file", "-"), "".join(f"{command}\n" for command in commands), limit_s)


def _run(
    proven: ProvenSocket, arguments: Sequence[str], given: str, limit_s: float
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            # -u: tmux replaces non-ASCII characters under a plain locale
            ["tmux", "-u", "-S", proven.path, *arguments],
            executable=proven.program,
            env=environment("tmux"),
            input=given,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"no answer within {limit_s:g} s") from None
    except OSError as error:
        raise NoAnswerError(f"tmux cannot be started: {error.strerror}") from None


def failure_reason(stderr: str) -> str:
    """Return why a proven server did not answer, from what tmux printed."""
    if any(message in stderr for message in _NO_SERVER_MESSAGES):
        return NO_SERVER
    return clean_line(stderr.partition("\n")[0]) or "failed without a message"
