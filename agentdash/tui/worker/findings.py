"""The findings of one worker in full, and its remedies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentdash.model.causes import KIND_WORDS, Cause, ranked_findings
from agentdash.model.denials import Remedy
from agentdash.model.findings import DIRECTIONS, FIELD_LABELS, Finding, Side, difference, sides
from agentdash.model.worker import Worker
from agentdash.tui.format import pad, stamp
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, justify, paragraph, width
from agentdash.tui.theme import SEVERITY_TONES, Look

_LABEL_CELLS: Final = 16
"""The longest label, `configured then`, and a space."""
_LABELS_BESIDE_FROM_CELLS: Final = 50
"""In a narrower panel labels stand above their texts: settings and paths are not to be torn."""


def cause_details(found: Iterable[Cause], cells: int, look: Look) -> list[Line]:
    """Return each cause with its meaning, the remedy first, then each finding with both sides."""
    lines: list[Line] = []
    for cause in found:
        lines += [BLANK, *_heading(cause, cells, look)]
        remedied = next((finding for finding in cause.findings if finding.remedy), None)
        lines += paragraph(cause.worst.message, cells, indent=2)
        if remedied and remedied.remedy:
            lines += _remedy(remedied.remedy, cells)
        quoted: set[Side] = set()
        for finding in cause.findings:
            if finding is not cause.worst:
                lines += paragraph(finding.message, cells, indent=2)
            for side in sides(finding):
                if side not in quoted:  # findings of one command quote the same
                    lines += labelled(side.label, side.text, cells)
                quoted.add(side)
    return lines


def finding_details(finding: Finding, cells: int, look: Look) -> list[Line]:
    """Return one finding: each cell that differs with both values and times, both sides, the remedy."""
    lines = cause_details((Cause(KIND_WORDS.get(finding.kind, finding.kind), (finding,)),), cells, look)
    for field in finding.fields:
        expected, actual = difference(field)
        times = [stamp(at, look.now) if at is not None else "" for at in (field.expected_at, field.actual_at)]
        label = FIELD_LABELS[field.name]
        lines += labelled(label, f"{expected.label} {expected.text}" + _since(times[0]), cells, "strong")
        lines += labelled("", f"{actual.label} {actual.text}" + _at(times[1]), cells, "mismatch")
    return lines


def _since(at: str) -> str:
    return f", since {at}" if at else ""


def _at(at: str) -> str:
    return f", {at}" if at else ""


def _heading(cause: Cause, cells: int, look: Look) -> list[Line]:
    """Return the words of a cause, its kinds, and since when it is so."""
    worst = cause.worst
    tone = SEVERITY_TONES[worst.severity]
    since = min(finding.since for finding in cause.findings)
    times = sum(finding.count for finding in cause.findings)
    words = Span(f"{look.glyphs.directions[worst.direction]} {cause.words}", tone)
    when = Span(f"since {stamp(since, look.now)}, {times}x", "muted")
    short = DIRECTIONS[worst.direction].short
    kinds = ", ".join(cause.kinds)
    about = f"{short} {look.glyphs.dot} {kinds}"
    if width((words, when)) < cells:
        head = [justify((words,), (when,), cells, look.glyphs.ellipsis)]
    else:
        head = paragraph(words.text, cells, tone)
        about = f"{when.text} {look.glyphs.dot} {about}"
    return [*head, *paragraph(about, cells, "muted", indent=2)]


def _remedy(remedy: Remedy, cells: int) -> list[Line]:
    """Return what to change, where, and the command for one run: whole, since they are to be copied."""
    first, *further = remedy.text.splitlines()
    lines = labelled("remedy (Y)", first, cells, "strong", cap=0)
    for line in further:
        lines += labelled("", line, cells, "strong", cap=0)
    if remedy.where:
        lines += labelled("where", remedy.where, cells, cap=0)
    if remedy.once:
        lines += labelled("once", remedy.once, cells, cap=0)
    return lines


def labelled(label: str, text: str, cells: int, tone: Tone = "", cap: int = 3) -> list[Line]:
    """Return a text beside its label, or below it where there is little room, in at most `cap` lines of the
    usual width (0: all)."""
    if cells >= _LABELS_BESIDE_FROM_CELLS:
        head = (Span("  " + pad(label, _LABEL_CELLS), "muted"),)
        return paragraph(text, cells, tone, head=head, cap=cap)
    above: list[Line] = [(Span(f"  {label}", "muted"),)] if label else []
    return [*above, *paragraph(text, cells, tone, indent=4, cap=2 * cap)]  # lines of half the width


def remedies(worker: Worker) -> list[str]:
    """Return the texts to paste of a worker's remedies: of what blocks it, then of the worst finding."""
    return [finding.remedy.text for finding in ranked_findings(worker) if finding.remedy]
