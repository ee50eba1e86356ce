"""What is known of past threads beyond their files, as events: observations, and what was asked of them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agentdash.agents.registry import adapters
from agentdash.model.events import ObservationsRecalled, PolicyRequested
from agentdash.model.memory import RememberedObservation, ThreadMemory
from agentdash.model.thread import Thread


def recalled_events(memory: ThreadMemory) -> list[ObservationsRecalled]:
    """Return events in the order of their time, each with all that had been seen until then."""
    return [ObservationsRecalled(at=at, memory=_until(memory, at)) for at in sorted(_times(memory))]


def _times(memory: ThreadMemory) -> set[float]:
    seen = (time for each in memory.observations for time in (each.observation.first, each.observation.last))
    escaped = (escape.at for escape in memory.escapes)
    asked = (request.since or 0.0 for request in memory.requests)
    return {*seen, *escaped, *asked}


def _until(memory: ThreadMemory, at: float) -> ThreadMemory:
    return ThreadMemory(
        thread=memory.thread,
        observations=tuple(_observed(memory, at)),
        escapes=tuple(escape for escape in memory.escapes if escape.at <= at),
        requests=tuple(request for request in memory.requests if (request.since or 0.0) <= at),
    )


def _observed(memory: ThreadMemory, at: float) -> Iterator[RememberedObservation]:
    for each in memory.observations:
        seen = each.observation
        if seen.first <= at:
            yield replace(each, observation=replace(seen, last=min(seen.last, at)))


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
