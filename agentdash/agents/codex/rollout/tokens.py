"""Tokens and rate limits, in all the shapes that they were written in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from agentdash.agents.codex.rollout.lineage import parse_time
from agentdash.agents.codex.rollout.records import TokenCount, TokenUsageRecord


class Tally(NamedTuple):
    """What is known of a thread's tokens so far: the fields of `TokensCounted`."""

    total: int | None = None
    context: int | None = None
    window: int | None = None
    limit_used: float | None = None
    limit_resets_at: float | None = None

    def counted(self, count: TokenCount, at: float) -> Tally:
        """With a `token_count`. Its `info` is null before the first answer, its `rate_limits` where the provider tells none."""
        used, resets_at = _primary(count.rate_limits, at)
        if (info := count.info) is None:
            return self._with(Tally(limit_used=used, limit_resets_at=resets_at))
        total = info.total_token_usage.total_tokens if info.total_token_usage else None
        context = info.last_token_usage.total_tokens if info.last_token_usage else None
        return self._with(Tally(total, context, info.model_context_window, used, resets_at))

    def recorded(self, record: TokenUsageRecord) -> Tally:
        """With a `token_usage_record`, which tells the same as the `token_count` behind it."""
        total = record.thread_token_usage.total_tokens if record.thread_token_usage else None
        return self._with(Tally(total, record.usage.total_tokens if record.usage else None))

    def _with(self, news: Tally) -> Tally:
        return Tally(
            self.total if news.total is None else news.total,
            self.context if news.context is None else news.context,
            self.window if news.window is None else news.window,
            self.limit_used if news.limit_used is None else news.limit_used,
            self.limit_resets_at if news.limit_resets_at is None else news.limit_resets_at,
        )


_ABSURD: Final = 1e15
"""No percentage, and no time, is that large."""


def _primary(limits: Mapping[str, Any] | None, at: float) -> tuple[float | None, float | None]:
    """Percent used of the primary limit, and when it starts anew (unix seconds).

    Flat `primary_used_percent` (0.3x); `primary: {used_percent, resets_in_seconds}` (autumn 2025); since then `resets_at`, in unix seconds
    or as text.
    """
    if not limits:
        return None, None
    primary = limits.get("primary")
    if primary is None and "primary_used_percent" not in limits:
        return None, None
    if not isinstance(primary, dict):
        primary = {
            "used_percent": limits.get("primary_used_percent"),
            "resets_in_seconds": limits.get("primary_resets_in_seconds"),
        }
    resets = primary.get("resets_at")
    resets_at = parse_time(resets) if isinstance(resets, str) else _number(resets)
    left = _number(primary.get("resets_in_seconds"))
    return _number(
        primary.get("used_percent")
    ), resets_at if resets_at is not None else at + left if left is not None else None


def _number(value: Any) -> float | None:
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _ABSURD
        else None
    )
