"""The source protocol: what emits events, live or from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from agentdash.model.events import Event
from agentdash.model.fleet import Fleet

Emit = Callable[[Sequence[Event]], None]
"""Hand events to the engine."""


class Board(Protocol):
    """The newest fleet, readable by sources."""

    @property
    def value(self) -> Fleet:
        """Return the newest fleet."""
        ...

    async def other_than(self, value: Fleet) -> Fleet:
        """Return the newest fleet as soon as it is not `value`."""
        ...


class Source(Protocol):
    """Where events come from."""

    name: str

    async def look(self, fleet: Fleet) -> Sequence[Event]:
        """One pass: everything that there is to say now."""
        ...

    async def run(self, emit: Emit, board: Board) -> None:
        """Says what happens, until cancelled."""
        ...
