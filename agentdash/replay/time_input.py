"""A time as a person types it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

_OF_DAY: Final = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_DAY: Final = 86_400.0


def moment(text: str, begin: float, end: float) -> float | None:
    """Unix seconds of `20:14`, `20:14:07` (local, of the first day on which it lies within these bounds, or else of the first one), or
    of an ISO date and time (`2026-03-11 20:14`, local unless it names its zone); None where it is neither.

    Args:
        begin: the earliest time meant (unix seconds).
        end: the latest one.
    """
    try:
        if clock := _OF_DAY.fullmatch(text.strip()):
            hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
            day = (
                datetime.fromtimestamp(begin)
                .astimezone()
                .replace(hour=hour, minute=minute, second=second, microsecond=0)
            )
            while day.timestamp() < begin and day.timestamp() + _DAY <= end:
                day = (day.replace(tzinfo=None) + timedelta(days=1)).astimezone()
            return day.timestamp()
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
