"""An input of one line, opened by a key, from which enter and esc lead back."""

from __future__ import annotations

from typing import Final

from textual import events
from textual.widget import Widget
from textual.widgets import Input

_MAX_LENGTH: Final = 500
"""Characters. Each key costs time in proportion to the text, so one of a megabyte would stop the screen."""


class LineInput(Input):
    """An input that takes no key that was typed after its enter, and no text that makes it too long."""

    _opener: Widget | None = None
    """What had the focus before."""

    def __init__(self, placeholder: str = "") -> None:
        super().__init__(placeholder=placeholder, max_length=_MAX_LENGTH, compact=True)

    def open(self, text: str) -> None:
        """Take the focus, with this text."""
        self._opener = self.screen.focused
        self.value = text
        self.screen.set_focus(self)  # at once: `focus` waits, and the keys typed ahead do not

    def close(self) -> None:
        """Return the focus."""
        if self.screen.focused is self:
            self.screen.set_focus(self._opener)

    async def _on_key(self, event: events.Key) -> None:
        if event.key != "enter":
            return
        event.stop()
        event.prevent_default()
        await self.action_submit()
        self.close()


def focus_unless_typing(widget: Widget) -> None:
    """Focus a widget at once; not if an input has been opened meanwhile."""
    if not isinstance(widget.screen.focused, Input):
        widget.screen.set_focus(widget)
