"""The command line. A module of commands is imported when one of them runs, to keep `--version` fast."""

from __future__ import annotations

import gc
import importlib
import io
import logging
import os
import re
import sys
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import click

from agentdash.cli import debug_log, termination
from agentdash.cli.options import (
    APPEARANCE_OPTIONS,
    FLEET_OPTIONS,
    HOST_OPTIONS,
    RECORDING_OPTIONS,
    SHARED,
    config_of,
    given_flags,
    options,
)
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.sanitize import clean_line
from agentdash.model.suggestions import did_you_mean, suggest
from agentdash.tui import start_up
from agentdash.version import described_version

log = logging.getLogger(__name__)


class _Entry(NamedTuple):
    """A command in the list of `--help`."""

    module: str
    """That of this package which defines it."""
    group: str
    """The heading that it stands below; empty: it is not listed."""
    summary: str


COMMANDS: Final = {
    "demo": _Entry("dashboard", "Look", "Recorded sessions on the dashboard"),
    "split": _Entry("split", "Look", "The dashboard in a tmux split"),
    "back": _Entry("split", "Look", "Back to the dashboard, in tmux"),
    "explain": _Entry("explain", "Look", "Why a worker has its state and verdict"),
    "label": _Entry("attention", "Look", "Name a worker's session as you call it"),
    "reach": _Entry("reach", "Look", "What workers could write and read now"),
    "replay": _Entry("replay", "Look", "Play past sessions, or browse them"),
    "since": _Entry("since", "Look", "What happened since a time"),
    "known": _Entry("attention", "Look", "List sandbox problems marked as known"),
    "status": _Entry("status", "Script", "The workers now, or as they change"),
    "wait": _Entry("wait", "Script", "Wait until a worker is in some state"),
    "line": _Entry("line", "Script", "The fleet in a few words, for tmux"),
    "metrics": _Entry("metrics", "Script", "The fleet for Prometheus"),
    "publish": _Entry("dashboard", "Script", "Write the status file for sandboxed agents"),
    "notify": _Entry("notices", "Script", "Send a test notice to its command"),
    "mcp": _Entry("mcp", "Script", "Answer agents over MCP"),
    "check": _Entry("check", "Audit", "Findings and denials of past sessions"),
    "preflight": _Entry("preflight", "Audit", "What a Codex started here would get"),
    "sessions": _Entry("sessions", "Audit", "List past and present sessions"),
    "doctor": _Entry("set_up", "Set up", "What can be observed on this machine"),
    "config": _Entry("set_up", "Set up", "Print the defaults, and check the file"),
    "completion": _Entry("set_up", "Set up", "Completion for bash, zsh and fish"),
    "schema": _Entry("schema", "", "The JSON Schema of a document"),
}


class _Commands(click.Group):
    """A group that imports a command when it is looked up."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "help":
            return _help
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in start_up.SCREENS:
            start_up.restore()
        module = importlib.import_module(f"agentdash.cli.{COMMANDS[cmd_name].module}")
        gc.freeze()  # what was imported stays: looking through it for garbage takes 20 ms each time
        gc.enable()  # the program disables it until its command is imported
        command: click.Command = getattr(module, cmd_name)
        if debug_log.OPTION not in command.params:
            command.params.append(debug_log.OPTION)
        shared = {name for names in SHARED.values() for name in names}
        command.params.sort(key=lambda each: each.name in shared)
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by groups, without importing them, and then the options."""
        for group, entries in groupby(COMMANDS.items(), key=lambda item: item[1].group):
            if group:
                with formatter.section(group):
                    formatter.write_dl([(name, entry.summary) for name, entry in entries])
        click.Command.format_options(self, ctx, formatter)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that the arguments name, or fail with the name that was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as unknown:
            name = unknown.command_name
            meant = did_you_mean(name, COMMANDS, alike=0.7)  # `version` is not `sessions`
            text = f"No such command '{name}'{meant}"
            raise click.exceptions.NoSuchCommand(name, text, None, ctx) from None

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the options; `--help` and `--version` print."""
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError:  # click would exit with 1
            raise click.exceptions.Exit(0) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has closed the pipe (`| head`), that is not a failure
            return 0


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@options(FLEET_OPTIONS, HOST_OPTIONS, APPEARANCE_OPTIONS, RECORDING_OPTIONS)
@click.option(
    "--close-with", metavar="PANE", hidden=True, help="Exit when this pane of the same tmux server closes."
)
@click.version_option(described_version(), "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context, /, close_with: str | None, **given: Any) -> None:
    """Show what your coding agents are doing and why, and whether each sandbox is the one you configured.

    Without a command: the live dashboard.

    \b
    agentdash                         your Codex home and your tmux server
    agentdash -L work --theme light   another tmux server, and light colours
    """
    context.obj = given_flags(given)
    if context.invoked_subcommand is None:
        from agentdash.cli.dashboard import dashboard
        from agentdash.collect.tmux.servers import beside

        dashboard(config_of({}), beside(close_with) if close_with else None)


app.params.append(debug_log.OPTION)


@click.command("help")
@click.argument("names", metavar="[COMMAND]", nargs=-1)
def _help(names: tuple[str, ...]) -> None:
    """Print the help of a command."""
    app.main([*names, "--help"], prog_name="agentdash", standalone_mode=False)


def main() -> None:
    """Run the command line; print an error as one line on stderr and exit with 2."""
    _open_closed_streams()
    _replace_unencodable()
    try:
        termination.install()  # from here on ctrl-c may come
        with termination.forced_cleanup(start_up.restore):
            code = app.main(standalone_mode=False, prog_name="agentdash")
        with suppress(BrokenPipeError):
            sys.stdout.flush()
        sys.exit(code)
    except click.ClickException as problem:
        _fail(_error_line(problem))
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except OSError as problem:
        log.exception("the command failed")
        # `getcwd` is the only system call here that finds no file without a name
        is_gone = isinstance(problem, FileNotFoundError) and not problem.filename
        gone = "the current directory does not exist any more: change to another one"
        _fail(gone if is_gone else clean_line(str(problem)))
    except EngineFailedError as problem:
        _fail(f"{problem} ({debug_log.hint()})")
    except Exception as problem:
        log.exception("the command failed")
        _fail(f"{clean_line(f'{type(problem).__name__}: {problem}', 200)} ({debug_log.hint()})")
    finally:
        _discard_unwritable()


def _discard_unwritable() -> None:
    """Discard output that cannot be written any more: the interpreter would try again, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # a closed pipe, a full disk, a terminal that is gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_closed_streams() -> None:
    """Replace streams that the caller has closed (`>&-`): such a command is run for its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _replace_unencodable() -> None:
    """Print `?` for characters that the encoding of stdout or stderr (ASCII, in some containers) has not."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # a full disk refuses what is in its buffer: the command will see that
                stream.reconfigure(errors="replace")


def _error_line(problem: click.ClickException) -> str:
    """Return an error as one line. A mistake of the command line ends with the command that explains it; a
    `UsageError` of the commands' own has the next step in its text."""
    text = " ".join(problem.format_message().split()).rstrip(".")
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):  # its text is the whole help
        text = "Missing command"
    kind = getattr(getattr(problem, "param", None), "type", None)
    if isinstance(kind, click.Choice) and (wrong := re.fullmatch(r"(.*'([^']*)') is not one of .*", text)):
        text = f"{wrong[1]} is unknown{suggest(wrong[2], map(str, kind.choices))}"
    is_own = type(problem) is click.UsageError and not text.startswith("Got unexpected extra argument")
    return text if context is None or is_own else f"{text} (see {context.command_path} --help)"


def _fail(message: str) -> NoReturn:
    start_up.restore()
    with suppress(OSError):  # stderr is closed, or on the full disk too
        click.echo(f"agentdash: {message}", err=True)
    sys.exit(2)
