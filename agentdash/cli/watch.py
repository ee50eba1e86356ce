"""`agentdash watch`: the news of the fleet as plain lines, until it is ended."""

from __future__ import annotations

from typing import Any

import click

from agentdash.cli import termination
from agentdash.cli.options import FLEET_OPTIONS, HOST_OPTIONS, config_of, options, target_argument
from agentdash.config import Config


@click.command()
@options(FLEET_OPTIONS, HOST_OPTIONS)
@target_argument(required=False)
def watch(target: str | None, **given: Any) -> None:
    """Print what changes, of all workers or of TARGET, as plain sentences: for screen readers and logs.

    The first line counts the workers; then there is one line for each change of a state, each finding, and
    each worker that appears or goes. `status --watch` prints the same as JSON.

    \b
    agentdash watch
    agentdash watch %4 >> worker.log
    """
    from agentdash.cli.output import until_pipe_closes

    termination.run(until_pipe_closes(_watch(config_of(given), target)))


async def _watch(config: Config, target: str | None) -> None:
    import msgspec

    from agentdash.cli.fleet_access import follow_fleet, select_workers, warn_if_indirect
    from agentdash.model.secrets import mask_secrets
    from agentdash.model.worker import Snapshot
    from agentdash.report.change import news

    last: Snapshot | None = None
    async for snapshot, via in follow_fleet(config, target):
        if last is None:
            warn_if_indirect(via)
        chosen = select_workers(snapshot, target)
        if last is None and chosen is None:
            click.echo(f"agentdash: no worker matches {target!r} yet: see `agentdash status`", err=True)
        now = chosen or msgspec.structs.replace(snapshot, workers=())
        for line in news(last, now):
            click.echo(mask_secrets(line))
        last = now
