"""What agentdash does in tmux when its user asks for it: open a split beside a pane, and go to a pane. Nothing else."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final, Literal

from libtmux import Server
from libtmux.exc import LibTmuxException

from agentdash.collect.tmux.sensor import current_pane
from agentdash.model.pane import PaneKey
from agentdash.model.sanitize import clean_line

_DIRECTIONS: Final = {"right": "-h", "below": "-v"}


class TmuxRefusedError(Exception):
    """tmux could not do it; says why in one clean line."""


def split(
    direction: Literal["right", "below"], size: str, command: list[str], env: Mapping[str, str] | None = None
) -> None:
    """Opens a pane beside the one that agentdash runs in, and goes there. By tmux 3.1 and later: sizes with % are from there.

    Args:
        direction: on which side.
        size: `40%`, or a number of columns or lines.
        command: the argument vector to run in it.
        env: variables for it, which the server need not have.

    Raises:
        TmuxRefusedError: not inside of tmux, no room, or a size that tmux does not understand.
    """
    if (here := current_pane()) is None:
        raise TmuxRefusedError("not inside of tmux: there is no pane to split")
    given = [part for name, value in (env or {}).items() for part in ("-e", f"{name}={value}")]
    where = (_DIRECTIONS[direction], "-l", size, "-t", here.id, "-c", "#{pane_current_path}")
    _run(here.server, "split-window", *where, *given, shlex.join(command))


def go_to_pane(key: PaneKey) -> None:
    """Shows a pane: selects it in its window and session, and brings the client that agentdash runs in to that session.

    Raises:
        TmuxRefusedError: the pane is gone, or on another server than the one agentdash runs in.
    """
    here = current_pane()
    if here is not None and here.server != key.server:
        raise TmuxRefusedError(f"{key} is on another tmux server: attach to that one to see it")
    _run(key.server, "select-window", "-t", key.id)
    _run(key.server, "select-pane", "-t", key.id)
    if here is not None:
        _run(key.server, "switch-client", "-t", key.id)


def _run(server: str, *args: str) -> None:
    try:
        complaint = _reach(server).cmd(*args).stderr
    except (LibTmuxException, OSError) as error:
        raise TmuxRefusedError(clean_line(str(error)) or type(error).__name__) from error
    if complaint:
        raise TmuxRefusedError(clean_line(complaint[0]))


def _reach(server: str) -> Server:
    """`Server()` alone would mean the one that agentdash runs in, which need not be the default one."""
    if server == "default" or server.startswith("-L "):
        return Server(socket_name=server.removeprefix("-L "))
    return Server(socket_path=server)
