"""`agentdash reach`: what each worker could write, read or connect to now."""

from __future__ import annotations

from typing import Any

import click

from agentdash.cli.options import FLEET_OPTIONS, config_of, json_option, options, target_argument


@click.command()
@options(FLEET_OPTIONS)
@target_argument(required=False)
@json_option("reach/1")
def reach(target: str | None, as_json: bool, **given: Any) -> int:
    """List what each worker, or TARGET, could reach now: sockets by which commands get out of a sandbox,
    files that others run or trust, keys and tokens, the directories of other workers, the network.

    It is read from mounts, modes, owners and namespaces of its processes; no target is opened. It is at most
    that: a seccomp filter, Landlock or a security module may refuse more. Of a worker without a running
    command it follows from the policy. Linux only; workers of other hosts are left out.

    Exit code 2: the fleet could not be read, or neither TARGET's processes nor its policy.

    \b
    agentdash reach %4
    agentdash reach --json | jq '.fleet[] | select(.kind == "escape")'
    """
    from agentdash.cli.fleet_access import exit_code, read_fleet, select_workers
    from agentdash.cli.output import show
    from agentdash.report.reach import print_reach, reach_report

    config = config_of(given)
    snapshot, via = read_fleet(config, None)
    if via is not None:  # the status file has the pids of another namespace
        raise click.UsageError("reach cannot be observed inside a sandbox: run it outside")
    chosen = None
    if target is not None:
        chosen = (select_workers(snapshot, target) or read_fleet(config, target).snapshot).workers
    report = reach_report(snapshot, chosen)
    show(report, as_json, print_reach)
    is_unknown = target is not None and all(worker.by is None for worker in report.workers)
    return 2 if is_unknown else exit_code(snapshot, given)
