"""Reduce events of processes: which live, which worker CLI occupies which pane, which mounts are still
needed."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from agentdash.engine.link.process_tree import ProcessTree
from agentdash.model import events as e
from agentdash.model.fleet import CopyOnWrite, FleetDraft, PaneOccupant
from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.model.worker import nested_worker_id

_V = TypeVar("_V")


def reduce_process(draft: FleetDraft, event: e.ProcessSeen) -> None:
    """Add or update a process; its sandbox is observed again in the next pass."""
    process, before = event.process, draft.processes.get(event.process.key)
    if before is not None and (process.cpu > before.cpu or process.io > before.io):
        draft.busy[process.key] = event.at
    draft.processes[process.key] = process
    draft.observed.discard(process.key)
    if process.zombie and (process.agent or (before is not None and before.agent)):
        _mark_gone(draft, process.key, event.at)


def remove_process(draft: FleetDraft, event: e.ProcessGone) -> None:
    """Remove a process and everything that is known by its key."""
    process = draft.processes.get(event.key)
    draft.processes.discard(event.key)
    draft.busy.discard(event.key)
    draft.sessions.discard(event.key)
    draft.state_paths.discard(event.key)
    draft.observed.discard(event.key)
    if process is not None:
        draft.requests.discard(nested_worker_id(process.pid))
    if process is None or process.agent:
        _mark_gone(draft, event.key, event.at)


def reduce_state_paths(draft: FleetDraft, event: e.StatePathsSeen) -> None:
    """Update the state paths of a worker; an empty list removes them."""
    if event.paths:
        draft.state_paths[event.key] = event.paths
    else:
        draft.state_paths.discard(event.key)


def update_known(known: CopyOnWrite[str, _V], key: str, value: _V | None) -> None:
    """Set the value of a key; None removes it."""
    if value is not None:
        known[key] = value
    else:
        known.discard(key)


def drop_unused_mounts(draft: FleetDraft) -> None:
    """Remove the mount tables of namespaces in which no process lives any more."""
    if draft.mounts:
        used = {process.kernel.mnt for process in draft.processes.values() if process.kernel}
        for namespace in draft.mounts.keys() - used:
            draft.mounts.discard(namespace)


def update_occupants(draft: FleetDraft, tree: ProcessTree) -> None:
    """Set the worker CLI that lives in each pane; panes without a living one keep the last."""
    for pane, occupant in _living_occupants(draft, tree).items():
        if draft.occupants.get(pane) != occupant:
            draft.occupants[pane] = occupant


def _living_occupants(draft: FleetDraft, tree: ProcessTree) -> dict[PaneKey, PaneOccupant]:
    outermost: dict[PaneKey, Process] = {}
    for process in draft.processes.values():
        if not process.agent or process.zombie or (pane := tree.pane(process)) is None:
            continue
        # a wrapper and the program that it starts are both recognized: the worker is the outer one
        known = outermost.get(pane)
        if known is None or process.key.started < known.key.started:
            outermost[pane] = process
    return {
        pane: PaneOccupant(
            agent=process.agent or "",
            key=process.key,
            process=process,
            paths=draft.state_paths.get(process.key, ()),
        )
        for pane, process in outermost.items()
    }


def _mark_gone(draft: FleetDraft, gone: ProcessKey, at: float) -> None:
    """Note when an occupant ended, whether its parent has collected it or not."""
    for pane, occupant in list(draft.occupants.items()):
        if occupant.key == gone and occupant.gone_at is None:
            draft.occupants[pane] = replace(occupant, gone_at=at)
