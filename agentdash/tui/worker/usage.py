"""What a worker has used: how full its context is, and what its tokens cost."""

from __future__ import annotations

import math
from typing import Final

from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text

_ROUNDING: Final = 1e-9
"""29 of 100 is 28.999… % in binary."""
_FULL_FROM: Final = 0.8
"""Of the context window: Claude Code compacts at about 80 %, Codex at 90 %."""


def context_words(worker: Worker) -> str:
    """Return how full the context of a worker is, `37%`; empty if not known."""
    share = worker.context_share
    return "" if share is None else f"{math.floor(100 * share + _ROUNDING)}%"


def is_nearly_full(share: float | None) -> bool:
    """Return whether a context is so full that the CLI will soon compact it."""
    return share is not None and share >= _FULL_FROM


def cost_words(worker: Worker) -> str:
    """Return what a worker has cost, `$0.12`: by list prices, else by its screen; empty if not known."""
    found, shown = cost(worker.tokens.by_model), worker.on_screen
    if found is not None:
        return cost_text(found) if found.usd is not None or found.priced_usd > 0 else ""
    return f"${shown.cost:.2f}" if shown is not None and shown.cost is not None else ""
