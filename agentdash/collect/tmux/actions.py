"""What a user may request of tmux: open a split beside a pane, go to a pane, copy, read the scrollback."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Final, Literal

from agentdash.collect.tmux.command import NoAnswerError, ask
from agentdash.collect.tmux.servers import current_pane, own_server, server_of
from agentdash.model.pane import PaneKey
from agentdash.model.sanitize import clean_block

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
        What is left to do where agentdash runs in no client of tmux, or None if the pane is in sight.

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


# tmux ignores what a program in a pane copies by OSC 52 unless `set-clipboard` is `on` (default: `external`).
# It sets the clipboard of the terminal itself by `load-buffer -w` (3.2), unless the option is `off`.
_QUESTION: Final = "#{set-clipboard}\t#{client_termfeatures}"


def copy(text: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Load a text into tmux's newest buffer, and into the clipboard as far as tmux can.

    Returns:
        What has happened, in words; None outside of tmux.
    """
    if (server := own_server(environ)) is None:
        return None
    try:
        ask(server_of(server, environ), "load-buffer", "-w", "-", given=text)
    except NoAnswerError as error:
        return f"Not copied: {error}; tmux passes it on only after: tmux set -s set-clipboard on"
    found = clipboard(environ)
    return (
        "Copied to tmux's buffer and the clipboard" if found is None else f"Copied to tmux's buffer; {found}"
    )


def clipboard(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return why what is copied does not reach the clipboard of the terminal, or None if it does, by what
    tmux knows, or outside of tmux."""
    if (server := own_server(environ)) is None:
        return None
    try:
        answer = ask(server_of(server, environ), "display-message", "-p", _QUESTION)
    except NoAnswerError as error:
        return f"whether it reaches the clipboard is not known: {error}"
    option, _, features = answer.strip("\n").partition("\t")
    if option == "off":
        return "not to the clipboard, since set-clipboard is off: tmux set -s set-clipboard external"
    if "clipboard" not in features.split(","):
        return "not to the clipboard: tmux knows of none for this terminal (terminal-features)"
    return None


_MAX_LINES: Final = 10_000
"""Lines above the screen; tmux keeps 2,000 unless it is configured."""
_MAX_CHARS: Final = 4 << 20


def read_scrollback(pane: PaneKey) -> list[str]:
    """Return the lines of a pane, those above its screen too; none where tmux does not answer."""
    try:
        text = ask(server_of(pane.server), "capture-pane", "-p", "-S", f"-{_MAX_LINES}", "-t", pane.id)
    except NoAnswerError:
        return []
    return [line.rstrip() for line in clean_block(text, _MAX_CHARS).split("\n")]
