"""Snapshots for the headless commands: from the live sources, or inside a sandbox from the status file.

The status file is written outside of the sandbox, by a dashboard or by `agentdash publish`.
"""

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
    from agentdash.report.elements import ViaReport
    from agentdash.store.status_file import Published

_FILE_POLL_INTERVAL_S: Final = 0.25
"""Between two reads of the status file; a writer pauses for a second after each write."""
_SOURCE: Final = "status file"
_MIN_PREFIX_CHARS: Final = 4
"""Shorter prefixes of a thread id match too many threads, as ids begin with the time."""


class StatusFileInfo(NamedTuple):
    """The status file that a snapshot was read from."""

    file: str
    age: float | None
    """Seconds since it was written; None if there is no file."""
    pid: int | None
    """Process that wrote it, in the pid namespace of the host."""
    problem: str | None
    """Why it cannot be used; None if it can."""


class FleetView(NamedTuple):
    """A snapshot, and the status file that it was read from; None: from live sources."""

    snapshot: Snapshot
    via: StatusFileInfo | None = None


def read_fleet(config: Config, target: str | None) -> FleetView:
    """Return the fleet, or the workers that match `target`: a thread id or its prefix, a pane, or a name.

    Inside a sandbox it is read from the status file; that, and an engine failure, is reported on stderr.

    Raises:
        click.UsageError: no worker matches.
    """
    now = _poll(config)
    warn_if_indirect(now.via)
    found = select_workers(now.snapshot, target)
    if found is None and config.sessions is not None and now.via is None:
        # it may be older than the sessions that are read at first
        found = select_workers(_poll(replace(config, sessions=None)).snapshot, target)
    if found is None:
        raise click.UsageError(no_such_worker(target, now.via))
    if found.failure is not None:
        click.echo(f"agentdash: engine: {found.failure.text} ({debug_log.hint()})", err=True)
    return FleetView(found, now.via)


def exit_code(snapshot: Snapshot) -> int:
    """Return 2 where the engine failed and the snapshot is incomplete, else 0."""
    return 0 if snapshot.failure is None else 2


async def follow_fleet(config: Config) -> AsyncGenerator[FleetView, None]:
    """Yield the fleet, and again whenever it changes. The first snapshot is complete.

    Raises:
        click.UsageError: inside a sandbox, without a current status file.
    """
    if (why := _confinement(config)) is not None:
        async for each in _follow_file(config, why):
            yield each
        return
    clock = SystemClock()
    hub = Hub(live_sources(config, clock), clock, stalled_after=config.stalled_after)
    yield FleetView(sound(await hub.once()))
    async with running(hub):
        async for snapshot in sound_snapshots(hub):
            yield FleetView(snapshot)


def select_workers(snapshot: Snapshot, target: str | None) -> Snapshot | None:
    """Return the snapshot with the workers that match `target` only; None if there are none."""
    if target is None:
        return snapshot
    workers = snapshot.workers
    for match in (
        [w for w in workers if w.has_name(target)],
        [w for w in workers if len(target) >= _MIN_PREFIX_CHARS and w.id.startswith(target)],
    ):
        if match:
            return replace(snapshot, workers=tuple(match))
    return None


def no_such_worker(target: str | None, via: StatusFileInfo | None = None) -> str:
    """Return the message that no worker matches `target`."""
    if via is not None and via.problem is not None:
        return f"{clean_line(target or '')!r} cannot be observed inside this sandbox: {via.problem}"
    return f"no worker matches {clean_line(target or '')!r}: see `agentdash status`"


def via_report(via: StatusFileInfo | None) -> ViaReport | None:
    """Return the `via` object of a document."""
    if via is None:
        return None
    from agentdash.report.elements import ViaReport

    return ViaReport(via.file, None if via.age is None else round(via.age, 1), via.pid, via.problem)


def warn_if_indirect(via: StatusFileInfo | None) -> None:
    """Report on stderr that a snapshot comes from the status file."""
    if via is not None:
        how = via.problem or f"read from {via.file}, {via.age:.0f} s old"
        click.echo(f"agentdash: inside a sandbox: {how}", err=True)


# ---------------------------------------------------------------- from live sources


def _poll(config: Config) -> FleetView:
    why = _confinement(config)
    return FleetView(_directly(config)) if why is None else _from_file(config, why)


def _directly(config: Config, *, only_files: bool = False) -> Snapshot:
    """Poll the sources once.

    Raises:
        EngineFailedError: no snapshot could be built.
    """
    clock = SystemClock()
    sources = live_sources(config, clock)
    # Codex's seccomp filter forbids `send`, also on asyncio's own socket pair: inside its sandbox no thread
    # or subprocess ever wakes the event loop, and only the first source, Codex's files, needs neither
    hub = Hub(sources[:1] if only_files else sources, clock, stalled_after=config.stalled_after)
    found: list[Snapshot] = []

    async def poll() -> None:
        # not returned: on ctrl-c Python would spend 20 ms on formatting what the task came to
        found.append(await hub.once())

    asyncio.run(poll())
    if (failure := found[0].failure) is not None and not failure.goes_on:
        raise EngineFailedError(failure)
    return found[0]


def _confinement(config: Config) -> str | None:
    """Return the sandbox that this process runs in; None if there is none."""
    from agentdash.collect.processes.confinement import confinement
    from agentdash.collect.tmux.sensor import own_socket

    return confinement(own_socket() if config.tmux else None)


# ---------------------------------------------------------------- from the status file


def _from_file(config: Config, why: str) -> FleetView:
    from agentdash.store.status_file import UnpublishedError, outdated, read_published, status_file

    now = SystemClock().now()
    path = status_file(config.codex_home or default_home())
    try:
        published = read_published(path)
    except UnpublishedError as problem:
        return _unreachable_workers(
            _directly(config, only_files=True),
            StatusFileInfo(clean_line(str(path)), None, None, str(problem)),
            why,
        )
    via = StatusFileInfo(clean_line(str(path)), published.age(now), published.pid, outdated(published, now))
    if via.problem is not None:
        return _unreachable_workers(published.snapshot, via, why)
    return _from_published(published, via, why)


def _from_published(published: Published, via: StatusFileInfo, why: str) -> FleetView:
    writer = f"written by agentdash {published.version}, pid {published.pid}, {via.age:.0f} s ago"
    detail = f"inside a sandbox ({why}): {writer}"
    return FleetView(_with_source(replace(published.snapshot, at=published.written_at), True, detail), via)


def _unreachable_workers(snapshot: Snapshot, via: StatusFileInfo, why: str) -> FleetView:
    """Return the workers of rollout files, or of an outdated status file, with the state `unreachable`."""
    from agentdash.store.status_file import unreachable

    problem = via.problem or ""
    workers = tuple(unreachable(worker, problem, snapshot.at) for worker in snapshot.workers)
    return FleetView(
        _with_source(replace(snapshot, workers=workers), False, f"inside a sandbox ({why}): {problem}"),
        via,
    )


def _with_source(snapshot: Snapshot, ok: bool, detail: str) -> Snapshot:
    return replace(snapshot, sources=(*snapshot.sources, SourceHealth(_SOURCE, ok, detail, snapshot.at)))


async def _follow_file(config: Config, why: str) -> AsyncGenerator[FleetView, None]:
    """Yield the fleet whenever the file is replaced.

    While the file is missing, as when its writer restarts, its last content counts until it is outdated.
    """
    from agentdash.store.status_file import UnpublishedError, outdated, read_published, status_file

    path = status_file(config.codex_home or default_home())
    last: Published | None = None
    while True:
        now = SystemClock().now()
        try:
            published = read_published(path)
        except UnpublishedError as error:
            if last is None or outdated(last, now) is not None:
                raise click.UsageError(f"inside a sandbox: {error}") from error
            published = last
        if (problem := outdated(published, now)) is not None:
            raise click.UsageError(f"inside a sandbox: {problem}")
        if last is None or published.written_at != last.written_at:
            via = StatusFileInfo(clean_line(str(path)), published.age(now), published.pid, None)
            yield _from_published(published, via, why)
        last = published
        await asyncio.sleep(_FILE_POLL_INTERVAL_S)
