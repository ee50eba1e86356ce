"""`agentdash explain`: the evidence for a worker's state and verdict."""

from __future__ import annotations

from typing import Any, TextIO

import click

from agentdash.agents.screen_reader import read_screen, versions_tested
from agentdash.agents.screen_rules import RulesProblem, load_rules
from agentdash.cli.fleet_access import exit_code, read_fleet, via_report
from agentdash.cli.options import FLEET_OPTIONS, HOST_OPTIONS, config_of, options
from agentdash.cli.output import console
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.report.document import document_json
from agentdash.report.explain import explain_report, print_explained
from agentdash.report.explain_screen import print_screen, screen_report


@click.command()
@options(FLEET_OPTIONS, HOST_OPTIONS)
@click.argument("target", required=False)
@click.option(
    "--screen",
    type=click.File("r", encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="Explain the captured text of a pane instead of a worker; - for stdin.",
)
@click.option(
    "--agent", metavar="NAME", help="With --screen: the worker CLI, such as codex, opencode or claude."
)
@click.option("--title", default="", metavar="TEXT", help="With --screen: the pane's title.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON document, schema agentdash.explain/1 or agentdash.explain-screen/1.",
)
def explain(
    target: str | None, screen: TextIO | None, agent: str | None, title: str, as_json: bool, **given: Any
) -> int:
    """Explain the state and verdict of TARGET: all evidence, with what disagrees or could not be read.

    With --screen: show what the rules of a worker CLI match on a screen, for bug reports and rule writers.

    \b
    agentdash explain %4
    tmux capture-pane -p -t %4 | agentdash explain --screen - --agent opencode
    """
    if screen is not None:
        _explain_screen(screen, agent, title, as_json)
        return 0
    if target is None:
        raise click.UsageError("missing TARGET (a thread id or its prefix, a pane, or a name) or --screen")
    snapshot, via = read_fleet(config_of(given), target)
    if as_json:
        click.echo(document_json(explain_report(snapshot, via_report(via))))
        return exit_code(snapshot)
    print_explained(snapshot, console(soft_wrap=True))
    return exit_code(snapshot)


def _explain_screen(screen: TextIO, agent: str | None, title: str, as_json: bool) -> None:
    try:
        rules = load_rules(config_of({}).agents)
    except RulesProblem as problem:
        raise click.UsageError(str(problem)) from problem
    if agent not in rules:
        raise click.BadParameter(
            f"invalid worker CLI {agent or ''!r}: choose from {', '.join(sorted(rules))}",
            param_hint="--agent",
        )
    reading = read_screen(agent, clean_block(screen.read()).split("\n"), title=clean_line(title), rules=rules)
    report = screen_report(reading, agent, versions_tested(agent, reading.rule, rules))
    if as_json:
        click.echo(document_json(report))
        return
    print_screen(report, console())
