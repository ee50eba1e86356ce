"""`agentdash publish`: write the status file that sandboxed agents read."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Any

import click

from agentdash.agents.codex.home import default_home
from agentdash.cli.live_hub import live_hub
from agentdash.cli.options import FLEET_OPTIONS, config_of, options
from agentdash.collect.clock import SystemClock
from agentdash.config import Config
from agentdash.engine.runner import running, sound
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.sanitize import clean_line
from agentdash.store.status_file import Publisher


@click.command()
@options(FLEET_OPTIONS)
def publish(**given: Any) -> None:
    """Watch without a screen, and write the file that `status` and `wait` read inside a sandbox.

    An open dashboard writes it as well. Ends with ctrl-c.

    \b
    agentdash publish &
    """
    with suppress(asyncio.CancelledError):
        asyncio.run(_publish(config_of(given)))


async def _publish(config: Config) -> None:
    clock = SystemClock()
    publisher = Publisher(config.codex_home or default_home(), clock)
    if (here := asyncio.current_task()) is not None:
        for ending in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(ending, here.cancel)
    live = live_hub(config, clock)
    hub = live.hub
    first = sound(await hub.once())
    if (other := publisher.keeper()) is not None:
        click.echo(
            f"agentdash: pid {other} already writes {clean_line(str(publisher.path))}; standing by", err=True
        )
    else:
        try:
            publisher.write(first)
        except OSError as error:
            raise click.UsageError(
                f"{clean_line(str(publisher.path))} cannot be written: {error.strerror or error}"
            ) from error
        click.echo(f"agentdash: writing {clean_line(str(publisher.path))} until ctrl-c", err=True)
    async with running(hub, ("status file", lambda: publisher.keep(hub)), live.service):
        async for snapshot in hub.snapshots():
            if snapshot.failure is not None and not snapshot.failure.goes_on:
                raise EngineFailedError(snapshot.failure)
