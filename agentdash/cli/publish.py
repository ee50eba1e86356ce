"""`agentdash publish`: write the status file that sandboxed agents read."""

from __future__ import annotations

from typing import Any

import click

from agentdash.agents.codex.home import default_home
from agentdash.cli import termination
from agentdash.cli.live_hub import LiveHub, live_hub, return_freed_memory
from agentdash.cli.notices import Notices
from agentdash.cli.options import FLEET_OPTIONS, config_of, options
from agentdash.collect.clock import SystemClock
from agentdash.config import Config
from agentdash.engine.hub import running, sound
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.sanitize import clean_line
from agentdash.store.status_file import Publisher


@click.command()
@options(FLEET_OPTIONS)
def publish(**given: Any) -> None:
    """Watch without a screen, and write the file that `status` and `wait` read inside a sandbox.

    An open dashboard writes it as well; either sends notices. Runs until it is interrupted or terminated,
    and removes the file then.

    Exit code: 128 + the number of the signal, as in 130 for ctrl-c and 143 for SIGTERM. 2: it cannot watch,
    or the file cannot be written.

    \b
    agentdash publish &
    """
    return_freed_memory()
    config = config_of(given)
    clock = SystemClock()
    publisher = Publisher(config.codex_home or default_home(), clock)
    try:
        live = live_hub(config, clock)
        with termination.forced_cleanup(publisher.withdraw), termination.forced_cleanup(live.save):
            termination.run(_publish(live, publisher, config))
    finally:
        publisher.withdraw()  # its service does it, unless it was cancelled before it began


async def _publish(live: LiveHub, publisher: Publisher, config: Config) -> None:
    hub = live.hub
    services = [("status file", lambda: publisher.keep(hub)), live.service]
    if config.notices.is_wanted:
        services.append(Notices(config, hub, publisher.keeper).service)
    try:
        first = sound(await hub.once())
        path = clean_line(str(publisher.path))
        try:
            if (other := publisher.keeper()) is None:
                publisher.write(first)
        except OSError as error:
            raise click.UsageError(f"{path} cannot be written: {error.strerror or error}") from error
        if other is None:
            click.echo(f"agentdash: writing {path} until ctrl-c", err=True)
        else:
            click.echo(f"agentdash: pid {other} already writes {path}; standing by", err=True)
        async with running(hub, *services):
            async for snapshot in hub.snapshots():
                if snapshot.failure is not None and not snapshot.failure.goes_on:
                    raise EngineFailedError(snapshot.failure)
    finally:
        await hub.close()
