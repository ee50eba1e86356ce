"""Save what is known of a fleet beside the contents of rollouts: the event with which a part of a journal
begins."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from agentdash.model.evidence import EvidenceSource
from agentdash.model.fleet import RESTORED_FIELDS, Fleet, FleetKnown
from agentdash.model.memory import RememberedObservation, ThreadMemory
from agentdash.model.thread import Thread


def memory_of(thread: Thread) -> ThreadMemory:
    """Return what is known of a thread's live processes, which no rollout contains."""
    return ThreadMemory(
        thread=thread.id,
        observations=tuple(
            RememberedObservation(
                observation=replace(observation, policy=-1),
                policy_since=thread.policies[observation.policy].since if observation.policy >= 0 else None,
            )
            for observation in thread.observations
            if observation.source is EvidenceSource.ENVIRONMENT and not observation.provisional
        ),
        escapes=thread.escapes,
    )


def known_of(fleet: Fleet, at: float) -> FleetKnown:
    """Return the event that restores all facts of a fleet that no rollout contains.

    Args:
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
