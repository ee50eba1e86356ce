"""Snapshots for the headless commands: from the live sources, or inside a sandbox from the status file.

The status file is written outside the sandbox, by a dashboard or by `agentdash publish`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from msgspec.structs import replace

from agentdash.agents.codex.home import default_home
from agentdash.cli import debug_log
from agentdash.cli.live_hub import live_hub
from agentdash.cli.options import flags_in_force
from agentdash.collect.clock import SystemClock
from agentdash.collect.live import live_sources
from agentdash.collect.sources.first_look import FirstLookSource
from agentdash.collect.tmux.servers import own_server, own_socket, server_of, servers
from agentdash.config import Config
from agentdash.engine.hub import Hub, running, sound, sound_snapshots
from agentdash.engine.link.candidates import printed_id
from agentdash.engine.link.linker import SESSION_LINE
from agentdash.model.engine_failure import EngineFailedError
from agentdash.model.events import PaneSessionRead, ProcessesCounted, SourceSeen
from agentdash.model.limits import MIN_PREFIX_CHARS
from agentdash.model.pane import REFUSED, PaneKey
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Snapshot, Worker
from agentdash.report.elements import ViaReport
from agentdash.store.memory import SOURCE as MEMORY
from agentdash.store.status_file import (
    Published,
    UnpublishedError,
    current_files,
    outdated,
    read_published,
    status_file,
    unreachable,
)

_FILE_POLL_INTERVAL_S: Final = 0.25
"""Between two reads of the status file; a writer pauses for a second after each write."""
_NEW_PANE_S: Final = 8.0
"""How long the status file may take to have a pane that has just been opened: 5 s between two writes, and
what the writer takes to see it."""


class FleetView(NamedTuple):
    """A snapshot, and the status file that it was read from, or None for live sources."""

    snapshot: Snapshot
    via: ViaReport | None = None


def read_fleet(config: Config, target: str | None, *, whole_since: float | None = None) -> FleetView:
    """Return the fleet, or the workers that match `target`: a thread id or its prefix, a pane, or a name.

    Inside a sandbox it is read from the status file; that, and an engine failure, is reported on stderr.
    Without a current status file, a target is `unreachable`.

    Args:
        target: what to look for; None: all.
        whole_since: sessions that were active after this time (unix seconds) are read whole.

    Raises:
        click.UsageError: no worker matches, or panes of several tmux servers do.
    """
    config = with_server_of(config, target)
    if (why := _confinement(config)) is not None:
        view = _read_file(config, why, target)
    else:
        view = FleetView(_poll(config, target, whole_since=whole_since))
    warn_if_indirect(view.via)
    found = select_workers(view.snapshot, target)
    if found is None and config.sessions is not None and view.via is None:
        # it may be older than the sessions that are read at first
        view = FleetView(_poll(replace(config, sessions=None), target))
        found = select_workers(view.snapshot, target)
    if found is None and target is not None and view.via is not None and view.via.problem is not None:
        unknown = _unknown_worker(target, view.via.problem, view.snapshot.at)
        found = replace(view.snapshot, workers=(unknown,))
    if found is None:
        raise click.UsageError(no_such_worker(view.snapshot, target or ""))
    if found.failure is not None:
        click.echo(f"agentdash: engine: {found.failure.text} ({debug_log.hint()})", err=True)
    return FleetView(found, view.via)


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
    try:
        first = _with_session_of(config, hub, sound(await hub.once()), target)
        live.keeper.save(hub.fleet, first)  # the caller may have its answer already
        yield FleetView(first)
        async with running(hub, live.service):
            async for snapshot in sound_snapshots(hub):
                yield FleetView(snapshot)
    finally:
        await hub.close()


def exit_code(snapshot: Snapshot, given: dict[str, Any]) -> int:
    """Return 2 where the engine failed, or a source cannot be read that the command line names; else 0.

    Args:
        given: the options of the command.
    """
    flags = flags_in_force(given)
    named = servers(flags.get("socket_names", ()), flags.get("socket_paths", ()), default=False)
    carriers = (each.partition("=")[0] for each in flags.get("carriers", ()))
    wanted = {server.source for server in named}
    hosts = (*flags.get("hosts", ()), *flags.get("containers", ()), *carriers)
    # a host by its name may be a container, by config.toml
    wanted |= {f"{kind} {clean_line(name)}" for kind in ("host", "container") for name in hosts}
    failed = any(not source.ok and source.name in wanted for source in snapshot.sources)
    return 2 if failed or snapshot.failure is not None else 0


def select_workers(snapshot: Snapshot, target: str | None) -> Snapshot | None:
    """Return the snapshot with only the workers that match `target`, or None if there are none.

    Raises:
        click.UsageError: panes of several tmux servers match.
    """
    if target is None:
        return snapshot
    workers = find(snapshot, target).workers
    return replace(snapshot, workers=workers) if workers else None


def no_such_worker(snapshot: Snapshot | None, target: str) -> str:
    """Return the message that no worker matches `target`."""
    why = refusal(snapshot, target) if snapshot is not None else None
    if why is None and snapshot is not None and find(snapshot, target).pane is not None:
        why = "the pane is there, and no worker CLI runs in it"
    return f"no worker matches {clean_line(target)!r}: {why or 'see `agentdash status`'}"


def warn_if_indirect(via: ViaReport | None) -> None:
    """Report on stderr that a snapshot comes from the status file."""
    if via is not None:
        how = via.problem or f"read from {via.file}, {via.age_seconds:.0f} s old"
        click.echo(f"agentdash: inside a sandbox: {how}", err=True)


def _confinement(config: Config) -> str | None:
    """Return the sandbox that this process runs in, or None."""
    from agentdash.collect.processes.linux import confinement

    return confinement(own_socket() if config.tmux else None)


# ---------------------------------------------------------------- from live sources


def _poll(
    config: Config,
    target: str | None,
    *,
    whole_since: float | None = None,
    whole: frozenset[str] = frozenset(),
) -> Snapshot:
    """Poll the sources once, and save what was observed; again, where sessions are to be read whole of which
    only head and tail were read: the target, and those that were active since a time.

    Args:
        whole: threads whose logs are read whole.

    Raises:
        EngineFailedError: no snapshot could be built.
    """
    clock = SystemClock()
    live = live_hub(config, clock, whole=whole)
    snapshot = _with_session_of(config, live.hub, _once(live.hub), target)
    if (failure := live.keeper.save(live.hub.fleet, snapshot)) is not None:
        health = SourceSeen(at=snapshot.at, name=MEMORY, ok=False, detail=failure)
        others = tuple(source for source in snapshot.sources if source.name != MEMORY)
        snapshot = replace(snapshot, sources=(*others, health))
    if whole:
        return snapshot
    named = select_workers(snapshot, target) if target is not None else None
    wanted = [*named.workers] if named is not None else []
    if whole_since is not None:
        wanted += [each for each in snapshot.workers if (each.last_activity or 0.0) >= whole_since]
    threads = [live.hub.fleet.threads.get(worker.id) for worker in wanted]
    skimmed = frozenset(each.id for each in threads if each and each.file and each.file.skimmed)
    return _poll(config, target, whole=skimmed) if skimmed else snapshot


def _once(hub: Hub) -> Snapshot:
    found: list[Snapshot] = []

    async def poll() -> None:
        # not returned: on ctrl-c Python would spend 20 ms on formatting what the task came to
        try:
            found.append(await hub.once(settles=False))
        finally:
            await hub.close()

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

    The scrollback is read only for a pane without a worker: nothing else is known of it.
    """
    found = find(snapshot, target) if target is not None and config.tmux and is_pane(target) else Found(())
    if found.workers or found.pane is None or found.pane not in hub.fleet.panes:
        return snapshot
    from agentdash.collect.tmux.actions import read_scrollback

    if (session := printed_id(tuple(read_scrollback(found.pane)), SESSION_LINE)) is None:
        return snapshot
    pid = hub.fleet.panes[found.pane].server_pid
    read = PaneSessionRead(at=hub.now(), key=found.pane, thread=session, server_pid=pid)
    links_again = ProcessesCounted(at=hub.fleet.processes_at or hub.now(), files_at=hub.fleet.files_at)
    return hub.take([read, links_again])


# ---------------------------------------------------------------- from the status file


def _read_file(config: Config, why: str, target: str | None) -> FleetView:
    """Return what the status file has; a pane may be younger than the file, and is waited for."""
    until = time.monotonic() + (_NEW_PANE_S if target is not None and is_pane(target) else 0.0)
    while True:
        view = _file_view(config, *_published(config), why)
        is_found = select_workers(view.snapshot, target) is not None
        if is_found or (view.via and view.via.problem) or time.monotonic() >= until:
            return view
        time.sleep(_FILE_POLL_INTERVAL_S)


async def _follow_file(config: Config, why: str) -> AsyncGenerator[FleetView, None]:
    """Yield the fleet whenever the file is replaced.

    While the file is missing, as when its writer restarts, its last content counts until it is outdated.
    """
    last: Published | None = None
    while True:
        published, via = _published(config)
        if published is None or via.problem is not None:
            if published is not None or last is None or outdated(last, SystemClock().now()) is not None:
                raise click.UsageError(f"inside a sandbox: {via.problem}")
        else:
            if last is None or published.written_at != last.written_at:
                yield _file_view(config, published, via, why)
            last = published
        await asyncio.sleep(_FILE_POLL_INTERVAL_S)


def _published(config: Config) -> tuple[Published | None, ViaReport]:
    """Return the content of the status file, and how documents state it, with what is wrong with it."""
    now = SystemClock().now()
    current = current_files(now)
    path = _status_path(config, current)
    try:
        published = read_published(path)
        problem = outdated(published, now)
    except UnpublishedError as error:
        published, problem = None, str(error)
    if problem is not None and current:
        homes = ", ".join(sorted(each.home for each in current.values()))
        problem += f"; or set CODEX_HOME to one that has a current one: {homes}"
    age = None if published is None else round(published.age(now), 1)
    return published, ViaReport(clean_line(str(path)), age, published.pid if published else None, problem)


def _status_path(config: Config, current: dict[Path, Published]) -> Path:
    """Return the status file of the Codex home; else, where none was named, the only current one of another.

    Codex's `shell_environment_policy` may keep `CODEX_HOME` from the commands of a sandboxed agent.
    """
    path = status_file(config.codex_home or default_home())
    is_named = config.codex_home is not None or "CODEX_HOME" in os.environ
    if is_named or path in current or len(current) != 1:
        return path
    return next(iter(current))


def _file_view(config: Config, published: Published | None, via: ViaReport, why: str) -> FleetView:
    """Return a snapshot of the status file; where that is not current, all its workers are `unreachable`, and
    without any, those of Codex's files are.

    Codex's seccomp filter forbids `send`, also on asyncio's own socket pair: inside its sandbox no thread or
    subprocess ever wakes the event loop, and only the first source, Codex's files, needs neither.
    """
    if published is not None:
        snapshot = replace(published.snapshot, at=published.written_at)
        writer = f"agentdash {published.version}, pid {published.pid}"
        detail = f"written by {writer}, {via.age_seconds:.0f} s ago"
    else:
        clock = SystemClock()
        snapshot = _once(Hub(live_sources(config, clock)[:1], clock, stalled_after=config.stalled_after))
    if via.problem is not None:
        detail = via.problem
        workers = tuple(unreachable(worker, detail, snapshot.at) for worker in snapshot.workers)
        snapshot = replace(snapshot, workers=workers)
    detail = f"inside a sandbox ({why}): {detail}"
    health = SourceSeen(at=snapshot.at, name="status file", ok=via.problem is None, detail=detail)
    return FleetView(replace(snapshot, sources=(*snapshot.sources, health)), via)


def _unknown_worker(target: str, problem: str, at: float) -> Worker:
    """Return a target that nothing is known of here as a worker, so that documents keep their form."""
    name, nothing = clean_line(target), Assessment(State.UNREACHABLE, None, "")
    worker = Worker(name, "codex-thread", name, Agent("unknown"), nothing)
    return unreachable(replace(worker, kind="pane") if is_pane(target) else worker, problem, at)


# ---------------------------------------------------------------- targets
# The workers that a command line means: by thread id or its prefix, name, or pane. A pane id alone (`%4`) is
# that of the caller's own tmux server, if that has such a pane. `NAME:%4` (or, as documents print it,
# `-L NAME %4`) names the server too. Panes keep their answer after they have gone.


_PANE_ID: Final = re.compile(r"%\d+", re.ASCII)
_FULL_PANE: Final = re.compile(r"(?:-L )?(?P<server>[^:]+?)(?::| )%\d+", re.ASCII)


class Found(NamedTuple):
    """The workers that match a target."""

    workers: tuple[Worker, ...]
    pane: PaneKey | None = None
    """The pane that the target names."""
    has_ended: bool = False
    """Whether the worker is known by its past pane alone, and cannot change any more."""


def find(snapshot: Snapshot, target: str) -> Found:
    """Return the workers that match a target, as given on the command line.

    Raises:
        click.UsageError: panes of several tmux servers match, and none of them is the caller's own.
    """
    for is_stale in (False, True):
        if (key := _pane_of(snapshot, target, is_stale=is_stale)) is not None:
            return _workers_in(snapshot, key)
    named = tuple(
        each
        for each in snapshot.workers
        if target in (each.name, each.label, *_ids(each))
        or (each.pane_there and target == f"{each.host}:{each.pane_there}")
    )
    if named or len(target) < MIN_PREFIX_CHARS:
        return Found(named)
    return Found(tuple(w for w in snapshot.workers if any(each.startswith(target) for each in _ids(w))))


def _ids(worker: Worker) -> tuple[str, str]:
    """Return the id of a worker, here and on its host."""
    return worker.id, worker.id.removeprefix(f"{worker.host}:")


def with_server_of(config: Config, target: str | None) -> Config:
    """Return the configuration that also watches the tmux server that a target names."""
    named = _FULL_PANE.fullmatch(target or "")
    if named is None or (server := named["server"]) == "default":
        return config
    if server.startswith("/"):
        return replace(config, socket_paths=tuple(dict.fromkeys((*config.socket_paths, Path(server)))))
    return replace(config, socket_names=tuple(dict.fromkeys((*config.socket_names, server))))


def refusal(snapshot: Snapshot, target: str) -> str | None:
    """Return why a tmux server in which a target may be was refused, with its name, or None."""
    if not is_pane(target):
        return None
    named = _FULL_PANE.fullmatch(target)
    wanted = server_of(named["server"]).source if named is not None else None
    refused = (each for each in snapshot.sources if each.detail.startswith(REFUSED))
    return next((f"{each.name} is {each.detail}" for each in refused if wanted in (None, each.name)), None)


def _pane_of(snapshot: Snapshot, target: str, *, is_stale: bool) -> PaneKey | None:
    """Return the pane that a target names; of a bare id the caller's own, else the only one with a worker."""
    with_worker = {past.key for past in snapshot.past if past.is_stale is is_stale}
    if not is_stale:
        with_worker |= {worker.pane.key for worker in snapshot.workers if worker.pane}
    idle = () if is_stale else snapshot.idle_panes
    named = {key for key in (*with_worker, *idle) if key.has_name(target)}
    here = own_server()
    if own := {key for key in named if key.server == here}:
        return own.pop()
    with_worker &= named
    if len(with_worker) > 1:
        forms = ", ".join(sorted(key.full for key in with_worker))
        raise click.UsageError(clean_line(f"ambiguous target {target!r}: choose from {forms}"))
    return next(iter(with_worker or named), None)


def _workers_in(snapshot: Snapshot, key: PaneKey) -> Found:
    past = next((past for past in snapshot.past if past.key == key), None)
    present = tuple(worker for worker in snapshot.workers if worker.pane and worker.pane.key == key)
    if present or past is None:
        return Found(present, key)
    if past.shown is not None:
        return Found((past.shown,), key, has_ended=True)
    return Found(tuple(worker for worker in snapshot.workers if worker.id == past.worker), key)


def is_pane(target: str) -> bool:
    """Return whether a target is the id of a pane."""
    return bool(_PANE_ID.fullmatch(target) or _FULL_PANE.fullmatch(target))
