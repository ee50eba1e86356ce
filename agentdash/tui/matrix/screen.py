"""The screen of the matrix: the table, the cell under the cursor in words, and the legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import getters, on
from textual.app import ComposeResult
from textual.widgets import DataTable

from agentdash.model.findings import FIELD_LABELS, Finding, difference
from agentdash.model.worker import Snapshot
from agentdash.tui.fleet.header import Header
from agentdash.tui.format import elide, stamp
from agentdash.tui.matrix.cells import MEANINGS, Aspect, MatrixCell, MatrixRow, legend, matrix_rows
from agentdash.tui.matrix.table import MatrixTable
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.modal import TextModal
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import BLANK, Line, Span, fit, paragraph, width
from agentdash.tui.theme import ASCII, SEVERITY_TONES, Glyphs, Look
from agentdash.tui.view import View
from agentdash.tui.worker.evidence import evidence
from agentdash.tui.worker.findings import finding_details
from agentdash.tui.worker.reach import reach_tab

if TYPE_CHECKING:
    from agentdash.tui.snapshot_app import SnapshotApp

HINTS = ("back", "open", "why", "copy-remedy", "jump", "help")
_MAX_WORDS_LINES = 4
"""Of the cell under the cursor; the whole is one key away."""


def cell_in_words(row: MatrixRow, aspect: Aspect, cells: int, look: Look) -> list[Line]:
    """Return a cell in a few lines: worker and aspect, then each finding with both values."""
    cell = row.cells[aspect]
    name = Span(elide(row.worker.name, cells // 2, look.glyphs.ellipsis), "strong")
    about = Span(f"  {aspect}: {MEANINGS[aspect]}", "muted")
    lines: list[Line] = [fit((name, about), cells, look.glyphs.ellipsis)]
    for finding in cell.findings:
        mark = Span(f"{look.glyphs.directions[finding.direction]} ", SEVERITY_TONES[finding.severity])
        lines += paragraph(_quoted(finding, look), cells, head=(mark,))
    if aspect is Aspect.REACH:
        lines += reach_tab(row.worker, cells, look)
    elif not cell.findings:
        lines.append((Span(_without_finding(row, cell, look), "muted"),))
    return lines


def _quoted(finding: Finding, look: Look) -> str:
    """Return both values of the first field of a finding, and its message."""
    if not finding.fields:
        return finding.message
    field = finding.fields[0]
    expected, actual = difference(field)
    when = f" ({stamp(field.actual_at, look.now)})" if field.actual_at is not None else ""
    both = f"{FIELD_LABELS[field.name]} {expected.label} {expected.text}, {actual.label} {actual.text}{when}"
    return f"{both}. {finding.message}"


def _without_finding(row: MatrixRow, cell: MatrixCell, look: Look) -> str:
    if cell.observed:
        at = row.worker.sandbox.got.at
        return "observed" + (f" {stamp(at, look.now)}" if at is not None else "") + ": no finding"
    if row.worker.sandbox.got.under_earlier_policy:
        return "observed before the policy changed only: not compared"
    return "not observed"


def legend_line(cells: int, look: Look) -> list[Line]:
    """Return the signs with their meanings, on as many lines as they need."""
    lines: list[list[Span]] = [[Span(" ")]]
    for sign, tone, text in legend(look.glyphs, ascii_only=look.glyphs is ASCII):
        entry = [Span(sign, tone), Span(f" {text}   ", "muted")]
        if width(lines[-1]) + width(entry) > cells:
            lines.append([Span(" ")])
        lines[-1] += entry
    return [tuple(line) for line in lines]


class MatrixScreen(Page):
    """All workers by the aspects of their sandboxes."""

    AUTO_FOCUS = "#matrix"

    header = getters.query_one(Header)
    words = getters.query_one("#matrix-words", Lines)
    signs = getters.query_one("#matrix-legend", Lines)
    table = getters.query_one(MatrixTable)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._view: View | None = None
        self._snapshot: Snapshot | None = None
        self._rows: list[MatrixRow] = []

    def compose(self) -> ComposeResult:
        """Compose header, table, words, legend, footer."""
        header = Header()
        yield header
        yield MatrixTable(header)
        yield Lines(id="matrix-words", focusable=False)
        yield Lines(id="matrix-legend", focusable=False)
        yield Footer(self.glyphs, *HINTS)

    def draw(self, view: View) -> None:
        """Draw the workers of the snapshot."""
        self._view = view
        self.header.show_fleet(view)
        if self.table.size.width:
            if view.snapshot is not self._snapshot or not self._rows:
                self._snapshot = view.snapshot
                self._rows = matrix_rows(view.snapshot.workers) if view.snapshot else []
            self.table.show_rows(self._rows, view.selected_id, view.look)
            self._show_words()

    def on_unmount(self) -> None:
        """Free the snapshot: tasks that began in the screen keep the screen itself, in their contexts."""
        self._view = self._snapshot = None
        self._rows = []

    def _show_words(self) -> None:
        if self._view is None:
            return
        look, row = self._view.look, self.table.row
        cells = self.size.width - 2
        lines: list[Line] = [(Span("No workers.", "muted"),)]
        if row is not None:
            lines = cell_in_words(row, self.table.aspect, cells, look)
        is_strip = self.has_class(
            "-strip"
        )  # one line: the row has the cursor, so that its name can be missing
        self.words.show(lines[1:2] if is_strip and row else lines[:_MAX_WORDS_LINES])
        signs = legend_line(cells, look)
        self.signs.styles.height = len(signs)
        self.signs.show(signs)

    @on(DataTable.CellHighlighted)
    def _cell_highlighted(self) -> None:
        self._show_words()

    @on(DataTable.CellSelected)
    def action_open(self) -> None:
        """Open the cell under the cursor."""
        if (row := self.table.row) is not None:
            cell = CellScreen(self.glyphs, row.worker.id, self.table.aspect)
            self.app.call_later(cast("SnapshotApp", self.app).open_screen, cell)


class CellScreen(TextModal):
    """One cell of the matrix: both sides of each finding, times, evidence and remedy."""

    def __init__(self, glyphs: Glyphs, worker: str, aspect: Aspect) -> None:
        super().__init__(glyphs)
        self._worker = worker
        self._aspect = aspect

    def lines(self, view: View, cells: int, /) -> list[Line]:
        """Return what is known of the cell."""
        rows = matrix_rows(view.snapshot.workers) if view.snapshot else []
        row = next((row for row in rows if row.worker.id == self._worker), None)
        if row is None:
            return [(Span("This worker is not listed any more.", "muted"),)]
        lines = cell_in_words(row, self._aspect, cells, view.look)[:1]
        cell = row.cells[self._aspect]
        if self._aspect is Aspect.REACH:
            return [*lines, BLANK, *reach_tab(row.worker, cells, view.look)]
        if not cell.findings:
            return [*lines, BLANK, (Span(_without_finding(row, cell, view.look)),)]
        for finding in cell.findings:
            lines += finding_details(finding, cells, view.look)
            lines += evidence(finding.evidence, cells, view.look)
        return lines
