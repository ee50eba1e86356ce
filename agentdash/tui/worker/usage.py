"""What a worker has used: how full its context is, as a bar, its tokens, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from rich.cells import cell_len

from agentdash.model.pane import ScreenUsage
from agentdash.model.thread import Tokens
from agentdash.model.tokens import ModelUsage, merged_usage
from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text
from agentdash.tui.format import count
from agentdash.tui.primitives.spans import Line, Span, Tone, paragraph, width
from agentdash.tui.theme import ASCII, Look

_MAX_BAR_CELLS: Final = 20
_MIN_BAR_CELLS: Final = 6
"""A shorter bar shows nothing: then the figures stand on the next line."""
_BAR: Final = (("━", "─"), ("=", "-"))
"""The used part and the rest."""
_FULL_FROM: Final = 0.8
"""Of the context window: Claude Code compacts at about 80 %, Codex at 90 %."""
_GAP: Final = "  "
_LEAST_PARTS: Final = 2
"""A bar of one part shows nothing."""
_FAMILY_FROM_THREADS: Final = 2


def is_nearly_full(share: float | None) -> bool:
    """Return whether a context is so full that the CLI will soon compact it."""
    return share is not None and share >= _FULL_FROM


def usage_lines(worker: Worker, family: Sequence[Worker], cells: int, look: Look) -> list[Line]:
    """Return the context as a bar with tokens and cost, and those of its family; nothing is left out as 0."""
    tokens = worker.tokens
    total = f"{count(tokens.total)} tokens" if tokens.total else ""
    lines = _own_lines(tokens, _joined([total, cost_text(cost(tokens.by_model))], look), cells, look)
    lines += _parts(tokens.by_model, cells, look)
    if worker.on_screen is not None:
        head = (Span("from its screen  ", "muted"),)
        lines += paragraph(_joined(_screen_facts(worker.on_screen), look), cells, "muted", head=head)
    counted = [member for member in family if member.tokens.by_model]
    if len(counted) >= _FAMILY_FROM_THREADS:
        usage = merged_usage(each for member in counted for each in member.tokens.by_model)
        sums = [f"{count(sum(each.usage.total for each in usage))} tokens", cost_text(cost(usage))]
        head = (Span(f"family of {len(counted)}  ", "muted"),)
        lines += paragraph(_joined(sums, look), cells, "muted", head=head)
    return lines


def _own_lines(tokens: Tokens, facts: str, cells: int, look: Look) -> list[Line]:
    """Return context and figures on one line; on two where they would leave no room for the bar."""
    below = paragraph(facts, cells, "muted") if facts else []
    if tokens.context is None or not tokens.window:
        return below
    one_line = _context(tokens.context, tokens.window, cells - cell_len(facts) - len(_GAP), look)
    if one_line is not None:
        return [(*one_line, Span(_GAP + facts, "muted")) if facts else one_line]
    alone = _context(tokens.context, tokens.window, cells, look)
    return [*([alone] if alone is not None else []), *below]


def _context(context: int, window: int, cells: int, look: Look) -> Line | None:
    """Return `context ━━━━━─────  37% of 258k`, with a bar as long as there is room; None: there is none."""
    share = min(1.0, context / window)
    tone: Tone = "waited" if is_nearly_full(share) else "live"
    label = Span("context ", "muted")
    percent = Span(f"  {100 * context // window}% of {count(window)}", tone if tone == "waited" else "")
    bar_cells = min(_MAX_BAR_CELLS, cells - width((label, percent)))
    if bar_cells < _MIN_BAR_CELLS:
        return None
    full, rest = _BAR[look.glyphs is ASCII]
    filled = max(1, round(share * bar_cells)) if context else 0
    return label, Span(full * filled, tone), Span(rest * (bar_cells - filled), "rule"), percent


def _parts(usages: Sequence[ModelUsage], cells: int, look: Look) -> list[Line]:
    """Return `tokens  ━━━────────━  30.1k in - 140k cached - 4.6k out`, which have different prices; nothing
    where there is no room for it."""
    used = [each.usage for each in usages]
    cached, out = sum(usage.cached for usage in used), sum(usage.output for usage in used)
    given = sum(usage.prompt for usage in used) - cached
    full, rest = _BAR[look.glyphs is ASCII]
    parts: tuple[tuple[int, str, Tone, str], ...] = (
        (given, "in", "live", full),
        (cached, "cached", "muted", rest),
        (out, "out", "ready", full),
    )
    label = Span("tokens  ", "muted")
    dot = Span(f" {look.glyphs.dot} ", "muted")
    words = [Span(f"{count(number)} {word}", tone) for number, word, tone, _ in parts if number]
    legend = [Span(_GAP), *(span for word in words for span in (word, dot))][:-1]
    bar_cells = min(_MAX_BAR_CELLS, cells - width((label, *legend)))
    if len(words) < _LEAST_PARTS or bar_cells < _MIN_BAR_CELLS:
        return []
    ends = [round(bar_cells * part / (given + cached + out)) for part in (given, given + cached)]
    edges = pairwise((0, *ends, bar_cells))
    bar = [Span(sign * (b - a), tone) for (a, b), (_, _, tone, sign) in zip(edges, parts, strict=True)]
    return [(label, *bar, *legend)]


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


def _joined(facts: Sequence[str], look: Look) -> str:
    return f" {look.glyphs.dot} ".join(filter(None, facts))
