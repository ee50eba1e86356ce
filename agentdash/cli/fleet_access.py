"""Snapshots for the headless commands: from the live sources, or inside a sandbox from the status file.

The status file is written outside of the sandbox, by a dashboard or by `agentdash publish`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import click
from msgspec.structs import replace

from agentdash.agents.codex.home import default_home
from agentdash.cli import debug_log
from agentdash.cli.live_hub import live_hub
from agentdash.cli.targets import (
    AmbiguousTargetError,
    Found,
    find_workers,
    is_pane,
    refusal,
    with_server_of,
)
from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.collect.sources.first_look import FirstLookSource
from agentdash.config import Config, state_folder
from agentdash.engine.hub import Hub, running, sound, sound_snapshots
from agentdash.engine.link.linker import session_line
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.events import PaneSessionRead, ProcessesCounted
from agentdash.model.fleet import SourceHealth
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Snapshot, Worker
from agentdash.store.memory import SOURCE as MEMORY

if TYPE_CHECKING:
    from agentdash.report.elements import ViaReport
    from agentdash.store.status_file import Published
    from agentdash.store.thread_digests import ThreadDigests

_FILE_POLL_INTERVAL_S: Final = 0.25
"""Between two reads of the status file; a writer pauses for a second after each write."""
_NEW_PANE_S: Final = 8.0
"""How long the status file may take to have a pane that has just been opened: 5 s between two writes, and
what the writer takes to see it."""
_SOURCE: Final = "status file"


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


def read_fleet(config: Config, target: str | None, *, no_cache: bool = False) -> FleetView:
    """Return the fleet, or the workers that match `target`: a thread id or its prefix, a pane, or a name.

    Inside a sandbox it is read from the status file; that, and an engine failure, is reported on stderr.
    Without a current status file, a target is `unreachable`.

    Args:
        target: what to look for; None: all.
        no_cache: whether all sessions are read, and no digests of them kept.

    Raises:
        click.UsageError: no worker matches, or panes of several tmux servers do.
    """
    config = with_server_of(config, target)
    now = _poll(config, target, no_cache=no_cache)
    warn_if_indirect(now.via)
    found = select_workers(now.snapshot, target)
    if found is None and config.sessions is not None and now.via is None:
        # it may be older than the sessions that are read at first
        now = _poll(replace(config, sessions=None), target, no_cache=no_cache)
        found = select_workers(now.snapshot, target)
    if found is None and target is not None and is_pane(target) and now.via is not None:
        now = _wait_for_pane(config, target, now)
        found = select_workers(now.snapshot, target)
    if found is None and target is not None and now.via is not None and now.via.problem is not None:
        found = replace(now.snapshot, workers=(_unreachable_target(target, now),))
    if found is None:
        raise click.UsageError(no_such_worker(now.snapshot, target, now.via))
    if found.failure is not None:
        click.echo(f"agentdash: engine: {found.failure.text} ({debug_log.hint()})", err=True)
    return FleetView(found, now.via)


def _wait_for_pane(config: Config, target: str, now: FleetView) -> FleetView:
    """Return the first view with a worker in the pane, or the last one: it may be younger than the file."""
    until = time.monotonic() + _NEW_PANE_S
    while now.via is not None and now.via.problem is None and time.monotonic() < until:
        if select_workers(now.snapshot, target) is not None:
            break
        time.sleep(_FILE_POLL_INTERVAL_S)
        now = _poll(config, target, no_cache=False)
    return now


def exit_code(snapshot: Snapshot) -> int:
    """Return 2 where the engine failed and the snapshot is incomplete, else 0."""
    return 0 if snapshot.failure is None else 2


async def follow_fleet(config: Config, target: str | None = None) -> AsyncGenerator[FleetView, None]:
    """Yield the fleet, and again whenever it changes. The first snapshot is complete.

    Args:
        target: what the caller looks for; its tmux server is watched too.

    Raises:
        click.UsageError: inside a sandbox, without a current status file.
    """
    config = with_server_of(config, target)
    if (why := _confinement(config)) is not None:
        async for each in _follow_file(config, why):
            yield each
        return
    clock = SystemClock()
    live = live_hub(config, clock, FirstLookSource(clock))
    hub = live.hub
    first = _with_session_of(config, hub, sound(await hub.once()), target)
    live.keeper.save(hub.fleet, first)  # the caller may have its answer already
    yield FleetView(first)
    async with running(hub, live.service):
        async for snapshot in sound_snapshots(hub):
            yield FleetView(snapshot)


def select_workers(snapshot: Snapshot, target: str | None) -> Snapshot | None:
    """Return the snapshot with the workers that match `target` only; None if there are none.

    Raises:
        click.UsageError: panes of several tmux servers match.
    """
    if target is None:
        return snapshot
    workers = find(snapshot, target).workers
    return replace(snapshot, workers=workers) if workers else None


def find(snapshot: Snapshot, target: str) -> Found:
    """Return the workers that match `target`.

    Raises:
        click.UsageError: panes of several tmux servers match.
    """
    from agentdash.collect.tmux.servers import own_server

    try:
        return find_workers(snapshot, target, own_server())
    except AmbiguousTargetError as error:
        raise click.UsageError(clean_line(str(error))) from error


def no_such_worker(snapshot: Snapshot | None, target: str | None, via: StatusFileInfo | None = None) -> str:
    """Return the message that no worker matches `target`."""
    named = repr(clean_line(target or ""))
    if via is not None and via.problem is not None:
        return f"{named} cannot be observed inside this sandbox: {via.problem}"
    if snapshot is not None and (why := refusal(snapshot, target or "")) is not None:
        return f"no worker matches {named}: {why}"
    if snapshot is not None and find(snapshot, target or "").pane is not None:
        return f"no worker matches {named}: the pane is there, and no worker CLI runs in it"
    return f"no worker matches {named}: see `agentdash status`"


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


def _poll(config: Config, target: str | None, *, no_cache: bool) -> FleetView:
    if (why := _confinement(config)) is not None:
        return _from_file(config, why)
    if no_cache or config.sessions is None:  # digests of all sessions would displace those of the newest
        return FleetView(_directly(config, target))
    from agentdash.store.digests import DigestStore
    from agentdash.store.thread_digests import ThreadDigests

    known = ThreadDigests(DigestStore(state_folder()), SystemClock())
    snapshot = _directly(config, target, known)
    known.save()
    return FleetView(snapshot)


def _directly(config: Config, target: str | None, known: ThreadDigests | None = None) -> Snapshot:
    """Poll the sources once, and save what was observed.

    Raises:
        EngineFailedError: no snapshot could be built.
    """
    live = live_hub(config, SystemClock(), known=known)
    snapshot = _with_session_of(config, live.hub, _once(live.hub), target)
    if (failure := live.keeper.save(live.hub.fleet, snapshot)) is not None:
        health = SourceHealth(MEMORY, False, failure, snapshot.at)
        others = tuple(source for source in snapshot.sources if source.name != MEMORY)
        snapshot = replace(snapshot, sources=(*others, health))
    return snapshot


def _only_files(config: Config) -> Snapshot:
    """Poll Codex's files once.

    Codex's seccomp filter forbids `send`, also on asyncio's own socket pair: inside its sandbox no thread or
    subprocess ever wakes the event loop, and only the first source, Codex's files, needs neither.
    """
    clock = SystemClock()
    return _once(Hub(live_sources(config, clock)[:1], clock, stalled_after=config.stalled_after))


def _once(hub: Hub) -> Snapshot:
    found: list[Snapshot] = []

    async def poll() -> None:
        # not returned: on ctrl-c Python would spend 20 ms on formatting what the task came to
        found.append(await hub.once(settles=False))

    gc.disable()  # one pass leaves hardly any garbage, and looking for it takes a tenth of the time
    try:
        asyncio.run(poll())
    finally:
        gc.freeze()
        gc.enable()
    if (failure := found[0].failure) is not None and not failure.goes_on:
        raise EngineFailedError(failure)
    return found[0]


def _with_session_of(config: Config, hub: Hub, snapshot: Snapshot, target: str | None) -> Snapshot:
    """Return the snapshot with the session that the scrollback of the target's pane names.

    The scrollback is read only of a pane without a worker, of which nothing else is known.
    """
    if target is None or not config.tmux or not is_pane(target):
        return snapshot
    found = find(snapshot, target)
    if found.workers or found.pane is None or found.pane not in hub.fleet.panes:
        return snapshot
    from agentdash.collect.tmux.scrollback import read_scrollback

    if (session := session_line(tuple(read_scrollback(found.pane)))) is None:
        return snapshot
    pid = hub.fleet.panes[found.pane].server_pid
    read = PaneSessionRead(at=hub.now(), key=found.pane, thread=session, server_pid=pid)
    links_again = ProcessesCounted(at=hub.fleet.processes_at or hub.now(), files_at=hub.fleet.files_at)
    return hub.take([read, links_again])


def _confinement(config: Config) -> str | None:
    """Return the sandbox that this process runs in; None if there is none."""
    from agentdash.collect.processes.confinement import confinement
    from agentdash.collect.tmux.servers import own_socket

    return confinement(own_socket() if config.tmux else None)


# ---------------------------------------------------------------- from the status file


def _from_file(config: Config, why: str) -> FleetView:
    from agentdash.store.status_file import UnpublishedError, outdated, read_published

    now = SystemClock().now()
    path = _published_path(config, now)
    try:
        published = read_published(path)
    except UnpublishedError as error:
        missing = f"{error}{_other_homes(now)}"
        via = StatusFileInfo(clean_line(str(path)), None, None, missing)
        return _unreachable_workers(_only_files(config), via, why)
    problem = outdated(published, now)
    if problem is not None:
        problem += _other_homes(now)
    via = StatusFileInfo(clean_line(str(path)), published.age(now), published.pid, problem)
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


def _unreachable_target(target: str, view: FleetView) -> Worker:
    """Return a target of which nothing is known here as a worker, so that documents keep their form."""
    from agentdash.store.status_file import unreachable

    name = clean_line(target)
    kind: Literal["pane", "codex-thread"] = "pane" if is_pane(target) else "codex-thread"
    worker = Worker(
        id=name,
        kind=kind,
        name=name,
        agent=Agent("unknown"),
        assessment=Assessment(State.UNREACHABLE, None, ""),
    )
    return unreachable(worker, view.via.problem or "" if view.via else "", view.snapshot.at)


def _published_path(config: Config, now: float) -> Path:
    """Return the status file of the Codex home; else, where none was named, the only current one of another.

    Codex's `shell_environment_policy` may keep `CODEX_HOME` from the commands of a sandboxed agent.
    """
    from agentdash.store.status_file import current_files, status_file

    path = status_file(config.codex_home or default_home())
    current = current_files(now)
    is_named = config.codex_home is not None or "CODEX_HOME" in os.environ
    if is_named or path in current or len(current) != 1:
        return path
    return next(iter(current))


def _other_homes(now: float) -> str:
    """Return the end of a message about a missing status file: which Codex homes have a current one."""
    from agentdash.store.status_file import current_files

    homes = sorted(published.home for published in current_files(now).values())
    return f"; or set CODEX_HOME to one that has a current one: {', '.join(homes)}" if homes else ""


def _with_source(snapshot: Snapshot, ok: bool, detail: str) -> Snapshot:
    return replace(snapshot, sources=(*snapshot.sources, SourceHealth(_SOURCE, ok, detail, snapshot.at)))


async def _follow_file(config: Config, why: str) -> AsyncGenerator[FleetView, None]:
    """Yield the fleet whenever the file is replaced.

    While the file is missing, as when its writer restarts, its last content counts until it is outdated.
    """
    from agentdash.store.status_file import UnpublishedError, outdated, read_published

    path = _published_path(config, SystemClock().now())
    last: Published | None = None
    while True:
        now = SystemClock().now()
        try:
            published = read_published(path)
        except UnpublishedError as error:
            if last is None or outdated(last, now) is not None:
                raise click.UsageError(f"inside a sandbox: {error}{_other_homes(now)}") from error
            published = last
        if (problem := outdated(published, now)) is not None:
            raise click.UsageError(f"inside a sandbox: {problem}{_other_homes(now)}")
        if last is None or published.written_at != last.written_at:
            via = StatusFileInfo(clean_line(str(path)), published.age(now), published.pid, None)
            yield _from_published(published, via, why)
        last = published
        await asyncio.sleep(_FILE_POLL_INTERVAL_S)
