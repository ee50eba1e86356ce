"""Events into a fleet: pure, in any batch size, live and replayed alike.

`fold(fleet, a + b) == fold(fold(fleet, a), b)` for every way of cutting a stream of events; a fleet that was handed out never changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from agentdash.engine.judge.findings.tmux_boundary import detect_escapes
from agentdash.engine.judge.findings.write_access import MountTables
from agentdash.engine.judge.states.activity import differs_beyond_clocks
from agentdash.engine.judge.states.state_history import may_change_state, update_history
from agentdash.engine.link.linker import link_fleet
from agentdash.engine.link.process_tree import Tree
from agentdash.engine.reduce.observations import ProcessContext, observe_commands
from agentdash.engine.reduce.thread import advance
from agentdash.model import events as e
from agentdash.model.fleet import Fleet, Locks, PaneOccupant, Source, Thread, Trouble
from agentdash.model.mounts import Mount
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.model.state_paths import PathAccess

_NEW = 5.0
"""Seconds by which the first line of a thread that begins now may be older than the newest look at processes."""
_GETS_ON = ("running", "completed", "waiting-approval")
"""States of a screen that show that its provider answers again."""
FEED = "codex feed"
"""Name of the source that pushes statuses."""


def reduce(fleet: Fleet, events: Iterable[e.Event]) -> Fleet:  # noqa: PLR0915 - one case for each kind of event
    """`fleet` as it is after `events`, in their order."""
    threads, panes, processes = dict(fleet.threads), dict(fleet.panes), dict(fleet.processes)
    occupants, sources, observed = dict(fleet.occupants), dict(fleet.sources), fleet.observed
    readings, pushed, mounts, state_paths = (
        dict(fleet.readings),
        dict(fleet.pushed),
        dict(fleet.mounts),
        dict(fleet.state_paths),
    )
    busy, troubles, sessions, histories = (
        dict(fleet.busy),
        dict(fleet.troubles),
        dict(fleet.sessions),
        dict(fleet.histories),
    )
    locks, host, polled, links = fleet.locks, fleet.host, fleet.processes_at, fleet.links

    def now() -> Fleet:
        return Fleet(
            threads=threads,
            panes=panes,
            processes=processes,
            readings=readings,
            pushed=pushed,
            observed=observed,
            occupants=occupants,
            locks=locks,
            processes_at=polled,
            sources=sources,
            host=host,
            mounts=mounts,
            state_paths=state_paths,
            links=links,
            busy=busy,
            troubles=troubles,
            sessions=sessions,
            histories=histories,
        )

    for event in events:
        match event:
            case e.FileGone():
                threads.pop(event.thread, None)
                troubles.pop(event.thread, None)
            case e.ThreadEvent():
                threads[event.thread] = advance(threads.get(event.thread) or Thread(event.thread), event)
            case e.PaneSeen(pane=pane):
                panes[pane.key] = _seen_pane(panes.get(pane.key), pane, event.at)
            case e.PaneDrawn(key=key, screen=screen):
                if key in panes:
                    panes[key] = _drawn(panes[key], screen, event.at, occupied=key in occupants)
            case e.PaneGone(key=key):
                for known in (panes, occupants, readings):
                    known.pop(key, None)
                troubles.pop(str(key), None)
            case e.ScreenRead(key=key):
                readings[key] = _read(readings.get(key), event)
                _trouble(
                    troubles,
                    [str(key), *(thread for thread, placed in links.panes.items() if placed.key == key)],
                    event,
                )
            case e.StatusPushed():
                pushed[event.thread] = event
            case e.SessionSeen():
                sessions[event.key] = event
            case e.ProcessSeen(process=process):
                busy |= _works(processes.get(process.key), process, event.at)
                processes[process.key] = process
                if process.zombie:
                    occupants = _left(occupants, process.key, event.at)
                observed -= {process.key}
            case e.MountsSeen():
                mounts[event.namespace] = event.mounts
            case e.StatePathsSeen():
                state_paths = {
                    k: paths for k, paths in (state_paths | {event.key: event.paths}).items() if paths
                }
            case e.ProcessGone(key=gone):
                for lost in (processes, busy, sessions):
                    lost.pop(gone, None)
                state_paths.pop(gone, None)
                observed -= {gone}
                occupants = _left(occupants, gone, event.at)
            case e.ProcessesCounted():
                polled, tree = event.at, Tree(processes.values(), panes)
                mounts = _occupied(mounts, processes.values())
                occupants |= _occupants(tree, processes.values(), state_paths)
                new = [p for p in processes.values() if p.key not in observed]
                observed |= _see(
                    threads, ProcessContext(tree, MountTables(mounts), host), panes, new, event.at
                )
                links = link_fleet(now(), tree)
            case e.LocksSeen():
                locks = Locks(event.at, event.holders, event.readable)
            case e.HostSeen():
                host = event
            case e.SourceSeen():
                sources[event.name] = Source(event.name, event.ok, event.detail, event.at)
                if (
                    event.name == FEED and not event.ok
                ):  # Codex's server has ended, as it may: what it said last is old news now
                    pushed = {}
                    del sources[FEED]
            case _:
                raise TypeError(f"not an event that folds: {event!r}")
        if _begins(event, polled):
            links = link_fleet(now())
        if may_change_state(event, threads, histories):
            update_history(now(), event, histories)
    return now()


def _begins(event: e.Event, polled: float | None) -> bool:
    """Whether a thread begins under our eyes: then it is asked at once what it belongs to, not at the next look at processes."""
    return isinstance(event, e.ThreadStarted) and polled is not None and event.at > polled - _NEW


def _see(
    threads: dict[str, Thread],
    around: ProcessContext,
    panes: dict[PaneKey, Pane],
    new: list[Process],
    at: float,
) -> frozenset[ProcessKey]:
    """Adds what processes show of their threads (in `threads`, in place); returns those that were added."""
    host = around.host.kernel if around.host else None
    for thread in [t for t in threads.values() if t.tmux]:
        threads[thread.id] = detect_escapes(thread, around.tree, panes.values(), host)
    return observe_commands(threads, around, new, at)


def _occupied(
    mounts: dict[int, tuple[Mount, ...]], processes: Iterable[Process]
) -> dict[int, tuple[Mount, ...]]:
    """The tables of those namespaces in which a process lives."""
    if not mounts:
        return mounts
    occupied = {p.kernel.mnt for p in processes if p.kernel}
    return {namespace: table for namespace, table in mounts.items() if namespace in occupied}


def _left(occupants: dict[PaneKey, PaneOccupant], gone: ProcessKey, at: float) -> dict[PaneKey, PaneOccupant]:
    """The tenants when a process has ended, collected or not."""
    return {
        k: replace(t, gone_at=at) if t.key == gone and t.gone_at is None else t for k, t in occupants.items()
    }


def _works(was: Process | None, now: Process, at: float) -> dict[ProcessKey, float]:
    """Whether a process has used CPU or moved bytes since it was seen last."""
    return {now.key: at} if was is not None and (now.cpu > was.cpu or now.io > was.io) else {}


def _trouble(troubles: dict[str, Trouble], workers: Iterable[str], reading: e.ScreenRead) -> None:
    """A screen tells of trouble that no file will ever mention; when it shows work or an answer again, the trouble may be over."""
    for worker in workers:
        if reading.state == "failed-provider":
            troubles[worker] = Trouble(reading.at, "screen", reading.text)
        elif reading.state in _GETS_ON and worker in troubles and troubles[worker].over is None:
            troubles[worker] = replace(troubles[worker], over=reading.at)


def _drawn(pane: Pane, screen: tuple[str, ...], at: float, *, occupied: bool) -> Pane:
    """Whether more than a clock moved is asked of workers only: other panes are nobody's business."""
    if not occupied:
        return replace(pane, screen=screen, drawn_at=at)
    before = pane.drawn_at if pane.moved_at is None else pane.moved_at
    return replace(
        pane,
        screen=screen,
        drawn_at=at,
        moved_at=at if differs_beyond_clocks(pane.screen, screen) else before,
    )


def _read(was: e.ScreenRead | None, now: e.ScreenRead) -> e.ScreenRead:
    """A pager or a picker hides the prompt: what was known before still holds. An unchanged state keeps its time."""
    if was is None or was.agent != now.agent:
        return now
    if now.frozen:
        return replace(was, frozen=True)
    return replace(now, at=was.at) if (now.state, now.rule) == (was.state, was.rule) else now


def _seen_pane(was: Pane | None, now: Pane, at: float) -> Pane:
    """`list-panes` says nothing of the screen: that stays as it was drawn last."""
    dead_at = (was.dead_at if was else now.dead_at) or at if now.dead else None
    if was is None:
        return replace(now, titled_at=at, dead_at=dead_at)
    titled_at = was.titled_at if was.title == now.title else at
    return replace(
        now,
        screen=was.screen,
        drawn_at=was.drawn_at,
        moved_at=was.moved_at,
        titled_at=titled_at,
        dead_at=dead_at,
    )


def _occupants(
    tree: Tree, processes: Iterable[Process], paths: dict[ProcessKey, tuple[PathAccess, ...]]
) -> dict[PaneKey, PaneOccupant]:
    """Which worker CLI lives in which pane now."""
    found: dict[PaneKey, PaneOccupant] = {}
    for process in processes:
        if process.agent and not process.zombie and (key := tree.pane(process)) is not None:
            known = found.get(key)
            # of a wrapper and the program it started, the outer one is the worker
            if known is None or process.key.started < known.key.started:
                found[key] = PaneOccupant(
                    process.agent, process.key, process=process, paths=paths.get(process.key, ())
                )
    return found
