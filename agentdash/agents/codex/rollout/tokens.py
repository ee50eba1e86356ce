"""Parse token counts and rate limits in all formats since 0.20."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentdash.agents.codex.rollout.records import TokenCount, Usage
from agentdash.model.sanitize import clean_line
from agentdash.model.times import parse_iso, possible_time
from agentdash.model.tokens import ModelUsage, TokenUsage, UsageWindow, merged_usage

_MAX_NUMBER: Final = 1e15
"""Larger ones are neither a percentage, nor a time, nor a number of tokens."""
_MAX_PLAN_CHARS: Final = 40
_STANDARD_TIERS: Final = (None, "", "auto", "default", "standard")
"""Values of `service_tier` without prices of their own."""


class TokenCounter:
    """Counts the tokens that one thread used itself.

    A file has running totals, which are repeated without a request, and in a fork include those of its
    parent. The thread's own tokens are the differences of the totals.
    """

    def __init__(self) -> None:
        self.totals: dict[str, Any] = {}
        """The newest counts of the thread: the fields of `TokensCounted`."""
        self._model: str | None = None
        """The model of the next request."""
        self._tier: str | None = None
        """Its service tier, where one with prices of its own is set."""
        self._by_model: tuple[ModelUsage, ...] = ()
        self._before: TokenUsage | None = None
        """The total of the newest count."""
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
        """Note that a part of the file was left out: the models of its tokens are not known."""
        self._gap = True
        self._model = self._tier = None

    def inherit(self, count: TokenCount) -> None:
        """Take a copied `token_count`: its totals are the parent's."""
        if count.info is not None and (total := _usage(count.info.total_token_usage)) is not None:
            self._before = total

    def count(self, count: TokenCount, at: float) -> None:
        """Take a `token_count`: `info` is null before the first response, `rate_limits` without any."""
        newer: dict[str, Any] = {"limits": tuple(_limits(count.rate_limits or {}, at))}
        if (info := count.info) is not None:
            last = info.last_token_usage
            if (total := _usage(info.total_token_usage)) is not None:
                self._add(total, _usage(last))
                self._before = total
            by_model = () if self._is_lost else self._by_model
            newer |= {
                "total": sum(each.usage.total for each in by_model) if by_model else None,
                "context": last.total_tokens if last else None,
                "window": info.model_context_window,
                "by_model": by_model,
            }
        self.totals = self.totals | {name: value for name, value in newer.items() if value not in (None, ())}

    def _add(self, total: TokenUsage, request: TokenUsage | None) -> None:
        """Add what is new in a total since the one before it; `request` is its newest part."""
        gap, before = self._gap, self._before
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
    return TokenUsage.within(
        given,
        returned,
        cached=_count(usage.cached_input_tokens),
        written=_count(usage.cache_write_input_tokens),
        reasoning=_count(usage.reasoning_output_tokens),
    )


def _count(value: int | None) -> int:
    return value if value is not None and 0 <= value < _MAX_NUMBER else 0


def _limits(limits: Mapping[str, Any], at: float) -> Iterator[UsageWindow]:
    """Yield the limits of an account.

    Flat `primary_used_percent` (0.3x); `primary: {used_percent, resets_in_seconds}` (autumn 2025); since then
    `resets_at`, in unix seconds or as text.
    """
    plan = " ".join(str(each) for each in (limits.get("limit_id"), limits.get("plan_type")) if each)
    for name in ("primary", "secondary"):
        window = limits.get(name)
        if not isinstance(window, dict):
            names = ("used_percent", "resets_in_seconds", "window_minutes")
            window = {each: limits.get(f"{name}_{each}") for each in names}
        if (used := _number(window.get("used_percent"))) is None:
            continue
        resets = window.get("resets_at")
        resets_at = parse_iso(resets) if isinstance(resets, str) else _number(resets)
        seconds_left = _number(window.get("resets_in_seconds"))
        if resets_at is None and seconds_left is not None:
            resets_at = at + seconds_left
        minutes = _number(window.get("window_minutes"))
        yield UsageWindow(
            used=used,
            resets_at=possible_time(resets_at),
            minutes=int(minutes) if minutes else None,
            at=at,
            plan=clean_line(plan, _MAX_PLAN_CHARS),
        )


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < _MAX_NUMBER else None
