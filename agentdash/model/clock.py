"""The clock protocol. Live sources use the system clock, replay a virtual one."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """A source of time, and of waiting for a time."""

    def now(self) -> float:
        """Return the time (unix seconds, UTC)."""
        ...

    async def sleep_until(self, at: float) -> None:
        """Return when `now()` has reached `at`."""
        ...
