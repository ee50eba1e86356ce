"""`agentdash replay`: play past sessions."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from agentdash.cli.options import (
    APPEARANCE_OPTIONS,
    CODEX_HOME_OPTION,
    JOURNAL_OPTION,
    SPEED_OPTION,
    SPEEDS,
    config_of,
    not_empty,
    options,
)
from agentdash.cli.paths import PATH
from agentdash.cli.screen import run_app, screen_options, terminal
from agentdash.cli.stdin import without_stdin
from agentdash.config import Config, journal_folder
from agentdash.tui import start_up


@click.command()
@options(APPEARANCE_OPTIONS)
@CODEX_HOME_OPTION
@click.argument("target", required=False, metavar="[THREAD|FILE]", callback=not_empty)
@click.option("--at", metavar="TIME", help="Start there: 20:14, 20:14:07, or a date and a time.")
@SPEED_OPTION
@click.option("--export", "exported", type=PATH, metavar="FILE", help="Write a report: .html or .md.")
@click.option(
    "--redact",
    is_flag=True,
    help="Leave prompts, messages, outputs and the names of homes, users and hosts out of the export.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@JOURNAL_OPTION
def replay(
    target: str | None,
    at: str | None,
    speed: str,
    exported: Path | None,
    redact: bool,
    force: bool,
    journal: Path | None,
    **given: Any,
) -> int:
    """Play a past session with its parent, children and forks. Read-only.

    THREAD is a thread id or its prefix, or the name of a recording; FILE a session log of any name, a part of
    a recording, or - for the standard input. Without either: browse the library of sessions and recordings.

    \b
    agentdash replay 01a1fa8b --at 20:14 --speed 4
    agentdash replay session.jsonl --export report.html --redact
    """
    config = config_of(given)
    if exported is not None:
        from agentdash.cli.past_sessions import export

        start_up.restore()
        if target is None:
            raise click.UsageError("--export needs a THREAD or FILE")
        with without_stdin([target]) as (file,):
            return export(file, config, exported, redact=redact, force=force, journal=journal)
    if redact:
        raise click.UsageError("--redact needs --export FILE")
    play_from = partial(_play, config=config, speed=SPEEDS[speed], journal=journal)
    if target is not None:
        with without_stdin([target]) as (file,):
            if not (sys.stdin.isatty() and sys.stdout.isatty()):  # a wrong target is told first
                from agentdash.cli.past_sessions import playable

                playable(file, config, journal or journal_folder(), time.time())
            with terminal("try --export FILE"):
                play_from(file, at=at)
        return 0
    if at is not None:
        raise click.UsageError("--at needs a THREAD or FILE")
    with terminal("try `agentdash sessions`"):
        _browse(config, journal or journal_folder(), play_from)
    return 0


def _browse(config: Config, journal: Path, play_from: Callable[..., None]) -> None:
    """Open the library; after each played session open it again, in the same place, until it is closed."""
    from agentdash.agents.claude.home import ClaudeHome
    from agentdash.agents.codex.home import CodexHome, default_home
    from agentdash.cli.past_sessions import exported, recalled
    from agentdash.collect.clock import SystemClock
    from agentdash.replay.library.library import Library
    from agentdash.tui.library.app import LibraryApp
    from agentdash.tui.library.list import LibraryModel

    clock, model, options = SystemClock(), LibraryModel(), screen_options(config)
    library = Library(
        CodexHome(config.codex_home or default_home()),
        clock,
        ClaudeHome(config.claude_home),
        recordings=journal,
        recall=recalled,
    )
    export = partial(exported, config=config, journal=journal)
    while (picked := run_app(LibraryApp(library, model, clock, options, export))) is not None:
        with terminal():
            play_from(str(picked.path), at=picked.at)


def _play(
    target: str, config: Config, *, speed: float, journal: Path | None, at: str | float | None = None
) -> None:
    """Play the family of a thread, from a time as typed (`20:14`) or in unix seconds, until it is closed.

    Raises:
        click.UsageError: no thread matches, or `at` is invalid.
    """
    from agentdash.cli.output import warn_unreadable
    from agentdash.cli.past_sessions import exported, playable
    from agentdash.engine.hub import Hub
    from agentdash.replay.clock import VirtualClock
    from agentdash.replay.player import Player
    from agentdash.tui.replay_app import ReplayApp

    family, recorded = playable(target, config, journal or journal_folder(), time.time())
    warn_unreadable(family.unreadable)
    clock = VirtualClock(0.0)
    player = Player(family, clock, speed=speed, extra=recorded)
    if isinstance(at, str) and not player.seek_typed(at):
        forms = "20:14, 20:14:07, or 2026-03-11 20:14"
        raise click.BadParameter(f"invalid time {at!r}: use {forms}", param_hint="--at")
    if isinstance(at, float):
        player.seek_time(at)
    hub = Hub([player], clock)
    export = partial(exported, target, config=config, journal=journal)
    run_app(ReplayApp(hub, clock, player, export=export, options=screen_options(config)), hub)
