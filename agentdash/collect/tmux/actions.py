"""What a user may request of tmux: open a split beside a pane, go to a pane and back, copy, read the
scrollback."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal

from agentdash.collect.tmux.servers import NoAnswerError, ask, current_pane, own_server, server_of
from agentdash.model.pane import PaneKey
from agentdash.model.sanitize import clean_block, clean_line

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
        TmuxRefusedError: not inside tmux, no room, or a size that tmux does not accept.
    """
    if (here := current_pane()) is None:
        raise TmuxRefusedError("not inside tmux: there is no pane to split")
    variables = [part for name, value in (env or {}).items() for part in ("-e", f"{name}={value}")]
    place = (_SPLIT_OPTIONS[direction], "-l", size, "-t", here.id, "-c", "#{pane_current_path}")
    _run(here.server, "split-window", *place, *variables, shlex.join(command))


def go_to_pane(key: PaneKey) -> str:
    """Select a pane in its window and session, and switch the client that agentdash runs in to that session.

    Returns:
        Where the client is now, and the way back, which that client shows too; or what is left to do where
        agentdash runs in no client of tmux.

    Raises:
        TmuxRefusedError: the pane is gone, or on another server than the one agentdash runs in.
    """
    server = own_server()
    if server is not None and server != key.server:
        raise TmuxRefusedError(f"{key} is on another tmux server: attach to that one to see it")
    if server is None:
        _run(key.server, *_select(key))
        attach = f"tmux{_server_option(key.server)} attach -t '{key.id}'"
        return f"{key} is selected, but this is no tmux client: {attach} shows it."
    here = current_pane()
    before, there = _place(server, here), _place(server, key)
    client = ("-c", before[3]) if before[3] else ()
    _run(server, *_select(key), ";", "switch-client", *client, "-t", key.id)
    way = _way_back(before, there, _run(server, "list-keys", "-T", "prefix"))
    with suppress(NoAnswerError):  # tmux before 3.2 shows no message for so long
        ask(server_of(server), "display-message", *client, "-d", _MESSAGE_MS, f"{way} to agentdash")
    return f"Went to {clean_line(there[2])}; {way} here."


def _select(key: PaneKey) -> tuple[str, ...]:
    return "select-window", "-t", key.id, ";", "select-pane", "-t", key.id


def _place(server: str, key: PaneKey | None) -> list[str]:
    """Return what tmux says of the place of a pane, or else of the client that asks: see `_PLACE`."""
    target = ("-t", key.id) if key else ()
    return _run(server, "display-message", "-p", *target, _PLACE).strip("\n").split("\t")


_PLACE: Final = "#{session_id}\t#{window_id}\t#{window_index}:#{window_name}\t#{client_name}\t#{prefix}"
_MESSAGE_MS: Final = "4000"
_BINDING: Final = re.compile(r"bind-key +(?:-r +)?-T prefix +(\S+) +(.*)")
_BACK: Final = re.compile(r"\bagentdash.* back\b")


def _way_back(before: Sequence[str], there: Sequence[str], keys: str) -> str:
    """Return how to come back from a place, `C-b L goes back`: by a key that runs `agentdash back`, else by
    the one of tmux.

    Args:
        before: where the client was, as `_PLACE` has it.
        there: where it is now.
        keys: the output of `list-keys -T prefix`.
    """
    if before[0] != there[0]:
        usual = "switch-client -l"
    else:
        usual = "last-window" if before[1] != there[1] else "last-pane"
    bound = {command.strip(): key.removeprefix("\\") for key, command in _BINDING.findall(keys)}
    own = next((key for command, key in bound.items() if _BACK.search(command)), None)
    key = own or bound.get(usual)
    return f"{before[4]} {key} goes back" if key else "`agentdash back` goes back"


def go_back(is_dashboard: Callable[[Sequence[str]], bool]) -> None:
    """Go to the pane of this tmux server in which a dashboard runs: of several, the one started last.

    Args:
        is_dashboard: whether the program of an argument vector is one.

    Raises:
        TmuxRefusedError: not inside tmux, or no dashboard runs in this server.
    """
    if sys.platform == "linux":
        from agentdash.collect.processes import linux as system  # noqa: PLC0415 - `o` does without
    else:
        from agentdash.collect.processes import portable as system  # noqa: PLC0415 - likewise

    if (server := own_server()) is None:
        raise TmuxRefusedError("not inside tmux: there is no pane to go back to")
    listed = _run(server, "list-panes", "-a", "-F", "#{pane_pid} #{pane_id}").split()
    panes = dict(zip(map(int, listed[::2]), listed[1::2], strict=True))
    found: list[tuple[float, str]] = []
    for pid in system.pids():
        if not is_dashboard(system.argv(pid)) or (stat := system.stat(pid)) is None:
            continue
        ancestor, started = pid, stat.started
        while ancestor not in panes and stat is not None and stat.ppid > 0:
            ancestor = stat.ppid
            stat = system.stat(ancestor)
        if ancestor in panes:
            found.append((started, panes[ancestor]))
    if not found:
        raise TmuxRefusedError("no dashboard runs in this tmux server")
    key = PaneKey(server, max(found)[1])
    _run(server, *_select(key), ";", "switch-client", "-t", key.id)


def _server_option(label: str) -> str:
    """Return the option of the tmux command that names a server, after a space; empty for the default one."""
    if label == "default":
        return ""
    return f" {label}" if label.startswith("-L ") else f" -S {label}"


def _run(server: str, *command: str) -> str:
    try:
        return ask(server_of(server), *command)
    except NoAnswerError as error:
        raise TmuxRefusedError(str(error)) from error


# tmux ignores what a program in a pane copies by OSC 52 unless `set-clipboard` is `on` (default: `external`).
# It sets the clipboard of the terminal itself by `load-buffer -w` (3.2), unless the option is `off`.
def copy(text: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Load a text into tmux's newest buffer, and into the clipboard as far as tmux can.

    Returns:
        What has happened, in words; None outside tmux.
    """
    if (server := own_server(environ)) is None:
        return None
    try:
        ask(server_of(server, environ), "load-buffer", "-w", "-", given=text)
    except NoAnswerError as error:
        return f"Not copied: {error}; tmux passes it on only after: tmux set -s set-clipboard on"
    return "Copied to tmux's buffer, and to the clipboard if set-clipboard is on"


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
