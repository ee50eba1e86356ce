"""`agentdash explain`: the evidence for a worker's state and verdict."""

from __future__ import annotations

from typing import Any

import click

from agentdash.cli.fleet_access import exit_code, read_fleet
from agentdash.cli.options import (
    FLEET_OPTIONS,
    HOST_OPTIONS,
    config_of,
    json_option,
    options,
    target_argument,
)
from agentdash.cli.output import console, print_document
from agentdash.guide import sections
from agentdash.model.suggestions import did_you_mean
from agentdash.report.explain import explain_report, print_explained


@click.command()
@options(FLEET_OPTIONS, HOST_OPTIONS)
@target_argument(required=True)
@json_option("explain/1")
def explain(target: str, as_json: bool, **given: Any) -> int:
    """Explain the state and verdict of TARGET: all evidence, with what disagrees or could not be read.

    TARGET may also be the name of a state or of a kind of finding: what it means, and what to do.

    \b
    agentdash explain %4
    agentdash explain stale-network-flag
    agentdash explain %4 --json > bug.json
    """
    guide = sections()
    if target in guide and not as_json:
        console().print(f"{target}\n\n{guide[target].replace('**', '')}", markup=False)
        return 0
    try:
        snapshot, via = read_fleet(config_of(given), target)
    except click.UsageError as problem:
        raise click.UsageError(f"{problem.message}{did_you_mean(target, guide)}") from problem
    if as_json:
        print_document(explain_report(snapshot, via))
    else:
        print_explained(snapshot, console(soft_wrap=True))
    return exit_code(snapshot, given)
