"""Token counts by model, in the parts that providers price differently."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class TokenUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one or more requests. The parts do not overlap; their sum is the total."""

    input: int = 0
    """Given to the model, and not from its cache."""
    cached: int = 0
    """Given to the model from its cache."""
    cache_writes: int = 0
    """Given to the model and written to its cache, for five minutes where the provider has several times."""
    cache_writes_1h: int = 0
    """The same, for an hour."""
    output: int = 0
    """Returned by the model, reasoning included."""
    reasoning: int = 0
    """The part of `output` that is reasoning, where that is stated."""

    @property
    def total(self) -> int:
        """Return the sum of all parts."""
        return self.input + self.cached + self.cache_writes + self.cache_writes_1h + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            cache_writes=self.cache_writes + other.cache_writes,
            cache_writes_1h=self.cache_writes_1h + other.cache_writes_1h,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )

    def __sub__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            input=self.input - other.input,
            cached=self.cached - other.cached,
            cache_writes=self.cache_writes - other.cache_writes,
            cache_writes_1h=self.cache_writes_1h - other.cache_writes_1h,
            output=self.output - other.output,
            reasoning=self.reasoning - other.reasoning,
        )

    @property
    def prompt(self) -> int:
        """Return the tokens given to the model."""
        return self.total - self.output

    @property
    def is_possible(self) -> bool:
        """Return whether no part is negative."""
        parts = (self.input, self.cached, self.cache_writes, self.cache_writes_1h, self.output)
        return min(*parts, self.reasoning) >= 0


class ModelUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tokens of one model."""

    model: str | None
    """As the CLI names it, or None if the file does not state it, or that part was not read."""
    usage: TokenUsage
    tier: str | None = None
    """A service tier with prices of its own, where the CLI states one (`fast`, `priority`, `flex`)."""
    longest_prompt: int = 0
    """Input tokens of the longest request, those from the cache included."""


def merged_usage(usages: Iterable[ModelUsage]) -> tuple[ModelUsage, ...]:
    """Return the sums by model and tier: of several requests, or of several threads."""
    found: dict[tuple[str | None, str | None], ModelUsage] = {}
    for each in usages:
        key = each.model, each.tier
        before = found.get(key)
        if before is not None:
            each = ModelUsage(  # noqa: PLW2901 - the sum takes its place
                model=each.model,
                usage=before.usage + each.usage,
                tier=each.tier,
                longest_prompt=max(before.longest_prompt, each.longest_prompt),
            )
        found[key] = each
    return tuple(found.values())
