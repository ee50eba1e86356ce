"""Screens, and lines of toned text that repaint only what changed: the base of all widgets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from agentdash.tui.keys import bindings, ids
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, mark, plain
from agentdash.tui.textual_internals import part_style, set_content_size
from agentdash.tui.theme import ASCII, ascii_signs


class Page(Screen[None]):
    """A screen that is laid out for the size that the terminal has now."""

    def on_resize(self, event: Resize) -> None:
        """Ignore sizes that the terminal has no longer.

        Each layout makes Textual post its size to the screen again. Two sizes that wait at once, with another
        message between them, as while painting is batched, would follow each other without end.
        """
        if event.size != self.app.size:
            event.prevent_default()


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """A list of lines, scrolled by key and wheel. Lines that `show` does not change are not painted again."""

    class Resized(Message):
        """A widget was resized: its content has to be fitted into the new width."""

        def can_replace(self, message: Message) -> bool:
            """Return True for another resize: all widgets are drawn together."""
            return isinstance(message, Lines.Resized)

    BINDINGS = bindings(*ids("lines"))
    changed_at: ClassVar[float] = 0.0
    """When `show` last changed a line, of any widget (monotonic)."""

    def __init__(self, *, id: str | None = None, focusable: bool = True) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.can_focus = focusable
        self._content: tuple[Line, ...] = ()
        self._follows = False
        self._painted: dict[int, Line] = {}
        self._styles: dict[str, Style] = {}
        """Of the parts painted so far, by their class: a tone, or the cursor."""

    @property
    def room(self) -> int:
        """Width of the visible part of a line."""
        return self.scrollable_content_region.width

    def show(self, lines: Sequence[Line], *, follow: bool = False, from_end: bool = False) -> None:
        """Show these lines.

        Args:
            lines: the content from top to bottom.
            follow: stay at the last line if it is in the viewport now.
            from_end: what is followed is new: go to its last line.
        """
        self._follows = follow and (from_end or self.is_vertical_scroll_end)
        self._content = tuple(lines)
        self.redraw(len(self._content))
        if self._follows:
            self.scroll_end(animate=False, force=True, immediate=True)

    def line_at(self, y: int) -> Line:
        """Return the line at `y`, from the top of the content. Subclasses may compute it."""
        return self._content[y] if y < len(self._content) else BLANK

    def redraw(self, height: int) -> None:
        """Repaint the lines in the viewport that differ from those painted last.

        Args:
            height: number of lines of the content.
        """
        if height != self.virtual_size.height:
            if self.styles.height is not None and self.styles.height.is_auto:
                self.virtual_size = Size(1, height)
                self._painted.clear()
                self.refresh()
                return
            set_content_size(self, Size(1, height))
        top = self.scroll_offset.y
        before, self._painted = self._painted, {}
        for y in range(top, top + self.size.height):
            self._painted[y] = line = self.line_at(y) if y < height else BLANK
            if before.get(y) != line:
                Lines.changed_at = time.monotonic()
                self.refresh(Region(0, y - top, self.size.width, 1))

    def repaint(self) -> None:
        """Repaint everything."""
        self._painted.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render a line of the viewport."""
        row = y + self.scroll_offset.y
        if (line := self._painted.get(row)) is None:
            line = self._painted[row] = self.line_at(row)
        if (selection := self.text_selection) is not None and (span := selection.get_span(row)) is not None:
            line = mark(line, *span)
        strip = Strip([self._segment(span, row) for span in line])
        strip = strip.crop_extend(0, self.size.width, self.tone_style("", row))
        return strip.apply_offsets(0, row) if self.ALLOW_SELECT else strip

    def tone_style(self, tone: Tone, row: int) -> Style:  # noqa: ARG002 - for subclasses
        """Return the style of a tone in this row."""
        return self.style_of_part(f"tone--{tone}" if tone else "")

    def style_of_part(self, name: str) -> Style:
        """Return the style that the stylesheet has for a class of parts of this widget; empty: its own."""
        if name not in self._styles:
            self._styles[name] = part_style(self, name) if name else self.rich_style
        return self._styles[name]

    def _segment(self, span: Span, row: int) -> Segment:
        style = self.tone_style(span.tone, row)
        text = ascii_signs(span.text) if getattr(self.app, "glyphs", None) is ASCII else span.text
        return Segment(text, style + Style(meta={"@click": span.action}) if span.action else style)

    def notify_style_update(self) -> None:
        """Repaint if the style of a part has changed with theme, focus or classes."""
        super().notify_style_update()
        before, self._styles = self._styles, {}
        if any(self.style_of_part(name) != style for name, style in before.items()):
            self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the text selected with the mouse."""
        text = "\n".join(plain(self.line_at(y)) for y in range(self.virtual_size.height))
        return selection.extract(text), "\n"

    def on_resize(self, _: Resize) -> None:
        """Request content of the new width."""
        if self._follows:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.post_message(self.Resized())

    def action_down(self) -> None:
        """Scroll a line down."""
        self.scroll_to(y=self.scroll_offset.y + 1, animate=False)

    def action_up(self) -> None:
        """Scroll a line up."""
        self.scroll_to(y=self.scroll_offset.y - 1, animate=False)

    def action_top(self) -> None:
        """Scroll to the first line."""
        self.scroll_home(animate=False)

    def action_bottom(self) -> None:
        """Scroll to the last line."""
        self.scroll_end(animate=False)

    def action_page(self, direction: int) -> None:
        """Scroll a page down (1) or up (-1)."""
        self.scroll_to(y=self.scroll_offset.y + direction * self.size.height, animate=False)
