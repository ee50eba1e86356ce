"""The Evidence tab: all that the state and the verdict of a worker rest on, also what disagrees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentdash.model.causes import Cause, causes
from agentdash.model.evidence import Evidence
from agentdash.model.findings import FIELD_LABELS, Side, Verdict, difference, sides
from agentdash.model.layers import DifferingField
from agentdash.model.worker import Worker
from agentdash.tui.format import pad, stamp, stamp_cells
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph
from agentdash.tui.theme import SEVERITY_TONES, VERDICT_TONES, Look, sign

_SOURCE_CELLS: Final = 12
_LABEL_CELLS: Final = 16
"""The longest label, `configured then`, and a space."""
_LABELS_BESIDE_FROM_CELLS: Final = 50
"""In a narrower panel labels stand above their texts: settings and paths are not to be torn."""
_FACT_LABEL_CELLS: Final = 9
_VERDICT_MEANINGS: Final[dict[Verdict, str]] = {
    "match": "what was observed agrees with what was configured",
    "mismatch": "it got something else than was configured",
    "unverified": "nothing was observed that could be compared",
}


def evidence_tab(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the lines of the tab: state, verdict with its findings, policies, links, facts."""
    assessment = worker.assessment
    since = f"  since {stamp(assessment.since, look.now)}" if assessment.since is not None else ""
    state = evidence(assessment.evidence, cells, look) or [(Span("There is no evidence.", "muted"),)]
    links = [line for link in worker.links for line in paragraph(f"{link.to}: {link.by}", cells, indent=2)]
    parts = (
        [
            (sign(worker, look.glyphs), Span(since, "muted")),
            *paragraph(assessment.why, cells, indent=2),
            *state,
        ],
        _verdict(worker, cells, look),
        _policies(worker, cells, look),
        [(Span("Linked to", "title"),), *links] if links else [],
        _facts(worker, cells),
    )
    lines = [line for part in parts if part for line in (*part, BLANK)]
    return lines[:-1]


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
        lines += [(*head, Span(item.rule, "muted")), *paragraph(text, cells, indent=2, cap=8)]
    return lines


def _verdict(worker: Worker, cells: int, look: Look) -> list[Line]:
    sandbox = worker.sandbox
    words = f"{look.glyphs.verdicts[sandbox.verdict]} {sandbox.verdict}: {_VERDICT_MEANINGS[sandbox.verdict]}"
    lines = paragraph(words, cells, VERDICT_TONES[sandbox.verdict])
    lines += evidence(sandbox.evidence, cells, look)
    for missing in sandbox.unread:
        lines += paragraph(missing, cells, "muted", head=(Span("not known: ", "muted"),), cap=3)
    for cause in causes(worker):
        lines += [BLANK, *cause_details(cause, cells, look)]
        quoted = dict.fromkeys(piece for finding in cause.findings for piece in finding.evidence)
        lines += evidence(quoted, cells, look)
    return lines


def _policies(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return the policies that it has had, where it has had several."""
    if len(worker.policies) <= 1:
        return []
    column = stamp_cells((period.since for period in worker.policies), look.now)
    lines: list[Line] = [(Span("Policies", "title"),)]
    for period in worker.policies:
        text = f"{period.policy.brief()}  approval {period.policy.approval or 'not stated'}  {period.place}"
        at = Span(pad(stamp(period.since, look.now), column) + "  ", "muted")
        lines.append(fit((at, Span(text)), cells, look.glyphs.ellipsis))
    return lines


def _facts(worker: Worker, cells: int) -> list[Line]:
    """Return where the worker's data is found, and what it has used."""
    pane = worker.pane
    facts = (
        ("id", worker.id),
        ("in", worker.cwd),
        ("branch", worker.git.in_words() if worker.git else None),
        ("model", worker.model),
        ("turns", str(worker.turns) if worker.turns else None),
        ("file", worker.file),
        ("pane", f"{pane.key} in {pane.session}:{pane.window}" if pane else None),
        ("pids", ", ".join(map(str, worker.pids))),
        ("missing", "; ".join(worker.notes)),
    )
    lines: list[Line] = []
    for label, text in facts:
        if text:
            lines += paragraph(text, cells, head=(Span(pad(label, _FACT_LABEL_CELLS), "muted"),), cap=3)
    return lines


# ---------------------------------------------------------------- findings


def cause_details(cause: Cause, cells: int, look: Look) -> list[Line]:
    """Return a cause since when, with its meaning, then each finding with both sides; the overview has the
    fix."""
    since = min(finding.since for finding in cause.findings)
    times = sum(finding.count for finding in cause.findings)
    words = f"{look.glyphs.directions[cause.worst.direction]} {cause.words}"
    about = f"since {stamp(since, look.now)}, {times}x {look.glyphs.dot} {', '.join(cause.kinds)}"
    lines = paragraph(words, cells, SEVERITY_TONES[cause.worst.severity])
    lines += paragraph(about, cells, "muted", indent=2)
    for text in dict.fromkeys(finding.message for finding in cause.findings):
        lines += paragraph(text, cells, indent=2)
    values = [_values(field, look) for finding in cause.findings for field in finding.fields]
    quotes = [side for finding in cause.findings for side in sides(finding)]
    for side in dict.fromkeys((*values, *quotes)):  # findings of one command quote the same
        lines += _labelled(side, cells)
    return lines


def _values(field: DifferingField, look: Look) -> Side:
    """Return both values of a cell that differs, with the time, beside its name."""
    expected, actual = difference(field)
    when = f", {stamp(field.actual_at, look.now)}" if field.actual_at is not None else ""
    text = f"{expected.label} {expected.text}, {actual.label} {actual.text}{when}"
    return Side(FIELD_LABELS[field.name], text)


def _labelled(side: Side, cells: int) -> list[Line]:
    """Return a text beside its label, or below it where there is little room."""
    if cells >= _LABELS_BESIDE_FROM_CELLS:
        head = (Span("  " + pad(side.label, _LABEL_CELLS), "muted"),)
        return paragraph(side.text, cells, head=head, cap=3)
    return [(Span(f"  {side.label}", "muted"),), *paragraph(side.text, cells, indent=4, cap=6)]
