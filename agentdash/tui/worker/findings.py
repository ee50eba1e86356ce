"""The findings of one worker in full, and its remedies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentdash.model.findings import DIRECTIONS, SEVERITIES, Finding
from agentdash.model.layer_words import sides
from agentdash.model.remedies import Remedy
from agentdash.model.worker import Worker
from agentdash.tui.format import pad, stamp
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, justify, paragraph, width
from agentdash.tui.theme import SEVERITY_TONES, Look

_LABEL_CELLS: Final = 11
"""The longest label, `configured`, and a space."""
_LABELS_BESIDE_FROM_CELLS: Final = 50
"""In a narrower panel labels stand above their texts: settings and paths are not to be torn."""


def finding_details(findings: Iterable[Finding], cells: int, look: Look) -> list[Line]:
    """Return each finding with its meaning, message, remedy, and both sides."""
    lines: list[Line] = []
    for finding in findings:
        tone = SEVERITY_TONES[finding.severity]
        kind = Span(f"{look.glyphs.directions[finding.direction]} {finding.kind}  ", tone)
        meaning = Span(DIRECTIONS[finding.direction].short, tone)
        when = Span(f"since {stamp(finding.since, look.now).strip()}, {finding.count}x", "muted")
        if width((kind, meaning, when)) < cells:
            lines += [BLANK, justify((kind, meaning), (when,), cells, look.glyphs.ellipsis)]
        else:
            lines += [BLANK, justify((kind,), (when,), cells, look.glyphs.ellipsis), (Span("  "), meaning)]
        lines += paragraph(finding.message, cells, indent=2, cap=3)
        if finding.remedy:
            lines += _remedy(finding.remedy, cells)
        for side in sides(finding):
            lines += _labelled(side.label, side.text, cells)
    return lines


def _remedy(remedy: Remedy, cells: int) -> list[Line]:
    """Return what to change, where, and the command for one run: whole, since they are to be copied."""
    first, *further = remedy.text.splitlines()
    lines = _labelled("remedy (Y)", first, cells, "strong", cap=0)
    for line in further:
        lines += _labelled("", line, cells, "strong", cap=0)
    if remedy.where:
        lines += _labelled("where", remedy.where, cells, cap=0)
    if remedy.once:
        lines += _labelled("once", remedy.once, cells, cap=0)
    return lines


def _labelled(label: str, text: str, cells: int, tone: Tone = "", cap: int = 3) -> list[Line]:
    if cells >= _LABELS_BESIDE_FROM_CELLS:
        head = (Span("  " + pad(label, _LABEL_CELLS), "muted"),)
        return paragraph(text, cells, tone, head=head, cap=cap)
    above: list[Line] = [(Span(f"  {label}", "muted"),)] if label else []
    return [*above, *paragraph(text, cells, tone, indent=4, cap=cap)]


def remedies(worker: Worker) -> list[str]:
    """Return the texts to paste of a worker's remedies, that of the most severe finding first."""
    findings = sorted(worker.sandbox.findings, key=lambda finding: SEVERITIES.index(finding.severity))
    return [finding.remedy.text for finding in findings if finding.remedy]
