"""Save what is known of a fleet beside the contents of rollouts: the event with which a part of a journal
begins."""

from __future__ import annotations

from typing import Any

from agentdash.model.fleet import Fleet, FleetKnown
from agentdash.model.registry import RESTORED_FIELDS


def known_of(fleet: Fleet, at: float) -> FleetKnown:
    """Return the event that restores all facts of a fleet that no rollout contains.

    Args:
        fleet: everything known.
        at: the time of the event (unix seconds).
    """
    fields: dict[str, Any] = {}
    for name in RESTORED_FIELDS:
        value = getattr(fleet, name)
        fields[name] = tuple(value.items()) if isinstance(value, dict) else value
    logged = [
        event
        for thread in fleet.threads.values()
        for event in (*thread.violations, thread.trouble)
        if event is not None
    ]
    return FleetKnown(at=at, logged=tuple(logged), **fields)
