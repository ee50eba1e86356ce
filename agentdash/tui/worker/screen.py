"""One worker on the whole screen."""

from __future__ import annotations

from typing import Final

from textual import getters
from textual.app import ComposeResult

from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import Line, paragraph, width
from agentdash.tui.theme import Glyphs
from agentdash.tui.view import View
from agentdash.tui.worker.overview import heading
from agentdash.tui.worker.panel import WorkerPanel

HINTS: Final = (
    "back",
    "jump",
    "tab-right",
    "why",
    "copy-remedy",
    "acknowledge",
    "copy-id",
    "attention",
    "help",
)


class WorkerScreen(Page):
    """The selected worker: a line about it, and its tabs.

    Args:
        glyphs: for the footer.
        tab: the tab that is open first.
    """

    AUTO_FOCUS = "#tab"

    heading = getters.query_one("#heading", Lines)
    panel = getters.query_one(WorkerPanel)

    def __init__(self, glyphs: Glyphs, tab: str | None) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._tab = tab

    def compose(self) -> ComposeResult:
        """Compose the line about the worker, its tabs, the footer."""
        yield Lines(id="heading", focusable=False)
        yield WorkerPanel(self._tab, is_named=False)
        yield Footer(self.glyphs, *HINTS)

    def draw(self, view: View) -> None:
        """Draw the selected worker, and why it may be out of date."""
        cells = self.app.size.width - 1
        room = cells - width(view.flag)
        about = heading(view.worker, view.parent, room, view.look) if view.worker else ()
        lines: list[Line] = [(*view.flag, *about)]
        if view.feed_error:
            lines += paragraph(view.feed_error, cells, "stuck", indent=1, cap=2)
        self.heading.show(lines)
        self.panel.expect(cells)
        self.panel.show(view)
