"""The system clock."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return the time, unix seconds."""
        return time.time()

    async def sleep_until(self, at: float) -> None:
        """Return when `now()` has reached `at`, unix seconds."""
        await asyncio.sleep(max(0.0, at - self.now()))
