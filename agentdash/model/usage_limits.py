"""The usage limits of all accounts, from what their sessions have stated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from agentdash.model.tokens import UsageWindow
from agentdash.model.worker import Worker

_SAME_RESET_S: Final = 600.0
"""Between two statements of one reset: Codex counts it from the answer that states it."""
_IN_HOME: Final = re.compile(r"/(?:sessions|archived_sessions|projects)/")
"""The directory of session files in a home of Codex or Claude Code."""


class UsageLimit(msgspec.Struct, frozen=True):
    """A usage limit that has not been reset yet, as stated last."""

    agent: str
    home: str
    """The directory of the CLI that has the account."""
    window: UsageWindow

    @property
    def span(self) -> str:
        """Return its length in short: `5h`, `7d`; `limit` where it is not stated."""
        minutes = self.window.minutes
        if not minutes:
            return "limit"
        return f"{minutes // 1440}d" if minutes >= 2880 else f"{round(minutes / 60)}h"


def usage_limits(workers: Iterable[Worker], now: float) -> list[UsageLimit]:
    """Return the limits of all homes, the most used first.

    Of one limit the newest statement counts. Two that are reset at different times are those of two accounts:
    a home may have been logged in with another one meanwhile.

    Args:
        now: unix seconds.
    """
    stated = [
        UsageLimit(worker.agent.name, _IN_HOME.split(worker.file, maxsplit=1)[0], window)
        for worker in workers
        if worker.file and worker.host is None
        for window in worker.tokens.limits
        if window.resets_at is not None and window.resets_at > now
    ]
    stated.sort(key=lambda each: -each.window.at)
    found: list[UsageLimit] = []
    for each in stated:
        if not any(_is_same(each, newer) for newer in found):
            found.append(each)
    return sorted(found, key=lambda each: -each.window.used)


def _is_same(one: UsageLimit, other: UsageLimit) -> bool:
    ours, theirs = one.window, other.window
    apart_s = abs((ours.resets_at or 0.0) - (theirs.resets_at or 0.0))
    is_of_one_plan = (ours.minutes, ours.plan) == (theirs.minutes, theirs.plan)
    return (one.agent, one.home) == (other.agent, other.home) and is_of_one_plan and apart_s < _SAME_RESET_S
