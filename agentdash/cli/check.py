"""`agentdash check`: rollouts audited from their files."""

from __future__ import annotations

from typing import Any

import click

from agentdash.cli.options import PATH, config_of
from agentdash.cli.output import console
from agentdash.codex.home import CodexHome, default_home, problem
from agentdash.report.check import check as audit
from agentdash.report.check import find_rollouts, print_check
from agentdash.report.document import document_json


@click.command()
@click.option("--codex-home", type=PATH, metavar="DIR", help="Codex home to audit, or to find threads in.")
@click.argument("targets", nargs=-1, metavar="[PATH|THREAD]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.check/1.")
def check(targets: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Audit rollouts from their files alone: some, or all of a Codex home.

    Exit code 0: nothing was found. 1: there are findings. 2: something could not be read.

    \b
    agentdash check                        all of the Codex home
    agentdash check 01a1fa8b session.jsonl --json
    """
    home = CodexHome(config_of(given).codex_home or default_home())
    if not targets and (trouble := problem(home)) is not None:
        raise click.UsageError(trouble)
    try:
        report = audit(find_rollouts(home, targets))
    except LookupError as missing:
        raise click.UsageError(str(missing)) from missing
    if as_json:
        click.echo(document_json(report))
        return report.exit_code
    print_check(report, console(soft_wrap=True))
    return report.exit_code
