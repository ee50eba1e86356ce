"""What opens a screen: the dashboard (without a command) and `demo`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import click

from agentdash.cli.options import LOOK, config_of, options
from agentdash.clock import Clock, SystemClock
from agentdash.codex.home import default_home
from agentdash.config import Config
from agentdash.facts.pane import PaneKey
from agentdash.hub import Hub

if TYPE_CHECKING:
    from agentdash.report.published import Publisher
    from agentdash.tui.app import AgentDash

_GLANCE: Final = 0.5
"""Seconds between two looks at whether a pane is still there."""


@click.command()
@options(LOOK)
@click.option("--speed", type=click.FloatRange(0.1, 100), default=1.0, show_default=True, help="How fast the day goes by.")
def demo(speed: float, **given: Any) -> None:
    """The dashboard over sessions that ship with agentdash, moving. Needs neither tmux nor Codex.

    \b
    agentdash demo --speed 4
    """
    from agentdash.demo.play import demo_hub

    config = config_of(given)
    hub, clock = demo_hub(speed)
    show(hub, clock, config, banner="DEMO")


def dashboard(config: Config, close_with: PaneKey | None = None) -> None:
    """The live dashboard; it closes together with a pane, if asked."""
    from agentdash.live import live_sources
    from agentdash.report.published import Publisher

    clock = SystemClock()
    publisher = Publisher(config.codex_home or default_home(), clock) if config.publish else None
    show(Hub(live_sources(config, clock), clock), clock, config, publisher=publisher, close_with=close_with)


def show(
    hub: Hub,
    clock: Clock,
    config: Config,
    banner: str | None = None,
    publisher: Publisher | None = None,
    close_with: PaneKey | None = None,
) -> None:
    """Opens the screen over a hub, and runs both until it, or the pane `close_with`, is closed.

    Meanwhile the publisher tells others what is seen.
    """
    from agentdash.cli.config import checked_keys
    from agentdash.tui.app import AgentDash
    from agentdash.tui.options import Options

    options = Options(config.ascii, config.theme, banner, keys=checked_keys(config))

    async def both() -> None:
        running = [asyncio.create_task(hub.run())]
        if publisher is not None:
            running.append(asyncio.create_task(publisher.keep(hub)))
        app = AgentDash(hub, clock, options=options, jump=_jump)
        if close_with is not None:
            running.append(asyncio.create_task(_close_with(app, hub, close_with)))
        try:
            await app.run_async()
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    asyncio.run(both())


async def _close_with(app: AgentDash, hub: Hub, pane: PaneKey) -> None:
    """Ends the app when a pane is not there any more."""
    name = "tmux" if pane.server == "default" else f"tmux {pane.server.removeprefix('-L ')}"
    while True:
        await asyncio.sleep(_GLANCE)
        server = hub.fleet.sources.get(name)
        if server is not None and server.ok and pane not in hub.fleet.panes:
            app.exit()


async def _jump(key: PaneKey) -> str | None:
    """Goes to a pane; says why not, where that cannot be."""
    from agentdash.sensors.tmux_actions import TmuxRefusedError, jump

    try:
        await asyncio.to_thread(jump, key)
    except TmuxRefusedError as refusal:
        return str(refusal)
    return None
