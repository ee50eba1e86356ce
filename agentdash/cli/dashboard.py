"""What opens a screen: the dashboard (without a command) and `demo`."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from agentdash import __version__
from agentdash.agents.codex.home import default_home
from agentdash.cli import debug_log
from agentdash.cli.options import LOOK, config_of, options
from agentdash.collect.clock import SystemClock
from agentdash.config import Config, NotificationSettings
from agentdash.engine.hub import Hub
from agentdash.engine.runner import Service, running
from agentdash.model.clock import Clock
from agentdash.model.pane import PaneKey

if TYPE_CHECKING:
    from agentdash.store.recorder import Recorder
    from agentdash.tui.app import AgentDash
    from agentdash.tui.notifier import Notifier
    from agentdash.tui.options import OnSnapshot

_PANE_POLL_INTERVAL_S: Final = 0.5
"""Between two checks whether the pane to close with exists."""


@click.command()
@options(LOOK)
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 100),
    default=1.0,
    show_default=True,
    help="How fast the day goes by.",
)
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
    """The live dashboard, which tells those inside of sandboxes what it sees; it closes together with a pane, if asked."""
    from agentdash.collect.live import live_sources
    from agentdash.store.status_file import Publisher

    clock = SystemClock()
    recorder = _recorder(config.record, clock) if config.record else None
    sources = [*live_sources(config, clock), *([recorder] if recorder else [])]
    hub = Hub(
        sources, clock, stalled_after=config.stalled_after, observer=recorder.take if recorder else None
    )
    services: list[Service] = []
    if config.publish:
        publisher = Publisher(config.codex_home or default_home(), clock)
        services.append(("status file", lambda: publisher.keep(hub)))
    show(
        hub,
        clock,
        config,
        on_snapshot=_notifier(config.notices).see if config.notices.wanted else None,
        services=services,
        close_with=close_with,
    )


def _recorder(folder: Path, clock: Clock) -> Recorder:
    from agentdash.store.recorder import Recorder

    return Recorder(folder, clock, version=__version__, host=platform.node())


def show(
    hub: Hub,
    clock: Clock,
    config: Config,
    banner: str | None = None,
    on_snapshot: OnSnapshot | None = None,
    services: Sequence[Service] = (),
    close_with: PaneKey | None = None,
) -> None:
    """Open the screen over a hub and run both, with the services, until the screen is closed.

    Args:
        banner: a word in front of the header.
        on_snapshot: called with each snapshot that is shown.
        services: what runs beside the hub.
        close_with: a pane with which the screen closes.
    """
    from agentdash.cli.config import checked_keys
    from agentdash.tui.app import AgentDash
    from agentdash.tui.options import Options

    options = Options(
        ascii=config.ascii,
        theme=config.theme,
        banner=banner,
        keys=checked_keys(config),
        debug_log_hint=debug_log.hint(),
    )
    app = AgentDash(hub, clock, options=options, go_to_pane=_go_to_pane, on_snapshot=on_snapshot)
    if close_with is not None:
        services = [*services, ("close with pane", lambda: _close_with(app, hub, close_with))]
    run(hub, app.run_async, *services)


def run(hub: Hub, screen: Callable[[], Awaitable[None]], *services: Service) -> None:
    """Run a hub, its services and the screen over it, until the screen is closed."""

    async def until_closed() -> None:
        async with running(hub, *services):
            await screen()

    asyncio.run(until_closed())


def _notifier(settings: NotificationSettings) -> Notifier:
    """One that writes to the terminal itself: a sequence in one piece does not get in the way of what a screen draws."""
    from agentdash.tui.notifier import Notifier

    def write(text: str) -> None:
        with suppress(OSError), Path("/dev/tty").open("wb", buffering=0) as terminal:
            terminal.write(text.encode())

    return Notifier(settings, write)


async def _close_with(app: AgentDash, hub: Hub, pane: PaneKey) -> None:
    """Ends the app when a pane is not there any more."""
    name = "tmux" if pane.server == "default" else f"tmux {pane.server.removeprefix('-L ')}"
    while True:
        await asyncio.sleep(_PANE_POLL_INTERVAL_S)
        server = hub.fleet.sources.get(name)
        if server is not None and server.ok and pane not in hub.fleet.panes:
            app.exit()


async def _go_to_pane(key: PaneKey) -> str | None:
    """Goes to a pane; says why not, where that cannot be."""
    from agentdash.collect.tmux.actions import TmuxRefusedError, go_to_pane

    try:
        await asyncio.to_thread(go_to_pane, key)
    except TmuxRefusedError as refusal:
        return str(refusal)
    return None
