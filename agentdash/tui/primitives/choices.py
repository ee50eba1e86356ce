"""Lines with a cursor: the base of every list from which an item is selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.style import Style
from textual import on
from textual.events import Blur, Click, Focus
from textual.geometry import Region
from textual.message import Message

from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone
from agentdash.tui.theme import UNICODE, Look


class _Place(NamedTuple):
    """What a line shows: one line of an item."""

    item: int
    part: int


class Choices(Lines):
    """A list of items of one or more lines, with heads between them. Subclasses define `lines_of`."""

    ALLOW_SELECT: ClassVar[bool] = False

    class Opened(Message):
        """An item was double-clicked."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.cursor = 0
        """Index of the selected item."""
        self.look = Look(0.0, UNICODE)
        """What drawing depends on beside the items."""
        self._places: list[Line | _Place] = []
        """For each line a head, or which line of which item."""
        self._tops: list[int] = []
        """The first line of each item."""
        self._heights: list[int] = []
        self._drawn: dict[int, list[Line]] = {}
        """The lines of the items that are drawn already."""

    def lines_of(self, index: int) -> list[Line]:
        """Return the lines of an item."""
        raise NotImplementedError

    def cursor_moved(self) -> None:
        """React to a cursor that was moved by key or mouse; a hook for subclasses."""

    def begin(self, look: Look) -> None:
        """Begin to show other items, or the same ones at another time: nothing is drawn yet."""
        self.look = look
        self._drawn.clear()

    def place(self, heads: Sequence[Line], heights: Sequence[int], below: Sequence[Line] = ()) -> None:
        """Lay out the items, and repaint what changed.

        Args:
            heads: what stands above each item; blank: nothing.
            heights: how many lines each item has.
            below: lines below the last item; all there is without items.
        """
        self._places, self._tops, self._heights = [], [], list(heights)
        for index, (head, height) in enumerate(zip(heads, heights, strict=True)):
            self._places += [head] if head else []
            self._tops.append(len(self._places))
            self._places += [_Place(index, part) for part in range(height)]
        self._places += below
        self.redraw(len(self._places))

    @property
    def total(self) -> int:
        """Number of items."""
        return len(self._tops)

    def top_of(self, index: int) -> int:
        """Return the first line of an item."""
        return self._tops[index] if index < self.total else 0

    def height_of(self, index: int) -> int:
        """Return how many lines an item has."""
        return self._heights[index] if index < len(self._heights) else 1

    def index_at(self, y: int) -> int | None:
        """Return the item that has a line; None for heads, and below the last item."""
        place = self._places[y] if y < len(self._places) else BLANK
        return place.item if isinstance(place, _Place) else None

    def line_at(self, y: int) -> Line:
        """Return a head, or one line of an item."""
        place = self._places[y] if y < len(self._places) else BLANK
        if not isinstance(place, _Place):
            return place
        gutter = Span(self.look.glyphs.cursor if place == (self.cursor, 0) else " ", "chosen")
        lines = self._lines(place.item)
        # an item that keeps its height may have fewer lines than that now
        return (gutter, *(lines[place.part] if place.part < len(lines) else BLANK))

    def _lines(self, index: int) -> list[Line]:
        if index not in self._drawn:
            self._drawn[index] = self.lines_of(index)
        return self._drawn[index]

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
        top = self.top_of(index) if index else 0  # the head above the first item comes into view with it
        shown = Region(0, top, 1, self.top_of(index) + self.height_of(index) - top)
        self.scroll_to_region(shown, animate=False, force=True, immediate=True, x_axis=False)

    def tone_style(self, tone: Tone, row: int) -> Style:
        """Return the style of a tone, with the cursor's background in the selected item."""
        style = super().tone_style(tone, row)
        if self.index_at(row) != self.cursor:
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
                self.post_message(self.Opened())

    @on(Focus)
    @on(Blur)
    def _focus_changed(self) -> None:
        """Repaint: the cursor looks different with the focus."""
        self.repaint()
