"""Restore what a journal repeats of a fleet."""

from __future__ import annotations

from agentdash.engine.reduce.recall import merge_recalled
from agentdash.engine.reduce.recording import drop_ended_panes
from agentdash.engine.reduce.thread import reduce_thread
from agentdash.model.fleet import FleetKnown
from agentdash.model.fleet_draft import CopyOnWrite, FleetDraft
from agentdash.model.registry import RESTORED_FIELDS
from agentdash.model.thread import Thread


def restore_known(draft: FleetDraft, event: FleetKnown) -> None:
    """Add the facts that `model.known.known_of` saved to the draft."""
    drop_ended_panes(draft)
    for name in RESTORED_FIELDS:
        value, current = getattr(event, name), getattr(draft, name)
        if isinstance(current, CopyOnWrite):
            if value:
                current.update(value)
        elif value is not None:
            setattr(draft, name, value)
    for memory in draft.recalled.values():
        if (known := draft.threads.get(memory.thread)) is not None:
            draft.threads[memory.thread] = merge_recalled(known, memory)
    for logged in event.logged:
        thread = draft.threads.get(logged.thread) or Thread(logged.thread)
        draft.threads[logged.thread] = reduce_thread(thread, logged)
