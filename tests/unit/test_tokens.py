"""Tokens of a thread by model, and what they cost."""

import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from agentdash import prices
from agentdash.agents.codex.home import open_lines, thread_id
from agentdash.agents.codex.rollout.reader import RolloutReader, tokens_by_model
from agentdash.model import events as e
from agentdash.model.tokens import ModelUsage, TokenUsage
from tests.unit.rollout_files import PARENT, THREAD, event, line, meta, only, read

DATA = Path(__file__).parents[1] / "data"
ROLLOUTS = sorted((*DATA.glob("recordings/*/*/rollout-*.jsonl"), *DATA.glob("rollouts/*/*/rollout-*.jsonl")))


def usage(given: int, cached: int = 0, returned: int = 0, written: int = 0) -> dict[str, int]:
    return {
        "input_tokens": given,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": returned,
        "reasoning_output_tokens": 0,
        "total_tokens": given + returned,
    }


def counted(total: dict[str, int], last: dict[str, int]) -> bytes:
    return event("token_count", info={"total_token_usage": total, "last_token_usage": last})


def model(name: str, **more: Any) -> bytes:
    return line("turn_context", {"cwd": "/x", "model": name, **more})


def by_model(events: Iterable[e.Event]) -> dict[str | None, int]:
    found = [event for event in events if isinstance(event, e.TokensCounted)]
    return {each.model: each.usage.total for each in found[-1].by_model}


def test_parts_do_not_overlap() -> None:
    used = usage(1200, 1000, 40, 100)
    (found,) = only(e.TokensCounted, read(model("m"), counted(used, used)))
    parts = TokenUsage(input=100, cached=1000, cache_writes=100, output=40)
    assert found.by_model == (ModelUsage(model="m", usage=parts, longest_prompt=1200),)
    assert found.total == 1240


def test_a_repeated_total_counts_once_and_models_are_separate() -> None:
    first, second = usage(100), usage(300)
    twice = [counted(first, first)] * 2
    events = read(model("a"), *twice, model("b"), counted(second, usage(200)))
    assert by_model(events) == {"a": 100, "b": 200}


@pytest.mark.parametrize("tail", range(1, 6))
@pytest.mark.parametrize("head", range(1, 6))
def test_lines_left_out_are_counted_once(head: int, tail: int) -> None:
    totals = (1, 21, 321, 4_321, 54_321)
    counts = [counted(usage(n), usage(n - b)) for n, b in zip(totals, (0, *totals), strict=False)]
    lines = [model("a"), *counts]
    reader = RolloutReader(THREAD)
    events = [*reader.read(lines[:head]), *reader.read(lines[max(head, tail) :], first=0)]
    assert sum(by_model(events).values()) == 54_321


def test_totals_that_begin_anew() -> None:
    events = read(model("a"), counted(usage(100), usage(100)), counted(usage(30), usage(30)))
    assert by_model(events) == {"a": 130}


def test_a_fork_without_copied_lines_starts_at_its_parents_total() -> None:
    head = meta(forked_from_id=PARENT)
    events = read(head, model("a"), counted(usage(500), usage(100)), counted(usage(700), usage(200)))
    assert by_model(events) == {"a": 300}


def test_tokens_of_a_part_that_was_not_read_have_no_model() -> None:
    reader = RolloutReader(THREAD)
    reader.read([meta(), model("a"), counted(usage(100), usage(100))])
    events = reader.read([counted(usage(1000), usage(50))], first=0)
    events += reader.read([model("b"), counted(usage(1010), usage(10))], first=0)
    assert by_model(events) == {"a": 100, None: 900, "b": 10}


def test_a_fork_of_which_the_beginning_was_not_read_has_no_count() -> None:
    reader = RolloutReader(THREAD)
    reader.read([meta(forked_from_id=PARENT), model("a")])
    (found,) = only(e.TokensCounted, reader.read([counted(usage(1000), usage(50))], first=0))
    assert (found.total, found.by_model, found.context) == (None, (), 50)


def test_the_relevant_lines_alone_have_the_same_tokens() -> None:
    whole = {path: read_all(path) for path in ROLLOUTS}
    assert len(whole) > 150
    assert {path: tokens_by_model(thread(path), open_lines(path)) for path in ROLLOUTS} == whole


def read_all(path: Path) -> tuple[ModelUsage, ...]:
    events = only(e.TokensCounted, RolloutReader(thread(path)).read(open_lines(path)))
    return events[-1].by_model if events else ()


def thread(path: Path) -> str:
    found = thread_id(path)
    assert found is not None
    return found


# ---------------------------------------------------------------- cost


def spent(model: str | None, tier: str | None = None, longest: int = 0, **parts: int) -> ModelUsage:
    return ModelUsage(model=model, usage=TokenUsage(**parts), tier=tier, longest_prompt=longest)


def test_cost_by_parts() -> None:
    found = prices.cost([spent("gpt-5.5", input=100, cached=1000, output=40)])
    assert found is not None
    assert found.usd == pytest.approx((100 * 5 + 1000 * 0.5 + 40 * 30) / 1e6)
    assert found.unpriced == ()


@pytest.mark.parametrize(
    ("usage", "why"),
    [
        (spent("mock-model", input=1), "mock-model: no price is known"),
        (spent(None, input=1), "a model that is not known"),
        (spent("gpt-5.5", "priority", input=1), "gpt-5.5: no price of the tier priority is known"),
        (spent("gpt-5.5", cache_writes=1), "gpt-5.5: no price of cache writes is known"),
        (
            spent("gpt-5.5", longest=272_001, input=1),
            "gpt-5.5: prompts of more than 272,000 tokens have other prices",
        ),
    ],
)
def test_what_has_no_price_says_so(usage: ModelUsage, why: str) -> None:
    alone, beside = prices.cost([usage]), prices.cost([usage, spent("gpt-5", input=1_000_000)])
    assert alone == prices.Cost(usd=None, priced_usd=0.0, unpriced=(why,))
    assert beside == prices.Cost(usd=None, priced_usd=1.25, unpriced=(why,))
    assert (prices.cost_text(alone), prices.cost_text(beside)) == ("", "$1.25+")


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("gpt-6.1-sol-2026-09-29", "gpt-6.1-sol"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("gpt-5.5", "gpt-5.5"),
        ("gpt-5.5-pro", None),
        ("gpt-5-2", None),
    ],
)
def test_snapshots_have_the_price_of_their_model(name: str, listed: str | None) -> None:
    known = prices.price_list()
    assert known.find(name) == (known.models[listed] if listed else None)


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0.004, "<$0.01"), (0.0, "$0.00"), (12.345, "$12.35"), (9_999.0, "$9999.00"), (12_345.0, "$12.3k")],
)
def test_cost_text_fits_its_column(usd: float, text: str) -> None:
    assert prices.cost_text(prices.Cost(usd=usd, priced_usd=usd)) == text
    assert len(text) <= 8


NAMED_BY_CLIS = """
gpt-5 gpt-5-codex gpt-5.1 gpt-5.1-codex gpt-5.1-codex-max gpt-5.1-codex-mini gpt-5.2 gpt-5.2-codex
gpt-5.3-codex gpt-5.4 gpt-5.4-mini gpt-5.5 gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra
gpt-6-astra gpt-6-luna gpt-6-sol gpt-6.1-sol gpt-6.1-terra
claude-opus-5-5 claude-opus-5 claude-opus-4-8 claude-opus-4-7 claude-opus-4-6 claude-opus-4-5-20251101
claude-opus-4-1-20250805 claude-opus-4-20250514 claude-sonnet-5-5 claude-sonnet-5 claude-sonnet-4-6
claude-sonnet-4-5-20250929 claude-sonnet-4-20250514 claude-haiku-5-5 claude-haiku-4-5-20251001
"""
"""Models in the catalogues of Codex 0.114 to 0.169 and of Claude Code 2.1.330. Without a list price:
codex-auto-review, gpt-daybreak-*, gpt-5-codex-mini, gpt-oss-*."""


@pytest.mark.parametrize("model", NAMED_BY_CLIS.split())
def test_models_that_the_clis_name_have_a_price(model: str) -> None:
    assert prices.price_list().find(model) is not None


def test_every_price_has_a_source_and_a_day() -> None:
    known = prices.price_list()
    assert len(known.models) > 30
    assert {price.source for price in known.models.values()} == set(known.sources)
    assert all(re.match(r"https://\S+\Z", source.url) for source in known.sources.values())
    assert all(source.read >= date(2026, 11, 1) for source in known.sources.values())
    assert all(0 < price.cached < price.input < price.output for price in known.models.values())
