"""Commands that open a screen: the dashboard (without a command), `demo`, `split`."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentdash import __version__
from agentdash.cli.options import FLEET, LIVE, LOOK, config_of, flags_of, options
from agentdash.clock import Clock, SystemClock
from agentdash.config import Config, Notices
from agentdash.facts.pane import PaneKey
from agentdash.hub import Hub

if TYPE_CHECKING:
    from agentdash.notifier import Notifier
    from agentdash.replay.recorder import Recorder
    from agentdash.tui.options import Tell


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
@options(FLEET, LOOK, LIVE)
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

    clock = SystemClock()
    recorder = _recorder(config.record, clock) if config.record else None
    sources = [*live_sources(config, clock), *([recorder] if recorder else [])]
    hub = Hub(sources, clock, stalled_after=config.stalled_after, observer=recorder.take if recorder else None)
    show(hub, clock, config, tell=_notifier(config.notices).see if config.notices.wanted else None)


def _recorder(folder: Path, clock: Clock) -> Recorder:
    from agentdash.replay.recorder import Recorder

    return Recorder(folder, clock, version=__version__, host=platform.node())


def show(hub: Hub, clock: Clock, config: Config, banner: str | None = None, tell: Tell | None = None) -> None:
    """Opens the screen over a hub, and runs both until it is closed."""
    from agentdash.tui.app import AgentDash
    from agentdash.tui.options import Options

    run(hub, AgentDash(hub, clock, options=Options(config.ascii, config.theme, banner), jump=_jump, tell=tell).run_async)


def run(hub: Hub, screen: Callable[[], Awaitable[None]]) -> None:
    """Runs a hub, and the screen over it until that is closed."""

    async def both() -> None:
        running = asyncio.create_task(hub.run())
        try:
            await screen()
        finally:
            running.cancel()

    asyncio.run(both())


def _notifier(settings: Notices) -> Notifier:
    """One that writes to the terminal itself: a sequence in one piece does not get in the way of what a screen draws."""
    from agentdash.notifier import Notifier

    def write(text: str) -> None:
        with suppress(OSError), Path("/dev/tty").open("wb", buffering=0) as terminal:
            terminal.write(text.encode())

    return Notifier(settings, write)


async def _jump(key: PaneKey) -> str | None:
    """Goes to a pane; says why not, where that cannot be."""
    from agentdash.sensors.tmux_actions import TmuxRefusedError, jump

    try:
        await asyncio.to_thread(jump, key)
    except TmuxRefusedError as refusal:
        return str(refusal)
    return None
