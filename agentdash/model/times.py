"""Times as the reports write them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at: float | None) -> str | None:
    """Return a time in ISO 8601 with milliseconds, UTC, `2026-11-20T20:12:55.000Z`; None for no time."""
    if not at:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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
    """Return date and time of day, UTC: `2026-11-20 20:12:55`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def time_of_day(at: float) -> str:
    """Return the time of day, UTC: `20:12:55`."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def lasted(seconds: float) -> str:
    """Return a duration: `1 h 02 min`, `4 min 12 s`, `3 s`."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
