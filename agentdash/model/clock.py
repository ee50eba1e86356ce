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


def until_beat(interval_s: float, monotonic_s: float) -> float:
    """Return the seconds until the next multiple of an interval: polls that rest until then share one
    wakeup.

    Args:
        interval_s: of the polls.
        monotonic_s: now, by `time.monotonic`.
    """
    return interval_s - monotonic_s % interval_s
