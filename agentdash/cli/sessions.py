"""`agentdash sessions`: the sessions of a Codex home and of other CLIs."""

from __future__ import annotations

from typing import Any

import click

from agentdash.cli.options import FLEET_OPTIONS, config_of, json_option, options


@click.command()
@options(FLEET_OPTIONS)
@click.option(
    "--limit",
    type=click.IntRange(0, 1_000_000),
    default=50,
    show_default=True,
    help="Number of sessions, newest first; 0 for all.",
)
@json_option("sessions/2")
def sessions(limit: int, as_json: bool, **given: Any) -> int:
    """List the sessions of a Codex home and of other CLIs, newest first, with archived and compressed ones.

    Exit code 2: something could not be read.

    \b
    agentdash sessions --limit 10
    agentdash sessions --json --limit 0 | jq '.sessions[].id'
    """
    from agentdash.cli.output import Progress, show, warn_unreadable
    from agentdash.report.sessions import print_sessions, read_sessions

    config = config_of(given)
    with Progress() as progress:
        listed = read_sessions(config.codex_home, limit or None, config.claude_home, progress.add)
    show(listed, as_json, print_sessions, soft_wrap=False)
    warn_unreadable(listed.problems)
    return 2 if listed.problems else 0
