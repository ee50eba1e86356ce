"""Tokens and their cost at list prices, as documents show them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agentdash.model.tokens import ModelUsage, merged_usage
from agentdash.prices import cost, price_list


class ModelTokensReport(msgspec.Struct):
    """The tokens of one model. The parts do not overlap."""

    model: str | None
    """Null: not stated, or in a part of the file that was not read."""
    tier: str | None
    """A service tier with prices of its own; null: the standard one."""
    input: int
    """Without those of the cache."""
    cached: int
    """Read from the cache."""
    cache_writes: int
    """Written to the cache."""
    output: int
    """With those of the reasoning."""
    reasoning: int
    """Those of the reasoning, which `output` counts too."""
    total: int
    """All of them."""
    cost_usd: float | None
    """Null: no price is known."""


class TokensReport(msgspec.Struct):
    """Tokens and their cost at list prices."""

    total: int
    """All of them."""
    cost_usd: float | None
    """Null where a part of the tokens has no price."""
    priced_usd: float
    """The cost of those that have a price."""
    unpriced: list[str]
    """Why the others have none."""
    prices_of: str
    """The day of the price list, ISO."""
    models: list[ModelTokensReport]
    """By model and service tier."""


def tokens_report(usages: Sequence[ModelUsage]) -> TokensReport | None:
    """Return the document of some tokens; None where there are none."""
    merged = merged_usage(usages)
    total = cost(merged)
    if total is None:
        return None
    return TokensReport(
        total=sum(each.usage.total for each in merged),
        cost_usd=_rounded(total.usd),
        priced_usd=round(total.priced_usd, 6),
        unpriced=list(total.unpriced),
        prices_of=price_list().read.isoformat(),
        models=[_model_report(each) for each in merged],
    )


def _model_report(usage: ModelUsage) -> ModelTokensReport:
    parts, found = usage.usage, cost((usage,))
    return ModelTokensReport(
        model=usage.model,
        tier=usage.tier,
        input=parts.input,
        cached=parts.cached,
        cache_writes=parts.cache_writes + parts.cache_writes_1h,
        output=parts.output,
        reasoning=parts.reasoning,
        total=parts.total,
        cost_usd=_rounded(found.usd) if found else None,
    )


def _rounded(usd: float | None) -> float | None:
    """Return an amount without the digits that only the addition of fractions has."""
    return None if usd is None else round(usd, 6)
