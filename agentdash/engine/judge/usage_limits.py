"""Workers that a usage limit has stopped: until when, and what is said of it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentdash.model.fact import Fact, FactKind
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.times import local_time
from agentdash.model.worker import Assessment

_LIMIT_ERRORS: Final = ("usage_limit_exceeded", "rate_limit")
"""Kinds of errors of Codex and of Claude Code that a used-up limit has."""


def limited_until(thread: Thread, assessment: Assessment) -> float | None:
    """Return when the usage limit is reset that a thread has stopped at (unix seconds); None where none has
    stopped it, or the time is not stated."""
    turn = thread.turn
    if assessment.state is not State.FAILED_PROVIDER or turn is None:
        return None
    if turn.error is not None and turn.error_kind not in _LIMIT_ERRORS:
        return None
    used_up = (each for each in thread.tokens.limits if each.used >= 100 and each.at >= turn.since)
    return max((each.resets_at for each in used_up if each.resets_at is not None), default=None)


def with_limit(assessment: Assessment, until: float, now: float) -> Assessment:
    """Return the assessment of a worker that a limit has stopped, with words that say when it is reset.

    Args:
        until: when the limit is reset, or was (unix seconds).
        now: unix seconds.
    """
    before = assessment.fact or Fact(FactKind.PROVIDER, "", assessment.why)
    clock = local_time(until, now)
    if now < until:
        fact = replace(before, what=f"limited until {clock}:")
        return replace(assessment, fact=fact, why=f"limited until {clock}: {before.object}")
    fact = replace(before, what=f"its limit was reset at {clock}, it still stands:")
    return replace(assessment, since=until, fact=fact, why=f"{fact.what} {before.object}")
