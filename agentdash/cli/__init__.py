"""The commands: flags in, exit code out. A command's module is imported when it is run, so that `--version` is quick."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Final

import click

from agentdash import __version__
from agentdash.cli.options import FLEET, LIVE, LOOK, config_of, given_flags, options
from agentdash.model.sanitize import clean_line

COMMANDS: Final = {
    "demo": "dashboard",
    "split": "split",
    "replay": "replay",
    "status": "status",
    "wait": "wait",
    "publish": "publish",
    "sessions": "status",
    "check": "check",
    "explain": "explain",
    "schema": "schema",
    "config": "config",
    "doctor": "doctor",
    "completion": "completion",
}
"""Each command and the module of this package that it lives in."""


class _Commands(click.Group):
    """A group whose commands are imported when somebody asks for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"agentdash.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # whoever read has left; nothing is wrong
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # what is still to be flushed has nowhere to go
            return 0


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@options(FLEET, LOOK, LIVE)
@click.option(
    "--close-with",
    metavar="PANE",
    hidden=True,
    help="Close together with a pane of the server that agentdash runs in.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context, /, close_with: str | None, **given: Any) -> None:
    """What every coding agent is doing, why, and in which sandbox: configured beside got.

    Without a command: the live dashboard.

    \b
    agentdash                         your Codex home and your tmux server
    agentdash -L work --theme light   a further tmux server, and other colours
    """
    context.obj = given_flags(given)
    if context.invoked_subcommand is None:
        from agentdash.cli.dashboard import dashboard
        from agentdash.collect.tmux.sensor import beside

        dashboard(config_of({}), beside(close_with) if close_with else None)


def main() -> None:
    """The console script: every problem is one line on stderr and exit 2."""
    try:
        sys.exit(app.main(standalone_mode=False, prog_name="agentdash"))
    except click.ClickException as problem:
        click.echo(
            f"agentdash: {problem.format_message().rstrip('.')} (agentdash --help shows what there is)",
            err=True,
        )
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except OSError as problem:
        click.echo(f"agentdash: {clean_line(str(problem))}", err=True)
        sys.exit(2)
