"""What tokens cost at the list prices of `prices.toml`. Offline: nothing is fetched.

Models without a price, service tiers of their own, parts without a price, and prompts beyond the length up to
which the prices hold have no cost: it is never taken as 0, and never estimated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from agentdash.model.tokens import ModelUsage, TokenUsage

_FILE: Final = Path(__file__).with_name("prices.toml")
_VERSION_SUFFIX: Final = re.compile(r"(?:-\d{8}|-\d{4}-\d{2}-\d{2})?(?:\[1m\])?\Z")
"""The date of a snapshot, and Claude Code's mark of a long context window: the same prices."""
_PER: Final = 1_000_000
"""Tokens that a price is for."""

_LEAST_SHOWN_USD: Final = 0.01
_ROUNDED_FROM_USD: Final = 10_000.0
"""From here on cents are left out."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where prices were read."""

    url: str
    read: date


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prices of one model, in US dollars per million tokens."""

    input: float
    cached: float
    output: float
    source: str
    """A key of `sources`."""
    cache_write: float | None = None
    """For five minutes, where the provider has several times."""
    cache_write_1h: float | None = None
    long_prompt: int | None = None
    """Input tokens of a request beyond which other prices hold."""


class PriceList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `prices.toml`."""

    sources: dict[str, Source]
    models: dict[str, Price]

    @property
    def read(self) -> date:
        """Return when the oldest of the sources was read."""
        return min(source.read for source in self.sources.values())

    def find(self, model: str) -> Price | None:
        """Return the price of a model, or None."""
        return self.models.get(model) or self.models.get(_VERSION_SUFFIX.sub("", model, count=1))


class Cost(msgspec.Struct, frozen=True):
    """What tokens cost at list prices."""

    usd: float | None
    """US dollars, or None if a part of the tokens has no price."""
    priced_usd: float
    """The same of those tokens that have a price."""
    unpriced: tuple[str, ...] = ()
    """Why the others have none, each once: `mock-model: no price is known`."""


@cache
def price_list() -> PriceList:
    """Return the prices that come with agentdash."""
    return msgspec.toml.decode(_FILE.read_bytes(), type=PriceList)


def cost(usages: Iterable[ModelUsage], prices: PriceList | None = None) -> Cost | None:
    """Return what tokens cost, or None without any.

    Args:
        prices: the prices; None: those that come with agentdash.
    """
    prices = prices or price_list()
    total = 0.0
    unpriced: dict[str, None] = {}
    empty = True
    for each in usages:
        empty = False
        found = _price_of(each, prices)
        if isinstance(found, str):
            unpriced[found] = None
        else:
            total += _dollars(each.usage, found)
    if empty:
        return None
    total = round(total, 6)  # without the digits that only the addition of fractions has
    return Cost(usd=None if unpriced else total, priced_usd=total, unpriced=tuple(unpriced))


def priced_usd(usages: Iterable[ModelUsage]) -> float | None:
    """Return the cost of those tokens that have a price, in US dollars, or None."""
    found = cost(usages)
    return found.priced_usd if found and (found.usd is not None or found.priced_usd) else None


def cost_text(cost: Cost | None) -> str:
    """Return a cost in at most eight cells: `$0.12`, `$12.3k`; `$0.12+` where a part has no price; empty
    where all have none."""
    if cost is None or (cost.usd is None and not cost.priced_usd):
        return ""
    usd = cost.priced_usd
    if 0 < usd < _LEAST_SHOWN_USD:
        text = "<$0.01"
    elif usd < _ROUNDED_FROM_USD:
        text = f"${usd:.2f}"
    else:
        text = f"${usd / 1000:.1f}k"
    return text if cost.usd is not None else f"{text}+"


def tokens_and_cost(usage: Sequence[ModelUsage]) -> str:
    """Return tokens and their cost in words, or an empty text."""
    total = sum(each.usage.total for each in usage)
    words = (f"{total:,} tokens", cost_text(cost(usage)))
    return ", ".join(filter(None, words)) if total else ""


def _price_of(usage: ModelUsage, prices: PriceList) -> Price | str:
    """Return the price that holds for tokens, or why none does."""
    if usage.model is None:
        return "a model that is not known"
    price = prices.find(usage.model)
    if price is None:
        return f"{usage.model}: no price is known"
    if usage.tier is not None:
        return f"{usage.model}: no price of the tier {usage.tier} is known"
    if price.long_prompt is not None and usage.longest_prompt > price.long_prompt:
        return f"{usage.model}: prompts of more than {price.long_prompt:,} tokens have other prices"
    parts = usage.usage
    if (parts.cache_writes and price.cache_write is None) or (
        parts.cache_writes_1h and price.cache_write_1h is None
    ):
        return f"{usage.model}: no price of cache writes is known"
    return price


def _dollars(usage: TokenUsage, price: Price) -> float:
    return (
        usage.input * price.input
        + usage.cached * price.cached
        + usage.cache_writes * (price.cache_write or 0.0)
        + usage.cache_writes_1h * (price.cache_write_1h or 0.0)
        + usage.output * price.output
    ) / _PER
