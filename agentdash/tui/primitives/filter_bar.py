"""The line below a list in which words are typed, and which shows the filter in force."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from agentdash.tui.keys import bindings
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line

_MAX_LENGTH: Final = 500
"""Characters. Each key costs time in proportion to the text, so one of a megabyte would stop the screen."""
_NAME: Final = re.compile(r"(?<!\S)@([\w-]+)")


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


class FilterBar(Horizontal):
    """An input while the filter is edited; a status line while one is in force; else hidden.

    Args:
        id: of the widget; a screen may have several bars.
        sign: the key that opens it, shown before the input.
        hint: the input's placeholder.
        saved: filters by the name that stands for them: `@mine`.
    """

    BINDINGS = bindings("back")

    class _Typed(Message):
        """What was typed.

        Args:
            submitted: whether by enter.
        """

        def __init__(self, bar: FilterBar, text: str, *, submitted: bool = False) -> None:
            self.bar = bar
            self.text = text
            self.submitted = submitted
            super().__init__()

        @property
        def control(self) -> FilterBar:
            """The bar that sent it, for selectors of `on`."""
            return self.bar

    class Edited(_Typed):
        """The text in the input changed."""

    class Closed(_Typed):
        """Editing has ended: by enter, or by esc, without a text."""

    def __init__(
        self,
        *,
        id: str = "filter",  # noqa: A002 - Textual's own name for it
        sign: str = "/",
        hint: str = "words in any column, ! inverts",
        saved: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(id=id)
        self._sign = sign
        self._saved = saved or {}
        names = "".join(f" @{name}" for name in self._saved)
        self._hint = f"{hint};{names}" if names else hint

    def compose(self) -> ComposeResult:
        """Compose the input and the status line that takes its place."""
        words = LineInput(self._hint)
        words.cursor_blink = False
        yield Static(self._sign, id="slash", markup=False)
        yield words
        yield Lines(id="filter-state", focusable=False)

    def edit(self, text: str) -> None:
        """Open the input with this text."""
        self.add_class("-editing")
        self.query_one(LineInput).open(text)

    def show_status(self, active: bool, line: Line) -> None:
        """Show this line while the filter is active and not edited."""
        self.set_class(active, "-active")
        self.query_one(Lines).show([line])

    def _expanded(self, text: str) -> str:
        """Return a filter with the saved ones in place of their names; `@name` of none of them is a word."""
        return _NAME.sub(lambda match: self._saved.get(match[1], match[0]), text)

    def action_back(self) -> None:
        """Close the input and discard its text."""
        self.remove_class("-editing")
        self.query_one(LineInput).close()
        self.post_message(self.Closed(self, ""))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("-editing"):
            self.post_message(self.Edited(self, self._expanded(event.value)))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.remove_class("-editing")
        self.post_message(self.Closed(self, self._expanded(event.value), submitted=True))
