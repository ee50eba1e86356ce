"""The system clock."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Unix seconds, UTC."""
        return time.time()

    async def sleep_until(self, at: float) -> None:
        """Returns when `now()` has reached `at`."""
        await asyncio.sleep(max(0.0, at - self.now()))
