"""Lines with a cursor: the base of every list from which an item is selected."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.events import Blur, Click, Focus
from textual.geometry import Region

from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Span, Tone
from agentdash.tui.theme import Glyphs


class Choices(Lines):
    """A list of items, each `item_height` lines high. Subclasses define the items: `total` and `line_at`."""

    ALLOW_SELECT: ClassVar[bool] = False
    item_height = 1
    """Lines of each item."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.cursor = 0
        """Index of the selected item."""

    @property
    def total(self) -> int:
        """Number of items."""
        return self.virtual_size.height // self.item_height

    def top_of(self, index: int) -> int:
        """Return the first line of an item."""
        return index * self.item_height

    def height_of(self, index: int) -> int:  # noqa: ARG002 - for subclasses
        """Return how many lines an item has."""
        return self.item_height

    def index_at(self, y: int) -> int | None:
        """Return the item that has a line; None where that line is of none."""
        index = y // self.item_height
        return index if index < self.total else None

    def cursor_moved(self) -> None:
        """React to a cursor that was moved by key or mouse; a hook for subclasses."""

    def item_opened(self) -> None:
        """React to a double click on an item; a hook for subclasses."""

    def cursor_visible(self) -> bool:
        """Return whether the selected item is highlighted now."""
        return self.total > 0

    def gutter_span(self, index: int, part: int, glyphs: Glyphs) -> Span:
        """Return the first cell of the line `part` of an item: the cursor's sign or a space."""
        return Span(glyphs.cursor if index == self.cursor and part == 0 else " ", "chosen")

    def move(self, index: int) -> None:
        """Select the item of this index, or the nearest one that exists."""
        if self.total:
            self.set_cursor(max(0, min(index, self.total - 1)))
            self.cursor_moved()

    def set_cursor(self, index: int) -> None:
        """Put the cursor on this index, and scroll it into view."""
        old, self.cursor = self.cursor, index
        for changed in {old, index}:
            top = self.top_of(changed)
            for y in range(top, top + self.height_of(changed)):
                self._painted.pop(y, None)
                self.refresh_line(y)
        # the head above the first item comes into view with it
        top = 0 if index == 0 else self.top_of(index)
        self.scroll_to_region(
            Region(0, top, 1, self.top_of(index) + self.height_of(index) - top),
            animate=False,
            force=True,
            immediate=True,
            x_axis=False,
        )

    def tone_style(self, tone: Tone, row: int) -> Style:
        """Return the style of a tone, with the cursor's background in the selected item."""
        style = super().tone_style(tone, row)
        if self.index_at(row) != self.cursor or not self.cursor_visible():
            return style
        cursor = self.style_of_part("lines--cursor")
        if not cursor.reverse:
            return style + Style(bgcolor=cursor.bgcolor)
        is_badge = style.reverse or tone == "stuck"  # of the terminal's own colours
        return style + Style(underline=True) if is_badge and self.app.native_ansi_color else cursor

    def action_down(self) -> None:
        """Select the next item."""
        self.move(self.cursor + 1)

    def action_up(self) -> None:
        """Select the previous item."""
        self.move(self.cursor - 1)

    def action_top(self) -> None:
        """Select the first item."""
        self.move(0)

    def action_bottom(self) -> None:
        """Select the last item."""
        self.move(self.total - 1)

    def action_page(self, direction: int) -> None:
        """Move the cursor a page down (1) or up (-1)."""
        start, index = self.top_of(self.cursor), self.cursor + direction
        while (
            0 <= index + direction < self.total
            and abs(self.top_of(index + direction) - start) <= self.size.height
        ):
            index += direction
        self.move(index)

    def on_click(self, event: Click) -> None:
        """Select the item under the mouse; open it on a double click."""
        index = self.index_at(event.y + self.scroll_offset.y)
        if index is not None:
            self.move(index)
            if event.chain == 2:
                self.item_opened()

    def on_focus(self, _: Focus) -> None:
        """Repaint: the cursor looks different with the focus."""
        self.repaint()

    def on_blur(self, _: Blur) -> None:
        """Repaint: the cursor looks different without the focus."""
        self.repaint()
