"""The line under a list while words are typed into it, or a filter is in force."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from agentdash.tui.fleet.filter import BUCKET_WORDS, Filter
from agentdash.tui.keys import bindings
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span


def state(chosen: Filter, shown: int, total: int) -> Line:
    """`Needs you  "api"  2 of 40`"""
    spans = [Span(" "), Span(BUCKET_WORDS[chosen.bucket], "strong")]
    if chosen.text:
        spans.append(Span(f'  "{chosen.text}"', "strong"))
    return (
        *spans,
        Span(f"  {shown} of {total}   ", "muted"),
        Span("esc", "key", "app.back"),
        Span(" clears", "muted"),
    )


class FilterBar(Horizontal):
    """Takes the filter's words; shows the filter when nobody types."""

    BINDINGS = bindings("back")

    class Typed(Message):
        """The words changed."""

        def __init__(self, bar: FilterBar, text: str) -> None:
            self.bar, self.text = bar, text
            super().__init__()

        @property
        def control(self) -> FilterBar:
            """The bar: there may be several."""
            return self.bar

    class Done(Message):
        """Typing is over: `kept` or given up."""

        def __init__(self, bar: FilterBar, kept: bool, text: str = "") -> None:
            self.bar, self.kept, self.text = bar, kept, text
            super().__init__()

        @property
        def control(self) -> FilterBar:
            """The bar: there may be several."""
            return self.bar

    def __init__(
        self,
        *,
        id: str = "filter",  # noqa: A002 - Textual's own name for it
        sign: str = "/",
        hint: str = "words in any column, ! inverts",
    ) -> None:
        super().__init__(id=id)
        self._sign, self._hint = sign, hint

    def compose(self) -> ComposeResult:
        """The input, and the line that stands for it."""
        words = Input(placeholder=self._hint, compact=True)
        words.cursor_blink = False
        yield Static(self._sign, id="slash", markup=False)
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
        self.tell(chosen.active, state(chosen, shown, total))

    def tell(self, active: bool, line: Line) -> None:
        """Shows this line while nobody types; nothing where nothing is in force."""
        self.set_class(active, "-active")
        self.query_one(Lines).show([line])

    def action_back(self) -> None:
        """Gives the filter up."""
        self.remove_class("-editing")
        self.post_message(self.Done(self, kept=False))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("-editing"):
            self.post_message(self.Typed(self, event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.remove_class("-editing")
        self.post_message(self.Done(self, kept=True, text=event.value))
