"""The fleet as a headless command sees it: directly, or from inside of a sandbox through the status file of an agentdash outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final, NamedTuple

import click
from msgspec.structs import replace

from agentdash.agents.codex.home import default_home
from agentdash.cli import debug_log
from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.config import Config
from agentdash.engine.hub import Hub
from agentdash.engine.runner import running, sound, sound_snapshots
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.fleet import SourceHealth
from agentdash.model.sanitize import clean_line
from agentdash.model.worker import Snapshot

if TYPE_CHECKING:
    from agentdash.report.status import ViaReport
    from agentdash.store.status_file import Published

_GLANCE: Final = 0.25
"""Seconds between two looks at the status file."""
_SOURCE: Final = "status file"


class Via(NamedTuple):
    """The status file that a fleet was read from, where it was not looked at directly."""

    file: str
    age: float | None
    """Seconds since it was written; None where there is none."""
    pid: int | None
    """Who wrote it, as the host counts."""
    problem: str | None
    """Why it is of no use, where it is not."""


class Seen(NamedTuple):
    """The fleet, and how it was seen."""

    snapshot: Snapshot
    via: Via | None = None


def fleet_seen(config: Config, target: str | None) -> Seen:
    """Return the whole fleet, or the workers that match `target`: a thread id or its prefix, a pane, or a name.

    Inside a sandbox it is read from the status file; that, and an engine failure, is said on stderr.

    Raises:
        click.UsageError: no worker matches.
    """
    now = _poll(config)
    warn_if_indirect(now.via)
    found = chosen(now.snapshot, target)
    if found is None and config.sessions is not None and now.via is None:
        # it may be older than the sessions that are read at first
        found = chosen(_poll(replace(config, sessions=None)).snapshot, target)
    if found is None:
        raise click.UsageError(no_such_worker(target, now.via))
    if found.failure is not None:
        click.echo(f"agentdash: engine: {found.failure.text} ({debug_log.hint()})", err=True)
    return Seen(found, now.via)


def exit_code(snapshot: Snapshot) -> int:
    """Return 2 where the engine failed and the snapshot is incomplete, else 0."""
    return 0 if snapshot.failure is None else 2


async def follow(config: Config) -> AsyncGenerator[Seen, None]:
    """The fleet, and the fleet again whenever it has changed. The first is complete.

    Raises:
        click.UsageError: inside of a sandbox, and there is no status file to follow.
    """
    if (why := _confinement(config)) is not None:
        async for each in _follow_file(config, why):
            yield each
        return
    clock = SystemClock()
    hub = Hub(live_sources(config, clock), clock, stalled_after=config.stalled_after)
    yield Seen(sound(await hub.once()))
    async with running(hub):
        async for snapshot in sound_snapshots(hub):
            yield Seen(snapshot)


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


def no_such_worker(target: str | None, via: Via | None = None) -> str:
    """That nobody is called so, in one line."""
    if via is not None and via.problem is not None:
        return f"{clean_line(target or '')!r} cannot be seen from inside of this sandbox: {via.problem}"
    return f"no worker is called {clean_line(target or '')!r}; `agentdash status` lists them all"


def via_report(via: Via | None) -> ViaReport | None:
    """How a fleet was seen, as a document."""
    if via is None:
        return None
    from agentdash.report.status import ViaReport

    return ViaReport(via.file, None if via.age is None else round(via.age, 1), via.pid, via.problem)


def warn_if_indirect(via: Via | None) -> None:
    """Says on stderr that a fleet was not looked at directly."""
    if via is not None:
        how = via.problem or f"told by {via.file}, {via.age:.0f} s old"
        click.echo(f"agentdash: inside of a sandbox: {how}", err=True)


# ---------------------------------------------------------------- directly


def _poll(config: Config) -> Seen:
    why = _confinement(config)
    return Seen(_directly(config)) if why is None else _from_file(config, why)


def _directly(config: Config, *, files_alone: bool = False) -> Snapshot:
    """Poll the sources once.

    Raises:
        EngineFailedError: no snapshot could be built.
    """
    clock = SystemClock()
    sources = live_sources(config, clock)
    # Codex's seccomp filter forbids `send`, also on a socket pair: there asyncio never learns of threads and subprocesses that have ended
    hub = Hub(sources[:1] if files_alone else sources, clock, stalled_after=config.stalled_after)
    found: list[Snapshot] = []

    async def poll() -> None:
        # not returned: on ctrl-c Python would spend 20 ms on formatting what the task came to
        found.append(await hub.once())

    asyncio.run(poll())
    if (failure := found[0].failure) is not None and not failure.goes_on:
        raise EngineFailedError(failure)
    return found[0]


def _confinement(config: Config) -> str | None:
    """The sandbox that we are in; None where there is none."""
    from agentdash.collect.processes.confinement import confinement
    from agentdash.collect.tmux.sensor import own_socket

    return confinement(own_socket() if config.tmux else None)


# ---------------------------------------------------------------- by the status file


def _from_file(config: Config, why: str) -> Seen:
    from agentdash.store.status_file import UnpublishedError, outdated, read_published, status_file

    now = SystemClock().now()
    path = status_file(config.codex_home or default_home())
    try:
        published = read_published(path)
    except UnpublishedError as problem:
        return _without(
            _directly(config, files_alone=True), Via(clean_line(str(path)), None, None, str(problem)), why
        )
    via = Via(clean_line(str(path)), published.age(now), published.pid, outdated(published, now))
    if via.problem is not None:
        return _without(published.snapshot, via, why)
    return _told(published, via, why)


def _told(published: Published, via: Via, why: str) -> Seen:
    said = f"inside of a sandbox ({why}): told by agentdash {published.version}, pid {published.pid}, {via.age:.0f} s ago"
    return Seen(_with_source(replace(published.snapshot, at=published.written_at), True, said), via)


def _without(snapshot: Snapshot, via: Via, why: str) -> Seen:
    """What files tell, or what was told long ago: who is there, but not what becomes of them."""
    from agentdash.store.status_file import unreachable

    problem = via.problem or ""
    workers = tuple(unreachable(worker, problem, snapshot.at) for worker in snapshot.workers)
    return Seen(
        _with_source(replace(snapshot, workers=workers), False, f"inside of a sandbox ({why}): {problem}"),
        via,
    )


def _with_source(snapshot: Snapshot, ok: bool, detail: str) -> Snapshot:
    return replace(snapshot, sources=(*snapshot.sources, SourceHealth(_SOURCE, ok, detail, snapshot.at)))


async def _follow_file(config: Config, why: str) -> AsyncGenerator[Seen, None]:
    """The fleet whenever the file has been replaced. A writer that is started anew is given as long as a file stays news."""
    from agentdash.store.status_file import UnpublishedError, outdated, read_published, status_file

    path = status_file(config.codex_home or default_home())
    last: Published | None = None
    while True:
        now = SystemClock().now()
        try:
            published = read_published(path)
        except UnpublishedError as trouble:
            if last is None or outdated(last, now) is not None:
                raise click.UsageError(f"inside of a sandbox: {trouble}") from trouble
            published = last
        if (problem := outdated(published, now)) is not None:
            raise click.UsageError(f"inside of a sandbox: {problem}")
        if last is None or published.written_at != last.written_at:
            via = Via(clean_line(str(path)), published.age(now), published.pid, None)
            yield _told(published, via, why)
        last = published
        await asyncio.sleep(_GLANCE)
