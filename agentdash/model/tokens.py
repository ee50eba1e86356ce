"""Token counts by model, in the parts that providers price differently."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import msgspec
from msgspec.structs import astuple, replace


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

    @classmethod
    def within(
        cls, prompt: int, output: int, *, cached: int = 0, written: int = 0, reasoning: int = 0
    ) -> TokenUsage:
        """Return counts in parts, of a prompt that includes what came from the cache and what was written to
        it, and an output that includes the reasoning."""
        cached = min(cached, prompt)
        written = min(written, prompt - cached)
        return cls(
            input=prompt - cached - written,
            cached=cached,
            cache_writes=written,
            output=output,
            reasoning=min(reasoning, output),
        )

    @property
    def total(self) -> int:
        """Return the sum of all parts."""
        return self.input + self.cached + self.cache_writes + self.cache_writes_1h + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*map(operator.sub, astuple(self), astuple(other)))

    @property
    def prompt(self) -> int:
        """Return the tokens given to the model."""
        return self.total - self.output

    @property
    def is_possible(self) -> bool:
        """Return whether no part is negative."""
        return all(part >= 0 for part in astuple(self))


class UsageWindow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A usage limit of an account, as a session states it: what may be used within some time."""

    used: float
    """Percent; more than 100 where credits are used beyond it."""
    resets_at: float | None
    """When all of it can be used again (unix seconds); None: not stated."""
    minutes: int | None
    """Length: 300 for five hours, 10080 for a week; None: not stated."""
    at: float
    """When it was stated (unix seconds)."""
    plan: str = ""
    """Which limit, and of which plan: `codex plus`; empty where that is not stated."""


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
        before = found.get((each.model, each.tier), ModelUsage(each.model, TokenUsage()))
        found[each.model, each.tier] = replace(
            each,
            usage=before.usage + each.usage,
            longest_prompt=max(before.longest_prompt, each.longest_prompt),
        )
    return tuple(found.values())
