"""What a worker has used: how full its context is, and what its tokens cost."""

from __future__ import annotations

from typing import Final

from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text, price_list
from agentdash.tui.format import count

_FULL_FROM: Final = 0.8
"""Of the context window: Claude Code compacts at about 80 %, Codex at 90 %."""


def is_nearly_full(share: float | None) -> bool:
    """Return whether a context is so full that the CLI will soon compact it."""
    return share is not None and share >= _FULL_FROM


def cost_words(worker: Worker) -> str:
    """Return what a worker has cost, `$0.12`: by list prices, else by its screen; empty if not known."""
    found, shown = cost(worker.tokens.by_model), worker.on_screen
    if found is not None:
        return cost_text(found) if found.usd is not None or found.priced_usd > 0 else ""
    return f"${shown.cost:.2f}" if shown is not None and shown.cost is not None else ""


def token_lines(worker: Worker) -> list[str]:
    """Return the tokens of a worker by model, in the parts that are priced, and what they cost."""
    lines = []
    for each in worker.tokens.by_model:
        usage, found = each.usage, cost((each,))
        written = usage.cache_writes + usage.cache_writes_1h
        parts = (
            f"{usage.input:,} in",
            f"{usage.cached:,} cached" if usage.cached else "",
            f"{written:,} written to the cache" if written else "",
            f"{usage.output:,} out",
            f"{usage.reasoning:,} of them reasoning" if usage.reasoning else "",
        )
        priced = f"{cost_text(found)} at list prices of {price_list().read}"
        text = "; ".join(found.unpriced) if found and found.unpriced else priced
        lines.append(f"{each.model or 'not known'}: {', '.join(filter(None, parts))}: {text}")
    return lines


def screen_words(worker: Worker) -> str:
    """Return what the screen of a worker states, as it does: rounded, and by the CLI's own prices."""
    if (shown := worker.on_screen) is None:
        return ""
    facts = (
        shown.model,
        f"context {count(shown.context)}" if shown.context is not None else "",
        f"{shown.percent:g}% of the context" if shown.percent is not None else "",
        f"{count(shown.total)} tokens" if shown.total is not None else "",
        f"${shown.cost:.2f}" if shown.cost is not None else "",
    )
    return ", ".join(filter(None, facts))
