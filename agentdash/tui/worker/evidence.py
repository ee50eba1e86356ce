"""What a conclusion rests on, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable

from agentdash.model.evidence import Evidence
from agentdash.model.worker import Worker
from agentdash.tui.format import pad, stamp
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, fit, paragraph
from agentdash.tui.theme import Look, sign
from agentdash.tui.worker.findings import in_full

_SOURCE, _RULE = 12, 24


def evidence(items: Iterable[Evidence], cells: int, look: Look) -> list[Line]:
    """Each piece with its mark, source, time and rule; beside them, or below where there is no room, the words."""
    lines: list[Line] = []
    for item in items:
        mark = Span(f"{look.glyphs.agrees[item.agrees]} ", "ready" if item.agrees else "ask")
        about = (
            mark,
            Span(pad(item.source, _SOURCE)),
            Span(stamp(item.at, look.now) + "  ", "muted"),
            Span(pad(item.rule, _RULE) + " " if cells >= 90 else item.rule, "muted"),
        )
        text = item.text if item.agrees else f"{item.text}  (against)"
        if cells >= 90:
            lines += paragraph(text, cells, head=about, cap=4)
        else:
            lines += [about, *paragraph(text, cells, indent=2, cap=4)]
    return lines


def why(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Everything that state and verdict rest on."""
    assessment, state = worker.assessment, sign(worker, look.glyphs)
    since = f"  since {stamp(assessment.since, look.now).strip()}" if assessment.since is not None else ""
    lines: list[Line] = [
        fit((Span("Why is "), Span(worker.name, "strong"), Span("?")), cells, look.glyphs.ellipsis),
        (state, Span(since, "muted")),
        *paragraph(assessment.why, cells, indent=2),
        BLANK,
        *(evidence(assessment.evidence, cells, look) or [(Span("There is no evidence.", "muted"),)]),
        BLANK,
        *_verdict(worker, cells, look),
    ]
    if worker.links:
        lines += [BLANK, (Span("Tied to", "title"),), *ties(worker, cells)]
    return lines


def ties(worker: Worker, cells: int) -> list[Line]:
    """What it is tied to, and by what."""
    return [line for link in worker.links for line in paragraph(f"{link.to}: {link.by}", cells, indent=2)]


def known(worker: Worker, cells: int, look: Look) -> list[Line]:
    """The tab: evidence of the state, ties, and where to read on."""
    facts = (
        ("id", worker.id),
        ("in", worker.cwd),
        ("model", worker.model),
        ("file", worker.file),
        ("pids", ", ".join(map(str, worker.pids))),
        ("missing", "; ".join(worker.notes)),
    )
    lines = [*evidence(worker.assessment.evidence, cells, look), *ties(worker, cells)]
    lines += [BLANK] if lines else []
    for label, text in facts:
        if text:
            lines += paragraph(text, cells, head=(Span(pad(label, 9), "muted"),), cap=3)
    return lines


def _verdict(worker: Worker, cells: int, look: Look) -> list[Line]:
    sandbox = worker.sandbox
    says = {
        "match": "what was observed agrees with what was configured",
        "mismatch": "it got something else than was configured",
        "unverified": "nothing was observed that could be compared",
    }[sandbox.verdict]
    tone: Tone = "mismatch" if sandbox.verdict == "mismatch" else "strong"
    lines = paragraph(f"{look.glyphs.verdicts[sandbox.verdict]} {sandbox.verdict}: {says}", cells, tone)
    lines += evidence(sandbox.evidence, cells, look)
    for missing in sandbox.unread:
        lines += paragraph(missing, cells, "muted", head=(Span("not known: ", "muted"),), cap=3)
    for finding in sandbox.findings:
        lines += [*in_full((finding,), cells, look), *evidence(finding.evidence, cells, look)]
    return lines
