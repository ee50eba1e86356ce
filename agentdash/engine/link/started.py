"""Link a thread that has just started, without linking all others again.

The result is that of `link_fleet`, as long as nothing but the thread is new since the fleet was linked; what
else has changed since then is left to the next pass over processes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agentdash.engine.link.candidates import Tui, is_of, newest_candidate, only_one
from agentdash.engine.link.linker import is_root, link_fleet, living_tuis, session_line
from agentdash.engine.link.process_tree import is_daemon
from agentdash.model.fleet import FleetView
from agentdash.model.links import FleetLinks, PaneLink
from agentdash.model.process import THREAD_VARIABLES
from agentdash.model.thread import Thread


def link_started(fleet: FleetView, thread: Thread) -> FleetLinks:
    """Return the links of a fleet in which a thread has just started."""
    if _may_have_evidence(fleet, thread):
        return link_fleet(fleet)
    links = replace(fleet.links, parents=fleet.links.parents | _parents(fleet, thread))
    if not is_root(thread) or (tui := _only_tui(fleet, thread)) is None:
        return links
    linked = {each: link for each, link in links.panes.items() if link.key != tui.pane.key}
    free = (each for each in fleet.threads.values() if is_root(each) and each.id not in linked)
    newest = newest_candidate(tui, free)
    return links if newest is None else replace(links, panes=linked | {newest.id: only_one(tui)})


def _parents(fleet: FleetView, thread: Thread) -> dict[str, str]:
    """Return the parents that a thread states: of its children, where these state none, and its own."""
    spawned = {child: thread.id for child in thread.children if not _states_parent(fleet, child)}
    return spawned | ({thread.id: thread.parent} if thread.parent else {})


def _states_parent(fleet: FleetView, child: str) -> bool:
    known = fleet.threads.get(child)
    return known is not None and known.parent is not None


def _may_have_evidence(fleet: FleetView, thread: Thread) -> bool:
    """Return whether more than its directory may link a thread, or the directory less: beside a daemon."""
    links = fleet.links
    return (
        bool(thread.last_prompt or thread.forked_from)
        or any(thread.id in known for known in (links.owners, links.orphans, links.commands, links.panes))
        or thread.parent in links.owners
        or any(map(is_daemon, fleet.processes.values()))
        or (fleet.locks is not None and thread.id in fleet.locks.holders)
        or any(seen.session == thread.id for seen in fleet.sessions.values())
        or any(past.worker == thread.id for past in fleet.past_workers.values())
        or any(_names(process_words, thread) for process_words in _process_words(fleet))
        or any(session_line(pane.screen) == thread.id for pane in fleet.panes.values())
    )


def _process_words(fleet: FleetView) -> Iterator[tuple[str | None, ...]]:
    """Yield what may name a thread, of each process: its variables, its open rollouts, its arguments."""
    for process in fleet.processes.values():
        variables = map(process.env.get, THREAD_VARIABLES.values()) if process.env else ()
        yield (*variables, *process.rollouts, *(process.argv if process.agent else ()))


def _names(words: tuple[str | None, ...], thread: Thread) -> bool:
    return thread.id in words or (thread.file is not None and thread.file.path in words)


def _only_tui(fleet: FleetView, thread: Thread) -> Tui | None:
    """Return the only TUI that may have started a thread: without one, or linked by its directory alone."""
    if not is_of(thread, thread.cwd):
        return None
    placed = {link.key for link in fleet.links.panes.values() if link.how is not PaneLink.ONLY_ONE}
    found = [tui for tui in living_tuis(fleet, placed) if tui.process.cwd == thread.cwd]
    return found[0] if len(found) == 1 else None
