"""Recognize the worker CLIs that a command of a thread has started, and that have no pane of their own."""

from __future__ import annotations

from collections.abc import Iterator

from agentdash.engine.link.commands import is_below, thread_of
from agentdash.engine.link.process_tree import ProcessTree, is_codex, is_multiplexer
from agentdash.model.fleet import FleetView
from agentdash.model.links import ThreadOwner
from agentdash.model.process import THREAD_VARIABLES, Process, ProcessKey


def link_nested_workers(
    fleet: FleetView, tree: ProcessTree, owners: dict[str, ThreadOwner]
) -> dict[ProcessKey, str]:
    """Return the thread that each nested worker CLI belongs to.

    One that runs a thread of its own is left out: that thread is a worker already.
    """
    busy = {owner.key for owner in owners.values()} | {
        occupant.key for occupant in fleet.occupants.values() if occupant.gone_at is None
    }
    for runs in owners.values():
        busy |= {wrapper.key for wrapper in _wrappers(fleet, tree, runs)}
    found: dict[ProcessKey, str] = {}
    for process in fleet.processes.values():
        env = process.env or {}
        if not process.agent or process.zombie or process.key in busy:
            continue
        if not any(name in env for name in THREAD_VARIABLES.values()):
            continue
        thread = thread_of(process, tree)
        if thread is None or thread not in fleet.threads:
            continue
        if is_below(process, thread, owners.get(thread), tree) and _is_outermost(process, thread, tree):
            found[process.key] = thread
    return found


def _wrappers(fleet: FleetView, tree: ProcessTree, owner: ThreadOwner) -> Iterator[Process]:
    """Yield the processes of the same worker CLI above the owner of a thread: Node runs Codex' program."""
    process = fleet.processes.get(owner.key) if owner.key else None
    for parent in tree.above(process) if process is not None else ():
        if process is None or parent.agent != process.agent:
            return
        yield parent


def link_nested_threads(
    fleet: FleetView, tree: ProcessTree, owners: dict[str, ThreadOwner]
) -> dict[str, str]:
    """Return the thread whose command started the Codex that runs a thread of its own."""
    found: dict[str, str] = {}
    for thread, owner in owners.items():
        process = fleet.processes.get(owner.key) if owner.key else None
        if process is None or not any(name in (process.env or {}) for name in THREAD_VARIABLES.values()):
            continue
        outer = thread_of(process, tree)
        if outer is None or outer == thread or (above := owners.get(outer)) is None:
            continue
        if is_below(process, outer, above, tree):
            found[thread] = outer
    return found


def _is_outermost(process: Process, thread: str, tree: ProcessTree) -> bool:
    """Return whether a worker CLI descends from the one that runs a thread, with no other worker and no tmux
    server between them."""
    for parent in tree.above(process):
        if is_multiplexer(parent):
            return False
        if parent.agent and thread_of(parent, tree) == thread:
            return False  # its wrapper, or a worker that started it
        if is_codex(parent):
            return True
    return False
