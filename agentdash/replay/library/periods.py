"""Dates and times in a filter: `today`, `monday`, `7d`, `2026-11`, as periods of local time. Pure.

Dates are naive on purpose: Python then takes the rules of the local time zone for each of them.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

_AGO: Final = re.compile(r"(\d{1,6})([mhdw])")
_UNITS_S: Final = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT_WEEKDAY_CHARS: Final = 3
_DATE_FORMATS: Final = ("%Y-%m-%d", "%Y-%m", "%Y", "%Y-%m-%dT%H:%M")
NAMED_PERIODS: Final = ("today", "yesterday", "now", *_WEEKDAYS)
"""Periods that have a name, for completion."""


def parse_period(text: str, now: float) -> tuple[float, float]:
    """Return start and end (unix seconds) of a period of local time.

    It is `now`, `7d` (ago), `today`, `yesterday`, a weekday (the latest one, today included), `20:15`
    (today), `2026-11-01`, `2026-11`, `2026` or `2026-11-01T20:15`. Days end where the next one begins: one
    on which the clock is changed has 23 or 25 hours.

    Raises:
        ValueError: the date is invalid; the message has the accepted formats.
    """
    if text == "now":
        return now, now
    if ago := _AGO.fullmatch(text):
        at = now - int(ago[1]) * _UNITS_S[ago[2]]
        return at, at
    today = datetime.fromtimestamp(now)  # noqa: DTZ006
    today = today.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    try:
        if (days := _days_ago(text, today)) is not None:
            start = today - timedelta(days=days)
            return start.timestamp(), (start + timedelta(days=1)).timestamp()
        start, end = _dated(text, today)
        return start.timestamp(), end.timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"invalid date {text!r}: use 2026-11-01, 2026-11, 20:15, today, yesterday, monday, 7d or now"
        ) from error


def _days_ago(text: str, today: datetime) -> int | None:
    """Return how many days ago a named day was; None if the text is no name of a day."""
    if text in ("today", "yesterday"):
        return int(text == "yesterday")
    for number, name in enumerate(_WEEKDAYS):
        if text in (name, name[:_SHORT_WEEKDAY_CHARS]):
            return (today.weekday() - number) % len(_WEEKDAYS)
    return None


def _dated(text: str, today: datetime) -> tuple[datetime, datetime]:
    if re.fullmatch(r"\d{1,2}:\d\d", text):
        clock = datetime.strptime(text, "%H:%M")  # noqa: DTZ007
        start = today.replace(hour=clock.hour, minute=clock.minute)
        return start, start + timedelta(minutes=1)
    for form in _DATE_FORMATS:
        try:
            start = datetime.strptime(text.upper(), form)  # noqa: DTZ007
        except ValueError:
            continue
        return start, _end(start, form)
    raise ValueError(text)


def _end(start: datetime, form: str) -> datetime:
    """Return the end of the period that a date of this format denotes."""
    if form == "%Y":
        return start.replace(year=start.year + 1)
    if form == "%Y-%m":
        return (start + timedelta(days=31)).replace(day=1)
    return start + (timedelta(days=1) if form == "%Y-%m-%d" else timedelta(minutes=1))
