"""Parse token counts and rate limits in all formats since 0.20."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from agentdash.agents.codex.rollout.records import TokenCount, TokenUsageRecord, Usage
from agentdash.model.times import parse_iso, possible_time
from agentdash.model.tokens import ModelUsage, TokenUsage, merged_usage

_MAX_NUMBER: Final = 1e15
"""Larger ones are neither a percentage, nor a time, nor a number of tokens."""
_STANDARD_TIERS: Final = (None, "", "auto", "default", "standard")
"""Values of `service_tier` without prices of their own."""


class TokenTotals(NamedTuple):
    """The newest counts of a thread: the fields of `TokensCounted`."""

    total: int | None = None
    context: int | None = None
    window: int | None = None
    limit_used: float | None = None
    limit_resets_at: float | None = None
    by_model: tuple[ModelUsage, ...] = ()

    def updated(self, newer: TokenTotals) -> TokenTotals:
        """Return these counts with those that are known of newer ones."""
        return TokenTotals(
            self.total if newer.total is None else newer.total,
            self.context if newer.context is None else newer.context,
            self.window if newer.window is None else newer.window,
            self.limit_used if newer.limit_used is None else newer.limit_used,
            self.limit_resets_at if newer.limit_resets_at is None else newer.limit_resets_at,
            newer.by_model or self.by_model,
        )


class TokenCounter:
    """Counts the tokens that one thread used itself.

    A file has running totals, which are repeated without a request, and in a fork include those of its
    parent. The thread's own tokens are the differences of the totals.
    """

    def __init__(self) -> None:
        self.totals = TokenTotals()
        self._model: str | None = None
        """The model of the next request."""
        self._tier: str | None = None
        """Its service tier, where one with prices of its own is set."""
        self._by_model: tuple[ModelUsage, ...] = ()
        self._before: TokenUsage | None = None
        """The total of the newest count."""
        self._recorded: TokenUsage | None = None
        """The request of the newest record, until its `token_count` comes."""
        self._before_record: TokenUsage | None = None
        """The total of the newest record: where a process died between the two, those of later counts are
        smaller."""
        self._gap = False
        """Whether a part of the file was left out since then."""
        self._is_fork = False
        self._is_lost = False
        """Whether the totals do not show which tokens are the thread's own."""

    def set_model(self, model: str | None, tier: str | None) -> None:
        """Set model and service tier of the next requests (`turn_context`, `thread_settings_applied`)."""
        self._model = model or self._model
        self._tier = None if tier in _STANDARD_TIERS else tier

    def begin_fork(self) -> None:
        """Take the first totals as those of the parent, as far as they are not of the newest request."""
        self._is_fork = True

    def skip_lines(self) -> None:
        """Note that a part of the file was left out: its tokens are of models that are not known."""
        self._gap = True
        self._model = self._tier = None
        if self._recorded is not None and self._before is not None and self._before != self._before_record:
            self._before += self._recorded  # its `token_count` is among the lines left out
        self._recorded = None

    def inherit(self, count: TokenCount) -> None:
        """Take a copied `token_count`: its totals are the parent's."""
        if count.info is not None and (total := _usage(count.info.total_token_usage)) is not None:
            self._before = total

    def count(self, count: TokenCount, at: float) -> TokenTotals:
        """Return the totals after a `token_count`: `info` is null before the first response, `rate_limits`
        without any."""
        used, resets_at = _primary(count.rate_limits, at)
        newer = TokenTotals(limit_used=used, limit_resets_at=resets_at)
        if (info := count.info) is not None:
            total = _usage(info.total_token_usage)
            if self._recorded is not None and self._recorded == _usage(info.last_token_usage):
                self._before, self._recorded = total, None  # its record was counted
            if self._gap and total and self._before and self._before_record:
                self._before_record += total - self._before  # its record is among the lines left out
            newer = self._counted(total, info.last_token_usage, self._before)._replace(
                window=info.model_context_window, limit_used=used, limit_resets_at=resets_at
            )
            self._before = total or self._before
        self.totals = self.totals.updated(newer)
        return self.totals

    def count_record(self, record: TokenUsageRecord) -> TokenTotals:
        """Return the totals after a `token_usage_record`, which precedes a `token_count` with the same
        values."""
        total, before = _usage(record.thread_token_usage), self._before_record or self._before
        newer = self._counted(total, record.usage, before)
        self._before_record = total or before
        self._before = self._before or self._before_record
        self._recorded = _usage(record.usage)
        self.totals = self.totals.updated(newer)
        return self.totals

    def _counted(
        self, total: TokenUsage | None, last: Usage | None, before: TokenUsage | None
    ) -> TokenTotals:
        """Return the totals after a count with this total, of which `last` is the newest part, and the total
        before it."""
        if total is not None:
            self._add(total, _usage(last), before)
        by_model = () if self._is_lost else self._by_model
        return TokenTotals(
            total=sum(each.usage.total for each in by_model) if by_model else None,
            context=last.total_tokens if last else None,
            by_model=by_model,
        )

    def _add(self, total: TokenUsage, request: TokenUsage | None, before: TokenUsage | None) -> None:
        """Add what is new in a total since the one before it; `request` is its newest part."""
        gap = self._gap
        self._gap = False
        if before == total:
            return
        if before is None and self._is_fork:
            self._is_lost = gap or request is None
            before = total - request if request is not None else total  # the parent's
        new = total - (before or TokenUsage())
        if not new.is_possible:  # the totals began anew
            new = request or total
        unread = new - request if gap and request is not None else TokenUsage()
        if unread.total and unread.is_possible:
            self._add_request(ModelUsage(model=None, usage=unread))
            new = new - unread
        prompt = request.prompt if request is not None else new.prompt
        self._add_request(ModelUsage(model=self._model, usage=new, tier=self._tier, longest_prompt=prompt))

    def _add_request(self, usage: ModelUsage) -> None:
        if usage.usage.total:
            self._by_model = merged_usage((*self._by_model, usage))


def _usage(usage: Usage | None) -> TokenUsage | None:
    """Return counts in parts that do not overlap; Codex includes what came from the cache in the input, and
    the reasoning in the output. A count without parts is input as far as is known."""
    if usage is None:
        return None
    given, returned = _count(usage.input_tokens), _count(usage.output_tokens)
    if not given and not returned:
        given = _count(usage.total_tokens)
    cached = min(_count(usage.cached_input_tokens), given)
    written = min(_count(usage.cache_write_input_tokens), given - cached)
    return TokenUsage(
        input=given - cached - written,
        cached=cached,
        cache_writes=written,
        output=returned,
        reasoning=min(_count(usage.reasoning_output_tokens), returned),
    )


def _count(value: int | None) -> int:
    return value if value is not None and 0 <= value < _MAX_NUMBER else 0


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
    resets_at = parse_iso(resets) if isinstance(resets, str) else _number(resets)
    seconds_left = _number(primary.get("resets_in_seconds"))
    if resets_at is None and seconds_left is not None:
        resets_at = at + seconds_left
    return _number(primary.get("used_percent")), possible_time(resets_at)


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < _MAX_NUMBER else None
