"""The tmux servers of this machine: those that are configured, and the one that agentdash runs in."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from agentdash.model.pane import PaneKey, tmux_source
from agentdash.model.sanitize import clean_line
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
