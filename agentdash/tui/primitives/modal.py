"""A text in a box over the screen."""

from __future__ import annotations

from textual import getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from agentdash.tui.keys import bindings
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line
from agentdash.tui.theme import Glyphs
from agentdash.tui.view import View


class TextModal(ModalScreen[None]):
    """A text that scrolls; `esc`, `q` and the key that opened it close it. Subclasses define `lines`."""

    BINDINGS = bindings("back", "quit", "why", "help")

    text = getters.query_one("#text", Lines)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Compose the text and the key hints."""
        with Vertical(id="modal"):
            yield Lines(id="text")
            yield Footer(self.glyphs, "down", "up", "back")

    def lines(self, view: View, cells: int, /) -> list[Line]:
        """Return the text in lines of at most `cells`."""
        raise NotImplementedError

    def draw(self, view: View) -> None:
        """Draw the text, once its width is known."""
        if self.text.room:
            self.text.show(self.lines(view, self.text.room - 1))

    def action_back(self) -> None:
        """Close the box."""
        self.dismiss()

    action_leave = action_why = action_help = action_back
