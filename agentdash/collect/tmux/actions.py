"""The actions in tmux that a user may request: open a split beside a pane, and go to a pane. Nothing else."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final, Literal

from agentdash.collect.tmux.command import NoAnswerError, ask
from agentdash.collect.tmux.servers import current_pane, server_of
from agentdash.model.pane import PaneKey

_SPLIT_OPTIONS: Final = {"right": "-h", "below": "-v"}


class TmuxRefusedError(Exception):
    """tmux could not do it; the message is the reason, one clean line."""


def split(
    direction: Literal["right", "below"], size: str, command: list[str], env: Mapping[str, str] | None = None
) -> None:
    """Open a pane beside the one that agentdash runs in, and select it. tmux 3.1 or later, for sizes with %.

    Args:
        direction: the side on which it opens.
        size: `40%`, or a number of columns or lines.
        command: the argument vector to run in it.
        env: variables for the command that the server may lack.

    Raises:
        TmuxRefusedError: not inside of tmux, no room, or a size that tmux does not accept.
    """
    if (here := current_pane()) is None:
        raise TmuxRefusedError("not inside of tmux: there is no pane to split")
    variables = [part for name, value in (env or {}).items() for part in ("-e", f"{name}={value}")]
    place = (_SPLIT_OPTIONS[direction], "-l", size, "-t", here.id, "-c", "#{pane_current_path}")
    _run(here.server, "split-window", *place, *variables, shlex.join(command))


def go_to_pane(key: PaneKey) -> str | None:
    """Select a pane in its window and session, and switch the client that agentdash runs in to that session.

    Returns:
        What is left to do where agentdash runs in no client of tmux; None where the pane is in sight.

    Raises:
        TmuxRefusedError: the pane is gone, or on another server than the one agentdash runs in.
    """
    here = current_pane()
    if here is not None and here.server != key.server:
        raise TmuxRefusedError(f"{key} is on another tmux server: attach to that one to see it")
    _run(key.server, "select-window", "-t", key.id)
    _run(key.server, "select-pane", "-t", key.id)
    if here is None:
        attach = f"tmux{_server_option(key.server)} attach -t '{key.id}'"
        return f"{key} is selected, but this is no tmux client: {attach} shows it."
    _run(key.server, "switch-client", "-t", key.id)
    return None


def _server_option(label: str) -> str:
    """Return the option of the tmux command that names a server, after a space; empty for the default one."""
    if label == "default":
        return ""
    return f" {label}" if label.startswith("-L ") else f" -S {label}"


def _run(server: str, *command: str) -> None:
    try:
        ask(server_of(server), *command)
    except NoAnswerError as error:
        raise TmuxRefusedError(str(error)) from error
