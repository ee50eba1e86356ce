"""Parse token counts and rate limits in all formats since 0.20."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from agentdash.agents.codex.rollout.lineage import parse_time
from agentdash.agents.codex.rollout.records import TokenCount, TokenUsageRecord
from agentdash.model.times import possible_time


class TokenTotals(NamedTuple):
    """The newest counts of a thread: the fields of `TokensCounted`."""

    total: int | None = None
    context: int | None = None
    window: int | None = None
    limit_used: float | None = None
    limit_resets_at: float | None = None

    def with_count(self, count: TokenCount, at: float) -> TokenTotals:
        """Return the totals after a `token_count`: `info` is null before the first response, `rate_limits`
        without any."""
        used, resets_at = _primary(count.rate_limits, at)
        if (info := count.info) is None:
            return self._merged(TokenTotals(limit_used=used, limit_resets_at=resets_at))
        total = info.total_token_usage.total_tokens if info.total_token_usage else None
        context = info.last_token_usage.total_tokens if info.last_token_usage else None
        return self._merged(TokenTotals(total, context, info.model_context_window, used, resets_at))

    def with_record(self, record: TokenUsageRecord) -> TokenTotals:
        """Return the totals after a `token_usage_record`, which precedes a `token_count` with the same
        values."""
        total = record.thread_token_usage.total_tokens if record.thread_token_usage else None
        return self._merged(TokenTotals(total, record.usage.total_tokens if record.usage else None))

    def _merged(self, newer: TokenTotals) -> TokenTotals:
        return TokenTotals(
            self.total if newer.total is None else newer.total,
            self.context if newer.context is None else newer.context,
            self.window if newer.window is None else newer.window,
            self.limit_used if newer.limit_used is None else newer.limit_used,
            self.limit_resets_at if newer.limit_resets_at is None else newer.limit_resets_at,
        )


_MAX_NUMBER: Final = 1e15
"""Larger ones are neither a percentage nor a time."""


def _primary(limits: Mapping[str, Any] | None, at: float) -> tuple[float | None, float | None]:
    """Return the used percentage of the primary limit, and when it resets (unix seconds).

    Flat `primary_used_percent` (0.3x); `primary: {used_percent, resets_in_seconds}` (autumn 2025); since then
    `resets_at`, in unix seconds or as text.
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
    seconds_left = _number(primary.get("resets_in_seconds"))
    if resets_at is None and seconds_left is not None:
        resets_at = at + seconds_left
    return _number(primary.get("used_percent")), possible_time(resets_at)


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < _MAX_NUMBER else None
