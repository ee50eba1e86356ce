"""A screen that fills the terminal."""

from __future__ import annotations

from textual.events import Resize
from textual.screen import Screen


class Page(Screen[None]):
    """A screen that is laid out for the size that the terminal has now."""

    def on_resize(self, event: Resize) -> None:
        """Ignore sizes that the terminal has no longer.

        Each layout makes Textual post its size to the screen again. Two sizes that wait at once, with another
        message between them, as while painting is batched, would follow each other without end.
        """
        if event.size != self.app.size:
            event.prevent_default()
