"""One worker on the whole screen."""

from __future__ import annotations

from textual import getters
from textual.app import ComposeResult
from textual.screen import Screen

from agentdash.tui.fleet.header import Header
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.theme import Glyphs
from agentdash.tui.view import View
from agentdash.tui.worker.panel import WorkerPanel

HINTS = ("back", "why", "tab-right", "shift-right", "attention", "jump", "copy-id", "copy-remedy", "help")


class WorkerScreen(Screen[None]):
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
