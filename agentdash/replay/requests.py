"""What the configuration files of past threads ask for."""

from __future__ import annotations

from agentdash.agents.registry import adapters
from agentdash.model.events import PolicyRequested
from agentdash.model.thread import Thread


def past_requests(thread: Thread, at: float) -> list[PolicyRequested]:
    """Return what the configuration files of a thread ask for, as they are now (Claude Code).

    Args:
        thread: with its file.
        at: the time of the event (unix seconds).
    """
    adapter = adapters().get(thread.agent)
    reader = adapter.request_reader if adapter is not None else None
    found = reader.read_past(thread, at) if reader is not None else None
    return [] if found is None else [PolicyRequested(at=at, worker=thread.id, requested=found)]
