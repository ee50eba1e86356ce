"""Run a hub, and services beside it, for as long as a block runs.

The dashboard and all headless commands use this runner.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from agentdash.engine.hub import Hub
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.events import SourceSeen
from agentdash.model.sanitize import clean_line
from agentdash.model.worker import Snapshot

log = logging.getLogger(__name__)

Service = tuple[str, Callable[[], Coroutine[Any, Any, None]]]
"""A name, and what runs beside the hub under it."""


async def _at_once() -> None:
    """Wait for nothing."""


@asynccontextmanager
async def running(
    hub: Hub, *services: Service, after: Callable[[], Awaitable[object]] = _at_once
) -> AsyncIterator[None]:
    """Run a hub and its services while the block runs.

    The services are cancelled before the hub, the last one first: they read its snapshots. A service that
    fails is reported as a failed source of the snapshot; the hub's own failure is part of its last snapshot.

    Args:
        after: awaited before each of them starts.
    """

    async def run_hub() -> None:
        await after()
        await hub.run()

    async def serve(service: Service) -> None:
        await after()
        await _serve(hub, *service)

    tasks = [asyncio.create_task(run_hub(), name="hub")]
    tasks += [asyncio.create_task(serve(service), name=service[0]) for service in services]
    try:
        yield
    finally:
        for task in reversed(tasks):
            task.cancel()
            await asyncio.wait((task,))
            if not task.cancelled():
                task.exception()  # retrieved: it is in the snapshot and in the debug log


def sound(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot.

    Raises:
        EngineFailedError: it is old or incomplete.
    """
    if snapshot.failure is not None:
        raise EngineFailedError(snapshot.failure)
    return snapshot


async def sound_snapshots(hub: Hub) -> AsyncIterator[Snapshot]:
    """Yield the snapshots of a running hub.

    Raises:
        EngineFailedError: a snapshot is old or incomplete.
    """
    async for snapshot in hub.snapshots():
        yield sound(snapshot)


async def _serve(hub: Hub, name: str, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await start()
    except Exception as error:
        log.exception("%s failed", name)
        detail = clean_line(f"{type(error).__name__}: {error}", 200)
        hub.emit([SourceSeen(at=hub.now(), name=name, ok=False, detail=detail)])
