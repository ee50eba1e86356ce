"""One look at the fleet, and the workers of it that are meant."""

from __future__ import annotations

import asyncio

import click
from msgspec.structs import replace

from agentdash.clock import SystemClock
from agentdash.config import Config
from agentdash.facts.worker import Snapshot
from agentdash.hub import Hub
from agentdash.live import live_sources


def look(config: Config, target: str | None) -> Snapshot:
    """The whole fleet, or the workers that `target` means: a thread id or its beginning, a pane, or a name.

    Raises:
        click.UsageError: nobody is called so.
    """
    found = chosen(_look(config), target)
    if found is None and config.sessions is not None:  # it may be older than those that are read at first
        found = chosen(_look(replace(config, sessions=None)), target)
    if found is None:
        raise click.UsageError(f"no worker is called {target!r}; `agentdash status` lists them all")
    return found


def chosen(snapshot: Snapshot, target: str | None) -> Snapshot | None:
    """The snapshot of the workers that are meant; None where there are none."""
    if target is None:
        return snapshot
    workers = snapshot.workers
    for match in (
        [w for w in workers if w.is_called(target)],
        [w for w in workers if len(target) >= 4 and w.id.startswith(target)],
    ):
        if match:
            return replace(snapshot, workers=tuple(match))
    return None


def _look(config: Config) -> Snapshot:
    clock = SystemClock()
    return asyncio.run(Hub(live_sources(config, clock), clock, stalled_after=config.stalled_after).once())
