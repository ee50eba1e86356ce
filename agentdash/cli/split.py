"""`agentdash split`: open the dashboard in a tmux split; `agentdash back`: go to it from anywhere in tmux."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from itertools import dropwhile
from pathlib import PurePath
from typing import Any, Final

import click

from agentdash.cli.options import (
    APPEARANCE_OPTIONS,
    FLEET_OPTIONS,
    RECORDING_OPTIONS,
    config_of,
    flags_of,
    options,
)

_KEEPS_ERRORS: Final = (
    "/bin/sh",
    "-c",
    """"$@"
code=$?
case $code in
    0 | 129 | 130 | 143) exit ;; # quit, or ended by SIGHUP, ctrl+c or SIGTERM
esac
stty sane # it may have had no time to restore the terminal: raw keys, mouse, alternate screen, hidden cursor
printf '\\033[?1000l\\033[?1003l\\033[?1006l\\033[?1004l\\033[?2004l\\033[?1049l\\033[?25h'
printf '\\nagentdash has ended with code %s. Enter closes this pane.\\n' "$code"
read -r _""",
    "agentdash",
)
"""Runs the command behind it; if that fails, keeps the pane open, so that the error can be read."""


def _size(_: click.Context, __: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,3}%?", value):
        raise click.BadParameter(f"invalid size {value!r}: use columns or rows (45), or a percentage (40%)")
    return value


@click.command()
@options(FLEET_OPTIONS, APPEARANCE_OPTIONS, RECORDING_OPTIONS)
@click.option("--right/--below", "right", default=True, help="Side of the dashboard.  [default: right]")
@click.option(
    "--size",
    callback=_size,
    default="40%",
    show_default=True,
    metavar="SIZE",
    help="Columns or rows, or a percentage.",
)
@click.option("--close-with-pane", is_flag=True, help="Close the dashboard together with the pane beside it.")
def split(right: bool, size: str, close_with_pane: bool, **given: Any) -> None:
    """Open the dashboard in a tmux split beside this pane.

    \b
    agentdash split --right --size 45
    agentdash split --below --size 30% --close-with-pane
    """
    from agentdash.collect.tmux.actions import TmuxRefusedError
    from agentdash.collect.tmux.actions import split as open_split
    from agentdash.collect.tmux.servers import current_pane

    config = config_of(given)
    command = [*_KEEPS_ERRORS, sys.executable, "-m", "agentdash", *flags_of(config)]
    if close_with_pane and (here := current_pane()) is not None:
        command += ["--close-with", here.id]
    env = {name: value for name, value in os.environ.items() if name == "AGENTDASH_CONFIG"}
    if config.codex_home is not None:
        env["CODEX_HOME"] = str(config.codex_home)
    try:
        open_split("right" if right else "below", size, command, env)
    except TmuxRefusedError as refusal:
        raise click.UsageError(str(refusal)) from refusal


# ------------------------------------------------------------


_NAMES: Final = ("agentdash", "agentdash.pyz")


@click.command()
def back() -> None:
    """Go back to the dashboard that runs in this tmux server, also from another session.

    To be bound to a key of tmux, here `prefix D`, in ~/.tmux.conf:

    \b
    bind-key D run-shell 'agentdash back'
    """
    from agentdash.collect.tmux.actions import TmuxRefusedError, go_back

    try:
        go_back(is_dashboard)
    except TmuxRefusedError as refusal:
        raise click.UsageError(str(refusal)) from refusal


def is_dashboard(argv: Sequence[str]) -> bool:
    """Return whether an argument vector is that of a dashboard: run as it is, or by a Python."""
    from agentdash.cli import COMMANDS
    from agentdash.tui.start_up import SCREENS

    rest = [*argv]
    if rest and PurePath(rest[0]).name.startswith("python"):
        rest = [*dropwhile(lambda each: each.startswith("-"), rest[1:])]  # its options, and `-m`
    if not rest or PurePath(rest[0]).name not in _NAMES:
        return False
    command = next((each for each in rest[1:] if each in COMMANDS), None)
    return command is None or command in SCREENS
