"""Time limits of the live tests: of a quiet machine, scaled by how slow this one is."""

import asyncio
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Final

_LIMIT_S: Final = 30.0
"""On a quiet machine; what the tests wait for takes a tenth of it."""
_SAMPLE_STEPS: Final = 3_000_000
_QUIET_SAMPLE_S: Final = 0.35
"""Wall-clock time of the sample on a quiet core of a cloud machine of 2025, CPython 3.11."""
_MAX_FACTOR: Final = 10.0
"""A machine that is even slower is broken, and waiting longer shows nothing new."""
_POLL_INTERVAL_S: Final = 0.02
_MAX_COMMAND_S: Final = 9.0
"""Codex continues a command in the background after 10 s (the model server's `yield_ms`)."""


def slowness() -> float:
    """Return how many times slower than a quiet machine this one is, from 1 to 10.

    It is measured at the first call; the load average adds what has come since.
    """
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(max(1.0, _measured(), load), _MAX_FACTOR)


@cache
def _measured() -> float:
    start = time.perf_counter()
    total = 0
    for number in range(_SAMPLE_STEPS):
        total += number * number
    return (time.perf_counter() - start) / _QUIET_SAMPLE_S


def scaled(seconds: float) -> float:
    """Return the time that something takes here that takes `seconds` on a quiet machine."""
    return seconds * slowness()


def command_seconds(seconds: float) -> str:
    """Return for how long a command sleeps so that it is observed while it runs, as text for a shell."""
    return f"{min(scaled(seconds), _MAX_COMMAND_S):.0f}"


async def until(
    condition: Callable[[], object], what: str = "the condition", limit: float = _LIMIT_S
) -> None:
    """Wait until `condition()` is true.

    Args:
        condition: called every 20 ms.
        what: what it stands for, in the message of the error.
        limit: seconds on a quiet machine.

    Raises:
        TimeoutError: it is not true in time.
    """
    start = time.monotonic()
    while not condition():
        _check(start, limit, what)
        await asyncio.sleep(_POLL_INTERVAL_S)


def wait_until(condition: Callable[[], object], what: str = "the condition", limit: float = _LIMIT_S) -> None:
    """Like `until`, for tests without an event loop."""
    start = time.monotonic()
    while not condition():
        _check(start, limit, what)
        time.sleep(_POLL_INTERVAL_S)


def within(limit: float = _LIMIT_S) -> asyncio.Timeout:
    """Return a timeout context of `limit` seconds on a quiet machine."""
    return asyncio.timeout(scaled(limit))


def _check(start: float, limit: float, what: str) -> None:
    if time.monotonic() > start + scaled(limit):
        raise TimeoutError(
            f"waited too long for {what} (the machine is {slowness():.1f} times slower than usual)"
        )
