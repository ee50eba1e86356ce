"""The line under the list while a filter is typed or in force."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from agentdash.tui.filter import BUCKET_WORDS, Filter
from agentdash.tui.keys import bindings
from agentdash.tui.spans import Line, Span
from agentdash.tui.widgets.lines import Lines


def state(chosen: Filter, shown: int, total: int) -> Line:
    """`Needs you  "api"  2 of 40`"""
    spans = [Span(" "), Span(BUCKET_WORDS[chosen.bucket], "strong")]
    if chosen.text:
        spans.append(Span(f'  "{chosen.text}"', "strong"))
    return (*spans, Span(f"  {shown} of {total}   ", "muted"), Span("esc", "key", "app.back"), Span(" clears", "muted"))


class FilterBar(Horizontal):
    """Takes the filter's words; shows the filter when nobody types."""

    BINDINGS = bindings("back")

    class Typed(Message):
        """The words changed."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    class Done(Message):
        """Typing is over: `kept` or given up."""

        def __init__(self, kept: bool) -> None:
            self.kept = kept
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="filter")

    def compose(self) -> ComposeResult:
        """The input, and the line that stands for it."""
        words = Input(placeholder="words in any column, ! inverts", compact=True)
        words.cursor_blink = False
        yield Static("/", id="slash")
        yield words
        yield Lines(id="filter-state", focusable=False)

    def edit(self, text: str) -> None:
        """Lets somebody type, starting from this text."""
        self.add_class("-editing")
        words = self.query_one(Input)
        words.value = text
        words.focus()

    def show(self, chosen: Filter, shown: int, total: int) -> None:
        """Shows what is in force."""
        self.set_class(chosen.active, "-active")
        self.query_one(Lines).show([state(chosen, shown, total)])

    def action_back(self) -> None:
        """Gives the filter up."""
        self.remove_class("-editing")
        self.post_message(self.Done(kept=False))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("-editing"):
            self.post_message(self.Typed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.remove_class("-editing")
        self.post_message(self.Done(kept=True))
