"""Parse a time typed by the user."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from agentdash.model.times import possible_time

_TIME_OF_DAY: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_DAY_S: Final = 86_400.0


def parse_time(text: str, begin: float, end: float) -> float | None:
    """Return the unix seconds of a time of day or of a date and time; None if it is neither.

    A time of day (`20:14`, `20:14:07`) is local, on the first day on which it lies between `begin` and
    `end`, or else on the day of `begin`. A date and time is in ISO format (`2026-03-11 20:14`), local
    unless it has an offset.

    Args:
        begin: earliest meant time (unix seconds).
        end: latest meant time (unix seconds).
    """
    try:
        if clock := _TIME_OF_DAY.fullmatch(text.strip()):
            hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
            day = (
                datetime.fromtimestamp(begin)
                .astimezone()
                .replace(hour=hour, minute=minute, second=second, microsecond=0)
            )
            while day.timestamp() < begin and day.timestamp() + _DAY_S <= end:
                day = (day.replace(tzinfo=None) + timedelta(days=1)).astimezone()
            return day.timestamp()
        return possible_time(datetime.fromisoformat(text.strip()).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
