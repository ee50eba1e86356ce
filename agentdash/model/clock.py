"""The clock protocol. Live sources use the system clock, replay a virtual one."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """What tells the time."""

    def now(self) -> float:
        """Unix seconds, UTC."""
        ...

    async def sleep_until(self, at: float) -> None:
        """Returns when `now()` has reached `at`."""
        ...
