"""The usage limit that a record of a refused request states."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from agentdash.model.sanitize import clean_line
from agentdash.model.times import possible_time
from agentdash.model.tokens import UsageWindow

_RESETS: Final = re.compile(
    r"limit\b.{0,40}\bresets (?:(?P<day>[A-Z][a-z]{2} \d{1,2}),? (?:at )?)?"
    r"(?P<hour>1[0-2]|[1-9])(?::(?P<minute>\d\d))?(?P<half>[ap]m) \((?P<zone>[\w+/-]{1,40})\)"
)
"""`You've hit your weekly limit · resets Apr 17, 7pm (Asia/Riyadh)` (2.1.69 to 2.1.332)."""
_EPOCH: Final = re.compile(r"usage limit reached\|(\d{10})\b")
"""`Claude AI usage limit reached|1751234567` (1.0)."""
_MINUTES: Final = {"five_hour": 300, "seven_day": 10_080, "5-hour": 300, "session": 300, "weekly": 10_080}
"""Length of a limit, by how its `rateLimitType` begins, or by a word of the message."""


def usage_limit(quota: Any, text: str, at: float) -> UsageWindow | None:
    """Return the usage limit that stopped a request, or None.

    Args:
        quota: `quotaLimits` of the record (2.1.332); None: an earlier version.
        text: its message.
        at: when it was written (unix seconds).
    """
    stated = quota if isinstance(quota, dict) else {}
    kind, resets_at = clean_line(str(stated.get("rateLimitType") or ""), 40), stated.get("resetsAt")
    if not isinstance(resets_at, int | float):
        resets_at = _in_words(text, at)
    if (resets_at := possible_time(resets_at)) is None:
        return None
    words = kind or text
    minutes = next((length for word, length in _MINUTES.items() if word in words), None)
    return UsageWindow(used=100.0, resets_at=resets_at, minutes=minutes, at=at, plan=kind)


def _in_words(text: str, at: float) -> float | None:
    """Return the time of a message; without a day, the next one after `at`."""
    if (epoch := _EPOCH.search(text)) is not None:
        return float(epoch[1])
    if (found := _RESETS.search(text)) is None:
        return None
    try:
        written = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(found["zone"]))
        hour = int(found["hour"]) % 12 + 12 * (found["half"] == "pm")
        resets = written.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["day"]:
            day = datetime.strptime(f"{found['day']} {written.year}", "%b %d %Y")  # noqa: DTZ007 - only the day
            resets = resets.replace(month=day.month, day=day.day)
            if resets < written - timedelta(days=1):
                resets = resets.replace(year=written.year + 1)
        elif resets <= written:
            resets += timedelta(days=1)
    except (ValueError, KeyError, OSError):  # an unknown zone is a KeyError
        return None
    return resets.timestamp()
