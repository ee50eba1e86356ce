"""Events into a fleet: pure, in any batch size, live and replayed alike.

`fold(fleet, a + b) == fold(fold(fleet, a), b)` for every way of cutting a stream of events; a fleet that was handed out never changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from agentdash.facts import events as e
from agentdash.facts.fleet import Fleet, Locks, Source, Tenant, Thread
from agentdash.facts.mounts import Mount
from agentdash.facts.pane import Pane, PaneKey
from agentdash.facts.process import Process, ProcessKey
from agentdash.judge.ancestry import Tree
from agentdash.judge.border import see_escapes
from agentdash.judge.commands import Surroundings, see_commands
from agentdash.judge.reach import Tables
from agentdash.judge.thread import advance

FEED = "codex feed"
"""Name of the source that pushes statuses."""


def fold(fleet: Fleet, events: Iterable[e.Event]) -> Fleet:
    """`fleet` as it is after `events`, in their order."""
    threads, panes, processes = dict(fleet.threads), dict(fleet.panes), dict(fleet.processes)
    tenants, sources, sighted = dict(fleet.tenants), dict(fleet.sources), fleet.sighted
    readings, pushed, mounts, state_paths = dict(fleet.readings), dict(fleet.pushed), dict(fleet.mounts), dict(fleet.state_paths)
    locks, host, looked = fleet.locks, fleet.host, fleet.processes_at
    for event in events:
        match event:
            case e.FileGone():
                threads.pop(event.thread, None)
            case e.ThreadEvent():
                threads[event.thread] = advance(threads.get(event.thread) or Thread(event.thread), event)
            case e.PaneSeen(pane=pane):
                panes[pane.key] = _seen_pane(panes.get(pane.key), pane, event.at)
            case e.PaneDrawn(key=key, screen=screen):
                if key in panes:
                    panes[key] = replace(panes[key], screen=screen, drawn_at=event.at)
            case e.PaneGone(key=key):
                for known in (panes, tenants, readings):
                    known.pop(key, None)
            case e.ScreenRead(key=key):
                readings[key] = _read(readings.get(key), event)
            case e.StatusPushed():
                pushed[event.thread] = event
            case e.ProcessSeen(process=process):
                processes[process.key] = process
                sighted -= {process.key}
            case e.MountsSeen():
                mounts[event.namespace] = event.mounts
            case e.StatePathsSeen():
                state_paths = {k: paths for k, paths in (state_paths | {event.key: event.paths}).items() if paths}
            case e.ProcessGone(key=gone):
                processes.pop(gone, None)
                state_paths.pop(gone, None)
                sighted -= {gone}
                tenants = {k: replace(t, gone_at=event.at) if t.key == gone else t for k, t in tenants.items()}
            case e.ProcessesCounted():
                looked, mounts = event.at, _inhabited(mounts, processes.values())
                tree = Tree(processes.values(), panes)
                tenants |= _tenants(tree, processes.values())
                new = [p for p in processes.values() if p.key not in sighted]
                sighted |= _see(threads, Surroundings(tree, Tables(mounts), host), panes, new, event.at)
            case e.LocksSeen():
                locks = Locks(event.at, event.holders, event.readable)
            case e.HostSeen():
                host = event
            case e.SourceSeen():
                sources[event.name] = Source(event.name, event.ok, event.detail, event.at)
                if event.name == FEED and not event.ok:  # Codex's server has ended, as it may: what it said last is old news now
                    pushed = {}
                    del sources[FEED]
            case _:
                raise TypeError(f"not an event that folds: {event!r}")
    return Fleet(threads, panes, processes, readings, pushed, sighted, tenants, locks, looked, sources, host, mounts, state_paths)


def _see(
    threads: dict[str, Thread], around: Surroundings, panes: dict[PaneKey, Pane], new: list[Process], at: float
) -> frozenset[ProcessKey]:
    """Adds what processes show of their threads (in `threads`, in place); returns those that were added."""
    host = around.host.kernel if around.host else None
    for thread in [t for t in threads.values() if t.tmux]:
        threads[thread.id] = see_escapes(thread, around.tree, panes.values(), host)
    return see_commands(threads, around, new, at)


def _inhabited(mounts: dict[int, tuple[Mount, ...]], processes: Iterable[Process]) -> dict[int, tuple[Mount, ...]]:
    """The tables of those namespaces in which a process lives."""
    if not mounts:
        return mounts
    inhabited = {p.kernel.mnt for p in processes if p.kernel}
    return {namespace: table for namespace, table in mounts.items() if namespace in inhabited}


def _read(was: e.ScreenRead | None, now: e.ScreenRead) -> e.ScreenRead:
    """A pager or a picker hides the prompt: what was known before still holds. An unchanged state keeps its time."""
    if was is None or was.agent != now.agent:
        return now
    if now.frozen:
        return replace(was, frozen=True)
    return replace(now, at=was.at) if (now.state, now.rule) == (was.state, was.rule) else now


def _seen_pane(was: Pane | None, now: Pane, at: float) -> Pane:
    """`list-panes` says nothing of the screen: that stays as it was drawn last."""
    if was is None:
        return replace(now, titled_at=at)
    return replace(now, screen=was.screen, drawn_at=was.drawn_at, titled_at=was.titled_at if was.title == now.title else at)


def _tenants(tree: Tree, processes: Iterable[Process]) -> dict[PaneKey, Tenant]:
    """Which worker CLI lives in which pane now."""
    found: dict[PaneKey, Tenant] = {}
    for process in processes:
        if process.agent and not process.zombie and (key := tree.pane(process)) is not None:
            known = found.get(key)
            # of a wrapper and the program it started, the outer one is the worker
            if known is None or process.key.started < known.key.started:
                found[key] = Tenant(process.agent, process.key)
    return found
