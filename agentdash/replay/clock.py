"""A virtual clock: it can run faster, be paused, and be set."""

from __future__ import annotations

import asyncio
import time


class VirtualClock:
    """A time of its own that can run faster, stand still, and be set.

    Args:
        start: what `now()` is at first (unix seconds).
        speed: virtual seconds for each real one.
    """

    def __init__(self, start: float, speed: float = 1.0) -> None:
        self._base, self._real = start, time.monotonic()
        self._speed, self._paused = speed, False
        self._changed = asyncio.Event()

    @property
    def speed(self) -> float:
        """Virtual seconds for each real one."""
        return self._speed

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self._paused

    def now(self) -> float:
        """Virtual unix seconds."""
        return self._base if self._paused else self._base + (time.monotonic() - self._real) * self._speed

    def set(
        self, *, now: float | None = None, speed: float | None = None, paused: bool | None = None
    ) -> None:
        """Changes what is given and wakes whoever sleeps."""
        self._base = self.now() if now is None else now
        self._real = time.monotonic()
        self._speed = self._speed if speed is None else speed
        self._paused = self._paused if paused is None else paused
        self._changed.set()
        self._changed = asyncio.Event()

    async def sleep_until(self, at: float) -> None:
        """Returns when `now()` has reached `at`, however often time is changed meanwhile."""
        while (left := at - self.now()) > 0:
            changed = self._changed
            try:
                async with asyncio.timeout(None if self._paused else left / self._speed):
                    await changed.wait()
            except TimeoutError:
                continue
