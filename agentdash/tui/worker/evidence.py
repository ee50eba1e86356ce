"""The evidence for a worker's state and verdict, as lines and as the Evidence tab."""

from __future__ import annotations

from collections.abc import Iterable

from agentdash.model.evidence import Evidence
from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text, price_list
from agentdash.tui.format import pad, stamp, stamp_cells
from agentdash.tui.primitives.spans import BLANK, Line, Span, paragraph
from agentdash.tui.theme import Look

_SOURCE_CELLS = 12
_RULE_CELLS = 24
_TEXT_BESIDE_FROM_CELLS = 90
"""In a narrower panel the text of an evidence stands below source, time and rule, which take
51 cells."""


def evidence(items: Iterable[Evidence], cells: int, look: Look) -> list[Line]:
    """Return each piece of evidence with its sign (for or against), source, time, rule and text."""
    lines: list[Line] = []
    items = tuple(items)
    column = stamp_cells((item.at for item in items), look.now)
    for item in items:
        head = (
            Span(f"{look.glyphs.agrees[item.agrees]} ", "ready" if item.agrees else "ask"),
            Span(pad(item.source, _SOURCE_CELLS)),
            Span(pad(stamp(item.at, look.now), column) + "  ", "muted"),
        )
        text = item.text if item.agrees else f"{item.text}  (against)"
        if cells >= _TEXT_BESIDE_FROM_CELLS:
            rule = Span(pad(item.rule, _RULE_CELLS) + " ", "muted")
            lines += paragraph(text, cells, head=(*head, rule), cap=4)
        else:
            lines += [(*head, Span(item.rule, "muted")), *paragraph(text, cells, indent=2, cap=8)]
    return lines


def link_lines(worker: Worker, cells: int) -> list[Line]:
    """Return the processes and panes linked to the worker, each with its reason."""
    return [line for link in worker.links for line in paragraph(f"{link.to}: {link.by}", cells, indent=2)]


def evidence_tab(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the Evidence tab: evidence for the state, links, and where the worker's data is found."""
    shown = worker.on_screen.model if worker.on_screen else None
    facts = (
        ("id", worker.id),
        ("in", worker.cwd),
        ("model", worker.model or (f"{shown}, from its screen" if shown else None)),
        ("file", worker.file),
        ("pids", ", ".join(map(str, worker.pids))),
        ("missing", "; ".join(worker.notes)),
    )
    lines = [*evidence(worker.assessment.evidence, cells, look), *link_lines(worker, cells)]
    lines += [BLANK] if lines else []
    for label, text in facts:
        if text:
            lines += paragraph(text, cells, head=(Span(pad(label, 9), "muted"),), cap=3)
    for number, text in enumerate(token_lines(worker)):
        lines += paragraph(text, cells, head=(Span(pad("" if number else "tokens", 9), "muted"),), cap=3)
    return lines


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
