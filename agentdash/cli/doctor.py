"""`agentdash doctor`: check what agentdash depends on."""

from __future__ import annotations

from typing import Any

import click

from agentdash.cli.options import FLEET_OPTIONS, HOST_OPTIONS, carrier_of, config_of, json_option, options
from agentdash.cli.output import show
from agentdash.report.doctor import diagnose, print_doctor
from agentdash.report.redact import Scrubber, map_texts


@click.command()
@options(FLEET_OPTIONS, HOST_OPTIONS)
@click.option(
    "--report",
    "for_others",
    is_flag=True,
    help="Leave out the names of homes, users and hosts, for a bug report. Nothing is sent.",
)
@json_option("doctor/1")
def doctor(for_others: bool, as_json: bool, **given: Any) -> int:
    """Check what agentdash depends on: Codex, tmux, processes, sandboxes, hosts, file events.

    Each check is ok, warn or fail, with advice. Exit code 0: nothing failed. 1: something failed.

    \b
    agentdash doctor
    agentdash doctor --host build1            whether it is reached, and has agentdash
    agentdash doctor --report > doctor.txt
    agentdash doctor --json | jq '.checks[] | select(.level != "ok")'
    """
    config = config_of(given)
    report = diagnose(config, [carrier_of(name, each, config) for name, each in config.hosts.items()])
    if for_others:
        scrubber = Scrubber.of_this_machine(config.hosts)
        scrubber.learn(report)
        report = map_texts(report, scrubber.text)
    show(report, as_json, print_doctor, soft_wrap=False)
    return report.exit_code
