"""Findings: a worker's own in full, and those of the whole fleet on one line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from textual.message import Message

from agentdash.model.findings import Finding
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.format import pad, stamp
from agentdash.tui.keys import bindings
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, beside, paragraph, width
from agentdash.tui.theme import Look

_MEANING = {
    "stricter": "stricter: work will fail",
    "looser": "looser: more than was granted",
    "label": "label only",
}
_TONES: dict[str, Tone] = {"danger": "stuck", "warning": "mismatch", "info": "muted"}
_HEAD = 11
"""Cells of the longest label, `configured`, and a space."""


_BEHIND = 50
"""Cells from which on texts have room behind their labels."""


class Shared(NamedTuple):
    """One finding, and all workers that have it."""

    finding: Finding
    """The newest of them."""
    workers: tuple[Worker, ...]
    times: int
    """How often it was seen, all together."""


def shared(workers: Iterable[Worker]) -> list[Shared]:
    """The findings of a fleet, equal ones (by kind and message) as one, newest first."""
    groups: dict[tuple[str, str], list[tuple[Finding, Worker]]] = {}
    for worker in workers:
        for finding in worker.sandbox.findings:
            groups.setdefault((finding.kind, finding.message), []).append((finding, worker))
    found = [
        Shared(
            max((f for f, _ in group), key=lambda f: f.last),
            tuple(w for _, w in group),
            sum(f.count for f, _ in group),
        )
        for group in groups.values()
    ]
    return sorted(found, key=lambda each: -each.finding.last)


def one_line(each: Shared, cells: int, look: Look) -> Line:
    """When, who, what kind, what it means, how often."""
    finding, dots = each.finding, look.glyphs.ellipsis
    tone = _TONES[finding.severity]
    names = ", ".join(worker.name for worker in each.workers)
    who, kind = (14, 20) if cells < 100 else (22, 24)
    left = (
        Span(stamp(finding.last, look.now), "muted"),
        Span(
            f" {pad(look.glyphs.directions[finding.direction], len(look.glyphs.verdicts['mismatch']))} ", tone
        ),
        Span(pad(names, who, dots) + "  ", "strong"),
        Span(pad(finding.kind, kind, dots) + "  ", tone),
        Span(finding.message),
    )
    return beside(left, (Span(f"{each.times}x", "muted"),), cells, dots)


def in_full(findings: Iterable[Finding], cells: int, look: Look) -> list[Line]:
    """Each finding with its message, the remedy, and both sides."""
    lines: list[Line] = []
    for finding in findings:
        tone = _TONES[finding.severity]
        kind = Span(f"{look.glyphs.directions[finding.direction]} {finding.kind}  ", tone)
        meaning = Span(_MEANING[finding.direction], tone)
        when = Span(f"since {stamp(finding.since, look.now).strip()}, {finding.count}x", "muted")
        if width((kind, meaning, when)) < cells:
            lines += [BLANK, beside((kind, meaning), (when,), cells, look.glyphs.ellipsis)]
        else:
            lines += [BLANK, beside((kind,), (when,), cells, look.glyphs.ellipsis), (Span("  "), meaning)]
        lines += paragraph(finding.message, cells, indent=2, cap=3)
        if finding.remedy:
            lines += _labelled("remedy (Y)", finding.remedy, cells, "strong")
        lines += _labelled("configured", finding.configured, cells)
        lines += _labelled("got", finding.got, cells)
    return lines


def _labelled(label: str, text: str, cells: int, tone: Tone = "") -> list[Line]:
    """A label with its text behind it, or below it where it is narrow: settings and paths should not be torn."""
    if cells >= _BEHIND:
        return paragraph(text, cells, tone, head=(Span("  " + pad(label, _HEAD), "muted"),), cap=3)
    return [(Span(f"  {label}", "muted"),), *paragraph(text, cells, tone, indent=4, cap=3)]


class FindingsStrip(Choices):
    """What is wrong anywhere in the fleet. Opening a finding leads to a worker that has it."""

    BINDINGS = bindings("open")

    class Opened(Message):
        """The way to a worker that has the finding."""

        def __init__(self, worker: str) -> None:
            self.worker = worker
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="findings")
        self._snapshot: Snapshot | None = None
        self._found: list[Shared] = []

    def show_fleet(self, snapshot: Snapshot | None, look: Look) -> None:
        """Shows the findings of all workers, and takes no room where there are none."""
        if snapshot is not self._snapshot:
            self._snapshot, self._found = snapshot, shared(snapshot.workers) if snapshot else []
        if (title := f"Findings {len(self._found)}") != str(self.border_title):
            self.border_title = title
        self.set_class(not self._found, "-none")
        self.show([(Span(" "), *one_line(each, self.room - 2, look)) for each in self._found])
        if self.cursor >= len(self._found):
            self.place(max(0, len(self._found) - 1))

    def shows_cursor(self) -> bool:
        """Only while it has the focus."""
        return self.has_focus

    def opened(self) -> None:
        """Tells whom to go to."""
        if self._found:
            self.post_message(self.Opened(self._found[self.cursor].workers[0].id))

    def action_open(self) -> None:
        """Goes to the first worker that has the chosen finding."""
        self.opened()


def remedies(worker: Worker) -> list[str]:
    """What could be copied, the worst finding's first."""
    order = {"danger": 0, "warning": 1, "info": 2}
    return [f.remedy for f in sorted(worker.sandbox.findings, key=lambda f: order[f.severity]) if f.remedy]
