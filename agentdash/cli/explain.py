"""`agentdash explain`: what a conclusion rests on."""

from __future__ import annotations

from typing import TextIO

import click

from agentdash.cli.output import console
from agentdash.config import agents_folder
from agentdash.facts.text import clean_block, clean_line
from agentdash.report.document import document_json
from agentdash.report.screen import print_screen, screen_report
from agentdash.sensors.rules import RulesProblem, load_rules
from agentdash.sensors.screens import read_screen, versions_tested


@click.command()
@click.option(
    "--screen",
    type=click.File("r", encoding="utf-8", errors="replace"),
    required=True,
    metavar="FILE",
    help="What a pane showed, as text; - for stdin.",
)
@click.option("--agent", required=True, metavar="NAME", help="Which worker CLI it was: codex, opencode, claude ...")
@click.option("--title", default="", metavar="TEXT", help="The pane's title.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, schema agentdash.explain-screen/1.")
def explain(screen: TextIO, agent: str, title: str, as_json: bool) -> None:
    """What the rules for a worker CLI make of a screen: for bug reports, and for writing rules.

    tmux capture-pane -p -t %4 | agentdash explain --screen - --agent opencode
    """
    try:
        rules = load_rules(agents_folder())
    except RulesProblem as problem:
        raise click.UsageError(str(problem)) from problem
    if agent not in rules:
        raise click.BadParameter(f"{agent!r} is none of {', '.join(sorted(rules))}", param_hint="--agent")
    reading = read_screen(agent, clean_block(screen.read()).split("\n"), title=clean_line(title), rules=rules)
    report = screen_report(reading, agent, versions_tested(agent, reading.rule, rules))
    if as_json:
        click.echo(document_json(report))
        return
    print_screen(report, console())
