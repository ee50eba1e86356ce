"""Screens of one worker: its panel on the whole screen, and all evidence for its state and verdict."""

from __future__ import annotations

from typing import Final

from textual import getters
from textual.app import ComposeResult

from agentdash.model.causes import causes
from agentdash.model.findings import Verdict
from agentdash.model.worker import Worker
from agentdash.tui.fleet.header import Header
from agentdash.tui.format import stamp
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.modal import WorkerModal
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, fit, paragraph
from agentdash.tui.theme import Glyphs, Look, sign
from agentdash.tui.view import View
from agentdash.tui.worker.evidence import evidence, link_lines
from agentdash.tui.worker.findings import cause_details
from agentdash.tui.worker.panel import WorkerPanel

HINTS = ("back", "why", "tab-right", "shift-right", "attention", "jump", "copy-id", "copy-remedy", "help")


class WorkerScreen(Page):
    """The panel of the selected worker, in full width."""

    AUTO_FOCUS = "#tab"

    header = getters.query_one(Header)
    panel = getters.query_one(WorkerPanel)

    def __init__(self, glyphs: Glyphs, tab: str | None) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._tab = tab

    def compose(self) -> ComposeResult:
        """Compose header, panel, footer."""
        yield Header()
        yield WorkerPanel(self._tab)
        yield Footer(self.glyphs, *HINTS)

    def draw(self, view: View) -> None:
        """Draw the selected worker."""
        self.header.show_fleet(view)
        self.panel.expect(self.app.size.width - 1)
        self.panel.show(view)


_VERDICT_MEANINGS: Final[dict[Verdict, str]] = {
    "match": "what was observed agrees with what was configured",
    "mismatch": "it got something else than was configured",
    "unverified": "nothing was observed that could be compared",
}


def why(worker: Worker, cells: int, look: Look) -> list[Line]:
    """Return everything that the state and the verdict of a worker rest on."""
    assessment = worker.assessment
    since = f"  since {stamp(assessment.since, look.now)}" if assessment.since is not None else ""
    lines: list[Line] = [
        fit((Span("Why: "), Span(worker.name, "strong")), cells, look.glyphs.ellipsis),
        (sign(worker, look.glyphs), Span(since, "muted")),
        *paragraph(assessment.why, cells, indent=2),
        BLANK,
        *(evidence(assessment.evidence, cells, look) or [(Span("There is no evidence.", "muted"),)]),
        BLANK,
        *_verdict(worker, cells, look),
    ]
    if worker.links:
        lines += [BLANK, (Span("Linked to", "title"),), *link_lines(worker, cells)]
    return lines


def _verdict(worker: Worker, cells: int, look: Look) -> list[Line]:
    sandbox = worker.sandbox
    tone: Tone = "mismatch" if sandbox.verdict == "mismatch" else "strong"
    sign_and_verdict = f"{look.glyphs.verdicts[sandbox.verdict]} {sandbox.verdict}"
    lines = paragraph(f"{sign_and_verdict}: {_VERDICT_MEANINGS[sandbox.verdict]}", cells, tone)
    lines += evidence(sandbox.evidence, cells, look)
    for missing in sandbox.unread:
        lines += paragraph(missing, cells, "muted", head=(Span("not known: ", "muted"),), cap=3)
    for cause in causes(worker):
        lines += cause_details((cause,), cells, look)
        quoted = dict.fromkeys(piece for finding in cause.findings for piece in finding.evidence)
        lines += evidence(quoted, cells, look)
    return lines


class WhyScreen(WorkerModal):
    """All evidence for the state and the verdict of the selected worker."""

    def lines(self, view: View, cells: int, /) -> list[Line]:
        """Return the evidence."""
        if view.worker is None:
            return [(Span("This worker is not listed any more.", "muted"),)]
        return why(view.worker, cells, view.look)
