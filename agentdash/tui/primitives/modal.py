"""A text in a box over the screen."""

from __future__ import annotations

from textual import getters
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from agentdash.tui.keys import bindings
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.page import Page
from agentdash.tui.primitives.spans import Line
from agentdash.tui.theme import Glyphs
from agentdash.tui.view import View


class TextModal(Page, ModalScreen[None]):
    """A text that scrolls; `esc`, `q` and the key that opened it close it. Subclasses define `lines`."""

    AUTO_FOCUS = "#text"
    BINDINGS = bindings("back", "quit", "help")

    text = getters.query_one("#text", Lines)

    def __init__(self, glyphs: Glyphs, *hints: str) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._hints = hints or ("down", "up", "back")
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Compose the text and the key hints."""
        with Vertical(id="modal"):
            yield from self.compose_head()
            yield Lines(id="text")
            yield Footer(self.glyphs, *self._hints)

    def compose_head(self) -> ComposeResult:
        """Compose what stands above the text; a hook for subclasses."""
        yield from ()

    def lines(self, view: View, cells: int, /) -> list[Line]:
        """Return the text in lines of at most `cells`."""
        raise NotImplementedError

    def draw(self, view: View) -> None:
        """Draw the text, once its width is known."""
        self._view = view
        for text in self.query("#text").results(Lines):  # none while the box opens, or the app ends
            if text.room:
                text.show(self.lines(view, text.room - 1))

    def redraw(self) -> None:
        """Draw the last view again."""
        if self._view is not None:
            self.draw(self._view)

    def on_unmount(self) -> None:
        """Free the snapshot: tasks that began in the box keep the box itself, in their contexts."""
        self._view = None

    def action_back(self) -> None:
        """Close the box."""
        self.dismiss()

    action_leave = action_help = action_back
