"""`agentdash status` and `agentdash sessions`: what there is now, and what there was."""

from __future__ import annotations

from typing import Any

import click

from agentdash.cli.options import FLEET, config_of, options


@click.command()
@options(FLEET)
@click.argument("target", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.status/1.")
def status(target: str | None, as_json: bool, **given: Any) -> None:
    """One look at the whole fleet, or at TARGET: a thread id or its beginning, a pane (%4), or a name."""
    from agentdash.cli.fleet import look
    from agentdash.report.status import print_status, status_json

    snapshot = look(config_of(given), target)
    if as_json:
        click.echo(status_json(snapshot))
        return
    from agentdash.cli.output import console

    print_status(snapshot, console())


@click.command()
@options(FLEET)
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True, help="How many, newest first; 0 for all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.sessions/1.")
def sessions(limit: int, as_json: bool, **given: Any) -> None:
    """The sessions of a Codex home, newest first: live, past, archived and compressed ones."""
    from agentdash.cli.output import console
    from agentdash.report.document import document_json
    from agentdash.report.sessions import print_sessions, read_sessions

    found = read_sessions(config_of(given).codex_home, limit or None)
    if as_json:
        click.echo(document_json(found))
        return
    print_sessions(found, console())
