"""The process that was asked to run a thread, and whether what it was asked for is still to be read."""

from __future__ import annotations

from typing import Final

from agentdash.model.fleet import Fleet
from agentdash.model.process import Process
from agentdash.model.thread import Thread

MAY_START_S: Final = 3.0
"""Age up to which a thread without a process may get one: it has just been started."""
_IS_READ_S: Final = 10.0
"""Age of a process at which its request has been read, or cannot be: it takes a tenth of a second on a quiet
machine."""
_CLOCK_TOLERANCE_S: Final = 0.1
"""The start of a process is known to one tick of the kernel's clock."""


def asked_process(fleet: Fleet, thread: Thread) -> Process | None:
    """Return the process that was asked to run a thread: its owner, or where that is a shared server the
    program in its pane, or that of its parent."""
    owner = fleet.links.owners.get(thread.id)
    process = fleet.processes.get(owner.key) if owner and owner.key else None
    if process is not None and process.agent is not None:
        return process
    placed = fleet.links.panes.get(thread.id)
    occupant = fleet.occupants.get(placed.key) if placed else None
    return fleet.processes.get(occupant.key) if occupant and occupant.gone_at is None else None


def awaits_request(fleet: Fleet, thread: Thread) -> bool:
    """Return whether what a thread was asked for is still to be read: it has just started, or its process."""
    if fleet.processes_at is None or not fleet.processes:  # read from files
        return False
    if thread.parent is not None and thread.role is None:
        return False
    process = asked_process(fleet, thread)
    if process is None:
        is_new = fleet.processes_at - (thread.created_at or 0.0) <= MAY_START_S
        return is_new and not fleet.requests.get(thread.id)  # else it has ended already
    if fleet.processes_at - process.key.started > _IS_READ_S:
        return False
    since = max((each.since or 0.0 for each in fleet.requests.get(thread.id, ())), default=0.0)
    return since < process.key.started - _CLOCK_TOLERANCE_S
