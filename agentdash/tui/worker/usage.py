"""What a worker has used: how full its context is, as a bar, its tokens, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentdash.model.fleet import Tokens
from agentdash.model.screen_usage import ScreenUsage
from agentdash.model.tokens import merged_usage
from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text
from agentdash.tui.format import count
from agentdash.tui.primitives.spans import Line, Span, Tone, fit
from agentdash.tui.theme import ASCII, Look

_BAR_CELLS: Final = 20
_BAR: Final = (("━", "─"), ("=", "-"))
"""The used part and the rest."""
_FULL_FROM: Final = 0.8
"""Of the context window: Claude Code compacts at about 80 %, Codex at 90 %."""
_FAMILY_FROM_THREADS: Final = 2


def is_nearly_full(share: float | None) -> bool:
    """Return whether a context is so full that the CLI will soon compact it."""
    return share is not None and share >= _FULL_FROM


def usage_lines(worker: Worker, family: Sequence[Worker], cells: int, look: Look) -> list[Line]:
    """Return the context as a bar with tokens and cost, and those of its family; nothing is left out as 0."""
    tokens = worker.tokens
    total = f"{count(tokens.total)} tokens" if tokens.total else ""
    facts = [total, cost_text(cost(tokens.by_model))]
    lines = [_line(_context(tokens, look), facts, cells, look)]
    if worker.on_screen is not None:
        lines.append(
            _line((Span("from its screen  ", "muted"),), _screen_facts(worker.on_screen), cells, look)
        )
    counted = [member for member in family if member.tokens.by_model]
    if len(counted) >= _FAMILY_FROM_THREADS:
        usage = merged_usage(each for member in counted for each in member.tokens.by_model)
        sums = [f"{count(sum(each.usage.total for each in usage))} tokens", cost_text(cost(usage))]
        lines.append(_line((Span(f"family of {len(counted)}  ", "muted"),), sums, cells, look))
    return [line for line in lines if line]


def _context(tokens: Tokens, look: Look) -> Line:
    """Return `context ━━━━━─────  37% of 258k  `; nothing where it is not known."""
    if tokens.context is None or not tokens.window:
        return ()
    share = min(1.0, tokens.context / tokens.window)
    full, rest = _BAR[look.glyphs is ASCII]
    filled = max(1, round(share * _BAR_CELLS)) if tokens.context else 0
    tone: Tone = "waited" if is_nearly_full(share) else "live"
    percent = 100 * tokens.context // tokens.window
    return (
        Span("context ", "muted"),
        Span(full * filled, tone),
        Span(rest * (_BAR_CELLS - filled), "rule"),
        Span(f"  {percent}% of {count(tokens.window)}  ", tone if tone == "waited" else ""),
    )


def _screen_facts(shown: ScreenUsage) -> list[str]:
    """Return what a screen states, as it does: rounded, and by the CLI's own prices."""
    of = f" of {count(shown.window)}" if shown.window else ""
    percent = f" ({shown.percent:g}%)" if shown.percent is not None else ""
    return [
        shown.model or "",
        f"context {count(shown.context)}{of}{percent}" if shown.context is not None else percent.strip(" ()"),
        f"{count(shown.total)} tokens" if shown.total is not None else "",
        f"${shown.cost:.2f}" if shown.cost is not None else "",
    ]


def context_share(worker: Worker) -> float | None:
    """Return how full the context of a worker is, by its file, else by its screen; None: not known."""
    tokens, shown = worker.tokens, worker.on_screen
    if tokens.context is not None and tokens.window:
        return tokens.context / tokens.window
    return shown.percent / 100 if shown is not None and shown.percent is not None else None


def _line(head: Line, facts: Sequence[str], cells: int, look: Look) -> Line:
    text = f" {look.glyphs.dot} ".join(filter(None, facts))
    return fit((*head, Span(text, "muted")), cells, look.glyphs.ellipsis) if head or text else ()
