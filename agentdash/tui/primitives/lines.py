"""Lines of toned text that repaint only what changed: the base of everything on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, get_args

from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from agentdash.tui.keys import bindings, ids
from agentdash.tui.primitives.spans import BLANK, Line, Span, Tone, difference, mark, plain

TONES: Final = tuple(tone for tone in get_args(Tone) if tone)


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """A list of lines, scrolled by key and wheel.

    `show` may be called as often as one likes: what stays the same is not painted again.
    """

    class Resized(Message):
        """Some lines have another amount of room: whoever knows the content fits it in anew."""

        def can_replace(self, message: Message) -> bool:
            """Several in a row are one."""
            return isinstance(message, Lines.Resized)

    BINDINGS = bindings(*ids("lines"))
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone}" for tone in TONES} | {"lines--cursor"}

    def __init__(self, *, id: str | None = None, focusable: bool = True) -> None:  # noqa: A002 - Textual's own name for it
        super().__init__(id=id)
        self.can_focus = focusable
        self._content: tuple[Line, ...] = ()
        self._follows = False
        self._painted: dict[int, Line] = {}
        self._tones: dict[Tone, Style] = {}

    @property
    def room(self) -> int:
        """Cells of a line that can be seen."""
        return self.scrollable_content_region.width

    def show(self, lines: Sequence[Line], *, follow: bool = False) -> None:
        """Shows these lines.

        Args:
            follow: stay at the last line if that is what is seen now.
        """
        self._follows = follow and self.is_vertical_scroll_end
        self._content = tuple(lines)
        self.redraw(len(self._content))
        if self._follows:
            self.scroll_end(animate=False, force=True, immediate=True)

    def line_at(self, y: int) -> Line:
        """The line to be seen at `y`, counted from the top of the content."""
        return self._content[y] if y < len(self._content) else BLANK

    def redraw(self, height: int) -> None:
        """Asks for a repaint of the lines in sight that differ from those painted last."""
        if height != self.virtual_size.height:
            self.virtual_size = Size(1, height)
            self._painted.clear()
            self.refresh()
            return
        top = self.scroll_offset.y
        before, self._painted = self._painted, {}
        for y in range(top, min(height, top + self.size.height)):
            self._painted[y] = line = self.line_at(y)
            if (old := before.get(y)) != line:
                start, end = (0, None) if old is None else difference(old, line)
                self.refresh(Region(start, y - top, (end or self.size.width) - start, 1))

    def repaint(self) -> None:
        """Paints everything again."""
        self._painted.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the visible part, as Textual asks for it."""
        row = y + self.scroll_offset.y
        if (line := self._painted.get(row)) is None:
            line = self._painted[row] = self.line_at(row)
        if (selection := self.text_selection) is not None and (span := selection.get_span(row)) is not None:
            line = mark(line, *span)
        strip = Strip([self._segment(span, row) for span in line])
        strip = strip.crop_extend(0, self.size.width, self.tone_style("", row))
        return strip.apply_offsets(0, row) if self.ALLOW_SELECT else strip

    def tone_style(self, tone: Tone, row: int) -> Style:  # noqa: ARG002 - lists colour the row under their cursor
        """What a tone looks like in this row."""
        if tone not in self._tones:
            self._tones[tone] = self.get_component_rich_style(f"tone--{tone}") if tone else self.rich_style
        return self._tones[tone]

    def _segment(self, span: Span, row: int) -> Segment:
        style = self.tone_style(span.tone, row)
        return Segment(span.text, style + Style(meta={"@click": span.action}) if span.action else style)

    def notify_style_update(self) -> None:
        """Textual says that theme, focus or classes changed."""
        super().notify_style_update()
        self._tones.clear()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text marked with the mouse."""
        return selection.extract(
            "\n".join(plain(self.line_at(y)) for y in range(self.virtual_size.height))
        ), "\n"

    def on_resize(self, _: Resize) -> None:
        """Asks for content of the new width."""
        self._painted.clear()
        if self._follows:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.post_message(self.Resized())

    def action_down(self) -> None:
        """A line down."""
        self.scroll_to(y=self.scroll_offset.y + 1, animate=False)

    def action_up(self) -> None:
        """A line up."""
        self.scroll_to(y=self.scroll_offset.y - 1, animate=False)

    def action_top(self) -> None:
        """To the first line."""
        self.scroll_home(animate=False)

    def action_bottom(self) -> None:
        """To the last line."""
        self.scroll_end(animate=False)

    def action_page(self, direction: int) -> None:
        """A page down (1) or up (-1)."""
        self.scroll_to(y=self.scroll_offset.y + direction * self.size.height, animate=False)
