"""The directories that live workers work in."""

from __future__ import annotations

from collections.abc import Iterator

from agentdash.model.fleet import Fleet


def working_directories(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield the directories of live workers of this machine, and the names of the workers."""
    for thread in (*fleet.links.owners, *fleet.links.panes):
        known = fleet.threads.get(thread)
        if known is not None and known.cwd:
            yield known.cwd, known.nickname or known.name or known.agent
    for occupant in fleet.occupants.values():
        process = fleet.processes.get(occupant.key)
        if process is not None and process.cwd:
            yield process.cwd, occupant.agent
