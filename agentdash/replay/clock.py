"""A virtual clock that can run at any speed, be paused, and be set."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import date, datetime, timedelta
from typing import Final

from agentdash.model.times import parse_span, possible_time


class VirtualClock:
    """A clock whose time can be scaled, paused and set.

    Args:
        start: the initial value of `now()` (unix seconds).
        speed: virtual seconds per real second.
    """

    def __init__(self, start: float, speed: float = 1.0) -> None:
        self._base = start
        self._base_monotonic = time.monotonic()
        self.speed = speed
        """Virtual seconds per real second."""
        self.paused = False
        """Whether the clock is stopped."""
        self._changed = asyncio.Event()

    def now(self) -> float:
        """Return the virtual time (unix seconds)."""
        if self.paused:
            return self._base
        return self._base + (time.monotonic() - self._base_monotonic) * self.speed

    def set(
        self, *, now: float | None = None, speed: float | None = None, paused: bool | None = None
    ) -> None:
        """Change the given properties and wake all sleepers, so that they recompute their deadline."""
        self._base = self.now() if now is None else now
        self._base_monotonic = time.monotonic()
        self.speed = self.speed if speed is None else speed
        self.paused = self.paused if paused is None else paused
        self._changed.set()
        self._changed = asyncio.Event()

    async def sleep_until(self, at: float) -> None:
        """Sleep until `now()` reaches `at`, however often the clock is changed meanwhile."""
        while (left := at - self.now()) > 0:
            changed = self._changed
            try:
                async with asyncio.timeout(None if self.paused else left / self.speed):
                    await changed.wait()
            except TimeoutError:
                continue


# ------------------------------------------------------------ parse times typed by the user


_DAY_S: Final = 86_400.0
_MINUTE_S: Final = 60.0
_TIME_OF_DAY: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")


def parse_time(text: str, begin: float, end: float) -> float | None:
    """Return the unix seconds of a time of day or of a date and time; None if it is neither.

    A time of day (`20:14`, `20:14:07`) is local, and on the day of `begin`, or on the next one if it is
    between `begin` and `end` only there. A date and time is in ISO format (`2026-03-11 20:14`), local unless
    it has an offset.

    Args:
        begin: earliest meant time (unix seconds).
        end: latest meant time (unix seconds).
    """
    try:
        if (clock := _TIME_OF_DAY.fullmatch(text.strip())) is None:
            return possible_time(datetime.fromisoformat(text.strip()).timestamp())
        time_of_day = datetime.strptime(f"{clock[1]}:{clock[2]}:{clock[3] or 0}", "%H:%M:%S").time()  # noqa: DTZ007
        first = datetime.combine(datetime.fromtimestamp(begin), time_of_day)  # noqa: DTZ006
        following = (first + timedelta(days=1)).timestamp()
        return following if first.timestamp() < begin and following <= end else first.timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def parse_period(text: str, now: float) -> tuple[float, float] | None:
    """Return begin and end (unix seconds) of a period as users type it, or None.

    It is a span (`8h`: that moment ago), `today`, `yesterday`, a day (`2026-11-01`), or a time of the last
    24 hours as `parse_time` reads it. Days end where the next one begins: one on which the clock is changed
    has 23 or 25 hours.
    """
    if not text.strip().isdecimal() and (span := parse_span(text)) is not None:
        ago = max(0.0, now - span)
        return ago, ago
    # dates are naive on purpose: Python then takes the rules of the local time zone for each of them
    try:
        if text in ("today", "yesterday"):
            day = datetime.fromtimestamp(now).date() - timedelta(days=text == "yesterday")  # noqa: DTZ006
        else:
            day = date.fromisoformat(text.strip())
        begin, end = (datetime.combine(day + timedelta(days), datetime.min.time()) for days in (0, 1))
        return begin.timestamp(), end.timestamp()
    except (ValueError, OverflowError):
        at = parse_time(text, now - _DAY_S, now)
        return None if at is None else (at, at + _MINUTE_S)
