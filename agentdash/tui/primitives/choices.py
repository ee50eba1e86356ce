"""Lines with a cursor: the fleet and its findings are picked from."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.events import Blur, Click, Focus
from textual.geometry import Region

from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Tone


class Choices(Lines):
    """Things to choose from, each `tall` lines high. Which they are, the heirs say (`size_of`, `line_at`)."""

    ALLOW_SELECT: ClassVar[bool] = False
    tall = 1
    """Lines of each choice."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.cursor = 0
        """Index of the chosen one."""

    @property
    def total(self) -> int:
        """How many there are."""
        return self.virtual_size.height // self.tall

    def moved(self) -> None:
        """The cursor was moved by hand."""

    def opened(self) -> None:
        """The chosen one was clicked twice."""

    def shows_cursor(self) -> bool:
        """Whether the chosen one is marked now: whenever there is something to choose, unless a list has a reason of its own."""
        return self.total > 0

    def move(self, index: int) -> None:
        """Chooses another one, as far as there are any."""
        if self.total:
            self.place(max(0, min(index, self.total - 1)))
            self.moved()

    def place(self, index: int) -> None:
        """Puts the cursor there and brings it into sight."""
        old, self.cursor = self.cursor, index
        for changed in {old, index}:
            for y in range(changed * self.tall, (changed + 1) * self.tall):
                self._painted.pop(y, None)
                self.refresh_line(y)
        self.scroll_to_region(
            Region(0, index * self.tall, 1, self.tall),
            animate=False,
            force=True,
            immediate=True,
            x_axis=False,
        )

    def tone_style(self, tone: Tone, row: int) -> Style:
        """The tone, on the cursor's background where the cursor is."""
        style = super().tone_style(tone, row)
        if row // self.tall != self.cursor or not self.shows_cursor():
            return style
        cursor = self.get_component_rich_style("lines--cursor")
        return cursor if cursor.reverse else style + Style(bgcolor=cursor.bgcolor)

    def action_down(self) -> None:
        """The next one."""
        self.move(self.cursor + 1)

    def action_up(self) -> None:
        """The previous one."""
        self.move(self.cursor - 1)

    def action_top(self) -> None:
        """The first one."""
        self.move(0)

    def action_bottom(self) -> None:
        """The last one."""
        self.move(self.total - 1)

    def action_page(self, direction: int) -> None:
        """A page further down (1) or up (-1)."""
        self.move(self.cursor + direction * max(1, self.size.height // self.tall))

    def on_click(self, event: Click) -> None:
        """Chooses what was clicked; the second click of a double one opens it."""
        index = (event.y + self.scroll_offset.y) // self.tall
        if index < self.total:
            self.move(index)
            if event.chain == 2:
                self.opened()

    def on_focus(self, _: Focus) -> None:
        """The cursor looks different now."""
        self.repaint()

    def on_blur(self, _: Blur) -> None:
        """The cursor looks different now."""
        self.repaint()
