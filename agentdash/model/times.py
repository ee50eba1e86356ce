"""Times: which ones are possible, how other programs write them, and how the reports do."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

MAX_TIME: Final = 4_102_444_800.0
"""2100-01-01 UTC in unix seconds: a later time in a file is damage, and calendars end at the year 9999."""


DAY_S: Final = 86_400.0


def possible_time(at: float | None) -> float | None:
    """Return a time that another program wrote (unix seconds) if it is after 1970 and before 2100, else
    None."""
    return at if at is not None and 0.0 < at < MAX_TIME else None


def iso(at: float | None) -> str | None:
    """Return a time in ISO 8601 with milliseconds, UTC, `2026-11-20T20:12:55.000Z`; None for no time, and for
    an impossible one."""
    if (at := possible_time(at)) is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_iso(text: str | None) -> float | None:
    """Parse an ISO timestamp into unix seconds, UTC without a zone; None if it is malformed or impossible."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return possible_time((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


_SPAN: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|m|min|h|d|w)?", re.IGNORECASE | re.ASCII)
_UNITS_S: Final = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}


def parse_span(text: str) -> float | None:
    """Parse a span of time as users type it, `90`, `5m`, `1.5h`, `2d` or `1w`, into seconds, or None."""
    if (found := _SPAN.fullmatch(text.strip())) is None:
        return None
    return float(found[1]) * _UNITS_S[(found[2] or "s").lower()]


def ago(now: float, at: float | None) -> str:
    """Return the time since `at` in its largest unit: `3m`."""
    if at is None:
        return "-"
    seconds = max(0, int(now - at))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def moment(at: float) -> str:
    """Return date and time of day, UTC: `2026-11-20 20:12:55`; 1970 for an impossible time."""
    return datetime.fromtimestamp(possible_time(at) or 0.0, UTC).strftime("%Y-%m-%d %H:%M:%S")


def time_of_day(at: float) -> str:
    """Return the time of day, UTC: `20:12:55`; midnight for an impossible time."""
    return datetime.fromtimestamp(possible_time(at) or 0.0, UTC).strftime("%H:%M:%S")


def local_time(at: float, now: float) -> str:
    """Return a time by the local clock: `14:20`; of another day `Nov 28 14:20`."""
    moment, today = datetime.fromtimestamp(at), datetime.fromtimestamp(now)  # noqa: DTZ006 - local, for people
    return moment.strftime("%H:%M" if moment.date() == today.date() else "%b %d %H:%M")


def took(seconds: float) -> str:
    """Return how long a call took: `0.03 s`, `2.1 s`, then as `lasted`."""
    if seconds < 1:
        return f"{max(0.0, seconds):.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else lasted(seconds)


def precise_time_of_day(at: float) -> str:
    """Return the time of day with milliseconds, UTC: `20:12:55.072`."""
    return datetime.fromtimestamp(possible_time(at) or 0.0, UTC).strftime("%H:%M:%S.%f")[:-3]


def lasted(seconds: float) -> str:
    """Return a duration: `1 h 02 min`, `4 min 12 s`, `3 s`."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
