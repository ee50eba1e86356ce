"""An input of one line, opened by a key, from which enter and esc lead back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from textual import events
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

_ENTERED_WITHIN_S: Final = 1.0
"""For the keys before an enter; they take milliseconds."""
_MAX_LENGTH: Final = 500
"""Characters. Each key costs time in proportion to the text, so one of a megabyte would stop the screen."""


class LineInput(Input):
    """An input that takes no key that was typed after its enter, and no text that makes it too long.

    Keys that arrive in one read of the terminal follow each other without a pause, and Textual handles enter
    as a binding of the app, after the keys behind it. Here the app waits until an enter is handled.
    """

    _opener: Widget | None = None
    """What had the focus before."""
    _entered: asyncio.Event | None = None
    """Set when the enter that the app passes on has been handled."""

    def __init__(self, placeholder: str = "", *, suggester: Suggester | None = None) -> None:
        super().__init__(placeholder=placeholder, suggester=suggester, max_length=_MAX_LENGTH, compact=True)

    def open(self, text: str) -> None:
        """Take the focus, with this text."""
        self._opener = self.screen.focused
        self.value = text
        self.screen.set_focus(self)  # at once: `focus` waits, and the keys typed ahead do not

    def close(self) -> None:
        """Return the focus."""
        if self.screen.focused is self:
            self.screen.set_focus(self._opener)

    @asynccontextmanager
    async def until_entered(self) -> AsyncIterator[None]:
        """Pass an enter on to this input in the body, and wait until it has been handled."""
        self._entered = asyncio.Event()
        yield
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENTERED_WITHIN_S):
                await self._entered.wait()

    async def _on_key(self, event: events.Key) -> None:
        if event.key != "enter":
            return
        event.stop()
        event.prevent_default()
        await self.action_submit()
        self.close()
        if self._entered is not None:
            self._entered.set()


def focus_unless_typing(widget: Widget) -> None:
    """Focus a widget at once; not if an input has been opened meanwhile."""
    if not isinstance(widget.screen.focused, Input):
        widget.screen.set_focus(widget)
