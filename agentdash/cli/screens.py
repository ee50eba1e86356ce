"""Commands that open a screen: the dashboard (without a command), `demo`, `split`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from agentdash.cli.options import FLEET, LOOK, config_of, flags_of, options
from agentdash.clock import Clock, SystemClock
from agentdash.codex.home import default_home
from agentdash.config import Config
from agentdash.facts.pane import PaneKey
from agentdash.hub import Hub

if TYPE_CHECKING:
    from agentdash.report.published import Publisher


@click.command()
@options(LOOK)
@click.option("--speed", type=click.FloatRange(0.1, 100), default=1.0, show_default=True, help="How fast the day goes by.")
def demo(speed: float, **given: Any) -> None:
    """The dashboard over sessions that ship with agentdash, moving. Needs neither tmux nor Codex."""
    from agentdash.demo.play import demo_hub

    config = config_of(given)
    hub, clock = demo_hub(speed)
    show(hub, clock, config, banner="DEMO")


@click.command()
@options(FLEET, LOOK)
@click.option("--right/--below", "right", default=True, help="Where the dashboard goes.  [default: right]")
@click.option("--size", default="40%", show_default=True, metavar="SIZE", help="Columns or rows, or a share with %.")
def split(right: bool, size: str, **given: Any) -> None:
    """Open the dashboard in a tmux split beside this pane."""
    from agentdash.sensors.tmux_actions import TmuxRefusedError
    from agentdash.sensors.tmux_actions import split as open_split

    try:
        open_split("right" if right else "below", size, [sys.executable, "-m", "agentdash", *flags_of(config_of(given))])
    except TmuxRefusedError as refusal:
        raise click.UsageError(str(refusal)) from refusal


def dashboard(config: Config) -> None:
    """The live dashboard."""
    from agentdash.live import live_sources
    from agentdash.report.published import Publisher

    clock = SystemClock()
    publisher = Publisher(config.codex_home or default_home(), clock) if config.publish else None
    show(Hub(live_sources(config, clock), clock), clock, config, publisher=publisher)


def show(hub: Hub, clock: Clock, config: Config, banner: str | None = None, publisher: Publisher | None = None) -> None:
    """Opens the screen over a hub, and runs both until it is closed; meanwhile the publisher tells others what is seen."""
    from agentdash.cli.config import checked_keys
    from agentdash.tui.app import AgentDash
    from agentdash.tui.options import Options

    options = Options(config.ascii, config.theme, banner, keys=checked_keys(config))

    async def both() -> None:
        running = [asyncio.create_task(hub.run())]
        if publisher is not None:
            running.append(asyncio.create_task(publisher.keep(hub)))
        try:
            await AgentDash(hub, clock, options=options, jump=_jump).run_async()
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    asyncio.run(both())


async def _jump(key: PaneKey) -> str | None:
    """Goes to a pane; says why not, where that cannot be."""
    from agentdash.sensors.tmux_actions import TmuxRefusedError, jump

    try:
        await asyncio.to_thread(jump, key)
    except TmuxRefusedError as refusal:
        return str(refusal)
    return None
