"""`agentdash preflight`: predict what a Codex that is started here would be allowed, before it runs."""

from __future__ import annotations

from pathlib import Path

import click

from agentdash.agents.codex.home import CodexHome, default_home
from agentdash.cli.options import CODEX_HOME_OPTION, config_of, json_option
from agentdash.cli.output import show
from agentdash.model.policy import SANDBOX_MODES
from agentdash.model.sanitize import clean_line
from agentdash.model.suggestions import suggest


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@CODEX_HOME_OPTION
@click.option(
    "--worker", metavar="NAME", help="Predict what would be denied to this agent, started by a Codex."
)
@click.option(
    "--policy",
    type=click.Choice(SANDBOX_MODES),
    default="workspace-write",
    show_default=True,
    metavar="MODE",
    help="With --worker: the sandbox mode of that Codex.",
)
@json_option("preflight/1", "preflight-worker/1")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def preflight(
    worker: str | None, policy: str, as_json: bool, args: tuple[str, ...], codex_home: Path | None
) -> int:
    """Predict the policy of a Codex with ARGS, by these, configuration files and managed settings.

    ARGS are as for codex; options of agentdash come before them. With --worker: the state directories of an
    agent that the sandbox of a Codex would deny it.

    Exit code 0: nothing is in the way. 1: it would not get what is asked for, or something would be denied.

    \b
    agentdash preflight -s workspace-write
    agentdash preflight --json exec -p review
    agentdash preflight --worker opencode --policy workspace-write
    """
    if worker is not None and args:
        raise click.UsageError("--worker takes no arguments of Codex: --policy gives its sandbox mode")
    if worker is not None:
        return _predict_worker(worker, policy, as_json=as_json)
    from agentdash.agents.codex.config.precedence import LAST_MEASURED
    from agentdash.agents.knowledge import installed_codex
    from agentdash.report.predictions import predict_policy, print_policy

    home = CodexHome(config_of({"codex_home": codex_home}).codex_home or default_home())
    found = installed_codex()
    version = (found, "on PATH") if found else (f"{LAST_MEASURED}.0", "the newest that was measured")
    try:
        report = predict_policy(args, home=home.root.expanduser().absolute(), cwd=Path.cwd(), version=version)
    except ValueError as error:
        raise click.UsageError(clean_line(str(error))) from error
    show(report, as_json, print_policy)
    return report.exit_code


def _predict_worker(worker: str, mode: str, *, as_json: bool) -> int:
    from agentdash.agents.state_paths import state_paths
    from agentdash.report.predictions import print_worker_paths, worker_paths_report

    known = state_paths()
    if worker not in known:
        raise click.BadParameter(
            f"{worker!r} is unknown{suggest(worker, sorted(known))}", param_hint="--worker"
        )
    report = worker_paths_report(worker, known[worker], mode, Path.cwd())
    show(report, as_json, print_worker_paths)
    return report.exit_code
