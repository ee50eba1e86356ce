"""`agentdash replay`: play past sessions."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from agentdash.cli import debug_log
from agentdash.cli.options import (
    APPEARANCE_OPTIONS,
    CODEX_HOME_OPTION,
    JOURNAL_OPTION,
    SPEEDS,
    SSH_CONFIG_OPTION,
    Span,
    config_of,
    not_empty,
    options,
)
from agentdash.cli.paths import PATH
from agentdash.cli.screen import copy_to_tmux, run_app, terminal
from agentdash.cli.stdin import without_stdin
from agentdash.config import Config, journal_folder
from agentdash.model.limits import MAX_GAP_S
from agentdash.model.sanitize import clean_line
from agentdash.tui import start_up

if TYPE_CHECKING:
    from agentdash.collect.remote.carrier import Carrier
    from agentdash.replay.player import Player


# generic since click 8.3 only
class _Replacement(click.ParamType):  # type: ignore[type-arg]
    """A text and what it is replaced by: `OLD=NEW`."""

    name = "replacement"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        old, equals, new = str(value).partition("=")
        if not equals or not old.strip().strip("/~"):
            self.fail(f"{value!r} is not OLD=NEW: a path or words, and what they become", param, ctx)
        return old, new


@click.command()
@options(APPEARANCE_OPTIONS)
@CODEX_HOME_OPTION
@click.argument("target", required=False, metavar="[THREAD|FILE|HOST:THREAD]", callback=not_empty)
@SSH_CONFIG_OPTION
@click.option("--at", metavar="TIME", help="Start there: 20:14, 20:14:07, or a date and a time.")
@click.option(
    "--speed",
    type=click.Choice(list(SPEEDS)),
    default="1",
    show_default=True,
    metavar="N",
    help="From 0.25 to 64, or max.",
)
@click.option(
    "-i",
    "--idle",
    type=Span(),
    default=MAX_GAP_S,
    show_default=True,
    metavar="TIME",
    help="Shorten pauses to this: seconds, or 2m.",
)
@click.option(
    "--from-finding", type=click.IntRange(1), metavar="N", help="Start where the N-th finding appears."
)
@click.option(
    "--export",
    "exported",
    type=PATH,
    metavar="FILE",
    help="Write a report: .html or .md.",
)
@click.option(
    "--talk",
    is_flag=True,
    help="Export the conversation: prompts and answers, with commands and outputs folded; so does a FILE "
    "named talk.html or talk.md.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Leave prompts, messages, outputs and the names of homes, users and hosts out of the export.",
)
@click.option(
    "--replace",
    "replacements",
    multiple=True,
    type=_Replacement(),
    metavar="OLD=NEW",
    help="Replace a path, or words, everywhere in the export. May be repeated.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@JOURNAL_OPTION
def replay(
    target: str | None,
    at: str | None,
    speed: str,
    idle: float,
    from_finding: int | None,
    exported: Path | None,
    talk: bool,
    redact: bool,
    replacements: tuple[tuple[str, str], ...],
    force: bool,
    journal: Path | None,
    **given: Any,
) -> int:
    """Play a past session with its parent, children and forks. Read-only.

    THREAD is a thread id or its prefix, or the name of a recording; FILE a session log of any name, a part of
    a recording, or - for the standard input. Without either: browse the library of sessions and recordings.
    HOST:THREAD is played on that host, by the agentdash there, in this terminal.

    \b
    agentdash replay 01a1fa8b --at 20:14 --speed 4
    agentdash replay session.jsonl --export report.html --redact
    agentdash replay session.jsonl --export x.md --redact --replace /srv/acme=/srv/x --replace Phoenix=project
    """
    config = config_of(given)
    factor = SPEEDS[speed]
    if exported is not None:
        start_up.restore()
    if target is not None and not Path(target).exists():
        from agentdash.cli.hosts import split_host

        carrier, thread = split_host(target, config)
        if carrier is not None:
            if exported is not None or talk or journal is not None:
                raise click.UsageError("--export, --talk and --journal are for sessions of this machine")
            _play_there(carrier, thread, at=at, speed=speed, gap=idle, from_finding=from_finding)
    if exported is not None:
        from agentdash.cli.export import export

        if target is None:
            raise click.UsageError("--export needs a THREAD or FILE")
        with without_stdin([target]) as (file,):
            return export(
                file,
                config,
                exported,
                redact=redact,
                force=force,
                journal=journal,
                talk=talk,
                replacements=replacements,
            )
    for option, is_given in (("--talk", talk), ("--redact", redact), ("--replace", replacements)):
        if is_given:
            raise click.UsageError(f"{option} needs --export FILE")
    if target is not None:
        with without_stdin([target]) as (file,), terminal("try --export FILE"):
            play(file, config, at=at, speed=factor, gap=idle, from_finding=from_finding, journal=journal)
        return 0
    if at is not None or from_finding is not None:
        raise click.UsageError("--at and --from-finding need a THREAD or FILE")

    def play_selected(path: Path, moment: float | None) -> None:
        with terminal():
            play(str(path), config, at=moment, speed=factor, gap=idle, journal=journal)

    with terminal("try `agentdash sessions`"):
        from agentdash.cli.library import browse

        browse(config, journal or journal_folder(), play_selected)
    return 0


def _play_there(
    carrier: Carrier, thread: str, *, at: str | None, speed: str, gap: float, from_finding: int | None
) -> NoReturn:
    """Replace this process by the replay on another host, in this terminal.

    Raises:
        click.UsageError: the carrier has no terminal.
    """
    from agentdash.collect.remote.carrier import CarrierError
    from agentdash.programs import environment, find_program

    arguments = ["replay", thread, "--speed", speed, "--idle", f"{gap:g}"]
    arguments += ["--at", at] if at is not None else []
    arguments += ["--from-finding", str(from_finding)] if from_finding is not None else []
    try:
        argv = carrier.in_terminal(shlex.join(arguments))
        program = find_program(argv[0])
    except (CarrierError, FileNotFoundError) as error:
        raise click.UsageError(clean_line(str(error))) from error
    start_up.restore()
    os.execve(program, argv, environment(argv[0]))  # noqa: S606 - it has no shell here


def play(
    target: str,
    config: Config,
    *,
    at: str | float | None = None,
    speed: float = 1.0,
    gap: float = MAX_GAP_S,
    from_finding: int | None = None,
    journal: Path | None = None,
) -> None:
    """Play the family of a thread, until the player is closed.

    Args:
        target: a thread id or its prefix, or the path of a rollout file.
        at: start time, as typed (`20:14`) or in unix seconds; None: the beginning.
        speed: factor of real time; `math.inf`: as fast as steps can be drawn.
        gap: longest pause between two steps, in seconds of the session.
        from_finding: start where this finding, counted from 1, appears.
        journal: directory of recordings; None: the default one.

    Raises:
        click.UsageError: no thread matches, or `at` is invalid.
    """
    from agentdash.cli.config import checked_keys
    from agentdash.cli.export import exported
    from agentdash.cli.family import playable
    from agentdash.cli.output import warn_unreadable
    from agentdash.collect.clock import SystemClock
    from agentdash.engine.hub import Hub
    from agentdash.replay.clock import VirtualClock
    from agentdash.replay.player import Player

    family, recorded = playable(target, config, journal or journal_folder(), SystemClock().now())
    warn_unreadable(family.unreadable)
    clock = VirtualClock(0.0)
    player = Player(
        family,
        clock,
        gap=gap,
        speed=speed,
        open_extra=recorded,
    )
    _seek(player, at, from_finding)
    hub = Hub([player], clock)

    from agentdash.tui.options import Options
    from agentdash.tui.transport.app import ReplayApp

    options = Options(
        ascii=config.ascii,
        theme=config.theme,
        title=config.title,
        filters=config.filters,
        keys=checked_keys(config),
        copy_to_tmux=copy_to_tmux,
        debug_log_hint=debug_log.hint(),
    )
    export = partial(exported, target, config=config, journal=journal)
    run_app(ReplayApp(hub, clock, player, export=export, options=options), hub)


def _seek(player: Player, at: str | float | None, from_finding: int | None) -> None:
    if isinstance(at, str) and not player.seek_typed(at):
        raise click.BadParameter(
            f"invalid time {at!r}: use 20:14, 20:14:07, or 2026-03-11 20:14", param_hint="--at"
        )
    if isinstance(at, float):
        player.seek_time(at)
    if from_finding is not None:
        player.seek_finding(from_finding)
