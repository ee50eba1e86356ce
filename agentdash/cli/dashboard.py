"""`agentdash`, `agentdash demo` and `agentdash publish`: a fleet on the dashboard, recorded, or published.

The terminal is prepared, and shows so, before sources and screens are imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from agentdash.cli import termination
from agentdash.cli.options import (
    APPEARANCE_OPTIONS,
    FLEET_OPTIONS,
    SPEED_OPTION,
    SPEEDS,
    carrier_of,
    config_of,
    options,
)
from agentdash.cli.screen import run_app, screen_options, terminal
from agentdash.cli.termination import forced_cleanup
from agentdash.config import Config, state_folder
from agentdash.model.sanitize import clean_line

if TYPE_CHECKING:
    from agentdash.cli.live_hub import LiveHub
    from agentdash.engine.hub import Hub
    from agentdash.model.pane import PaneKey
    from agentdash.model.worker import Worker
    from agentdash.store.status_file import Publisher
    from agentdash.tui.app import AgentDash

_PANE_POLL_INTERVAL_S: Final = 0.5
"""Between two checks whether the pane to close with exists."""


@click.command()
@options(APPEARANCE_OPTIONS)
@SPEED_OPTION
def demo(speed: str, **given: Any) -> None:
    """Show the dashboard over recorded sessions. Needs neither tmux nor Codex.

    \b
    agentdash demo --speed 4
    """
    config = config_of(given)
    with terminal():
        from agentdash.demo.day import DayConversations, demo_hub, demo_scenes
        from agentdash.engine.user_attention import UserAttention
        from agentdash.tui.app import DemoApp

        hub, clock = demo_hub(SPEEDS[speed])
        conversations = DayConversations(clock)
        options = screen_options(config, banner="DEMO", open_conversation=conversations.open)
        user = UserAttention(hub, clock)
        run_app(DemoApp(hub, clock, demo_scenes(), options=options, attention=user), hub)


def dashboard(config: Config, close_with: PaneKey | None = None) -> None:
    """Show the live dashboard; write the status file and record, where the configuration asks for it.

    Args:
        close_with: exit when this pane closes.

    Raises:
        click.UsageError: there is no terminal.
    """
    with terminal("try `agentdash status`, or `agentdash status --watch`"):
        _show_live(config, close_with)


def _show_live(config: Config, close_with: PaneKey | None) -> None:
    from agentdash.agents.codex.home import default_home
    from agentdash.cli.live_hub import live_hub, return_freed_memory
    from agentdash.collect.clock import SystemClock
    from agentdash.collect.git import read_diff
    from agentdash.engine.user_attention import UserAttention
    from agentdash.store.status_file import Publisher
    from agentdash.tui.app import AgentDash

    return_freed_memory()
    clock = SystemClock()
    recorder = None
    if config.record:
        from agentdash.store.journal import Recorder

        recorder = Recorder(config.record, clock)
    sources = [recorder] if recorder else []
    live = live_hub(config, clock, *sources, observer=recorder.record if recorder else None)
    hub, publisher = live.hub, Publisher(config.codex_home or default_home(), clock)
    user = UserAttention(hub, clock, live.attention.change)
    options = screen_options(
        config,
        attach_command=_attach_commands(config) if config.hosts else None,
        read_diff=partial(read_diff, state_folder()),
    )
    app = AgentDash(hub, clock, options=options, go_to_pane=_go_to_pane, attention=user)
    services = [live.service]
    if config.publish:
        services.append(("status file", lambda: publisher.keep(hub)))
    if config.notices.is_wanted:
        from agentdash.cli.notices import SOURCE, Notices

        services.append((SOURCE, Notices(config, hub, publisher.keeper, _write_to_terminal).keep))
    if close_with is not None:
        services.append(("close with pane", lambda: _close_with(app, hub, close_with)))
    with ExitStack() as stack:
        for cleanup in (publisher.withdraw, live.save, *([recorder.flush] if recorder else [])):
            stack.enter_context(forced_cleanup(cleanup))
        try:
            run_app(app, hub, services)
        finally:
            if app.last_key_at is not None:
                user.look(app.last_key_at)


def _attach_commands(config: Config) -> Callable[[Worker], str]:
    """Return a function that returns the shell command by which a worker of another host is shown."""
    carriers = {name: carrier_of(name, each, config) for name, each in config.hosts.items()}
    return lambda worker: carriers[worker.host or ""].attach_command(worker.pane_there)


def _write_to_terminal(text: str) -> None:
    """Write to the terminal beside Textual, at once: a sequence never splits one of Textual's."""
    with suppress(OSError), Path("/dev/tty").open("wb", buffering=0) as terminal:
        terminal.write(text.encode())


async def _close_with(app: AgentDash, hub: Hub, pane: PaneKey) -> None:
    """Exit the app when the pane has closed."""
    from agentdash.model.pane import tmux_source

    name = tmux_source(pane.server)
    while True:
        await asyncio.sleep(_PANE_POLL_INTERVAL_S)
        server = hub.fleet.sources.get(name)
        if server is not None and server.ok and pane not in hub.fleet.panes:
            app.exit()


async def _go_to_pane(key: PaneKey) -> str:
    """Select a pane in tmux; return what has become of it: tmux may refuse, or have no client here."""
    from agentdash.collect.tmux.actions import TmuxRefusedError, go_to_pane

    try:
        return await asyncio.to_thread(go_to_pane, key)
    except (TmuxRefusedError, OSError) as refusal:
        return clean_line(str(refusal))


# ------------------------------------------------------------


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
    from agentdash.agents.codex.home import default_home
    from agentdash.cli.live_hub import live_hub, return_freed_memory
    from agentdash.collect.clock import SystemClock
    from agentdash.store.status_file import Publisher

    return_freed_memory()
    config = config_of(given)
    clock = SystemClock()
    publisher = Publisher(config.codex_home or default_home(), clock)
    try:
        live = live_hub(config, clock)
        with forced_cleanup(publisher.withdraw), forced_cleanup(live.save):
            termination.run(_publish(live, publisher, config))
    finally:
        publisher.withdraw()  # its service does it, unless it was cancelled before it began


async def _publish(live: LiveHub, publisher: Publisher, config: Config) -> None:
    from agentdash.cli.notices import SOURCE, Notices
    from agentdash.engine.hub import running, sound
    from agentdash.model.engine_failure import EngineFailedError

    hub = live.hub
    services = [("status file", lambda: publisher.keep(hub)), live.service]
    if config.notices.is_wanted:
        services.append((SOURCE, Notices(config, hub, publisher.keeper).keep))
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
