"""Lists of lines: what is painted and laid out again when they change."""

from typing import ClassVar, get_args

import pytest
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip

from agentdash.tui.base_app import BaseApp
from agentdash.tui.options import Options
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import Line, Span, Tone, plain
from agentdash.tui.textual_internals import forget_what_is_shown, write_changed_cells_only
from agentdash.tui.theme import THEMES

from .rendering import rendered_strips

HEIGHT = 24


def numbered(count: int) -> list[Line]:
    return [(Span(f"line {number}"),) for number in range(count)]


class LinesApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Lines()


def viewport(lines: Lines) -> list[str]:
    return [lines.render_line(y).text.rstrip() for y in range(HEIGHT)]


async def test_content_that_shrinks_above_the_viewport_is_scrolled_back() -> None:
    app = LinesApp()
    async with app.run_test(size=(40, HEIGHT)) as pilot:
        lines = app.query_one(Lines)
        lines.show(numbered(90))
        await pilot.pause()
        lines.action_bottom()
        await pilot.pause()
        lines.show(numbered(40))
        await pilot.pause()
        assert viewport(lines) == [plain(line) for line in numbered(40)[-HEIGHT:]]


@pytest.mark.parametrize("count", [20, 50])
async def test_new_content_that_is_followed_begins_at_its_end(count: int) -> None:
    app = LinesApp()
    async with app.run_test(size=(40, HEIGHT)) as pilot:
        lines = app.query_one(Lines)
        lines.show(numbered(70))
        await pilot.pause()
        lines.show(numbered(count), follow=True, from_end=True)
        await pilot.pause()
        assert viewport(lines)[min(count, HEIGHT) - 1] == f"line {count - 1}"


class ListedParts(Lines):
    """Lines whose parts are styled by Textual itself."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone}" for tone in get_args(Tone) if tone} | {
        "lines--cursor"
    }


class ThemedApp(BaseApp[None]):
    def compose(self) -> ComposeResult:
        yield ListedParts()


@pytest.mark.parametrize("theme", [each.name for each in THEMES])
async def test_styles_of_parts_are_those_of_textual(theme: str) -> None:
    app = ThemedApp(Options(theme=theme))
    async with app.run_test() as pilot:
        lines = app.query_one(ListedParts)
        for focused in (lines, None):
            app.set_focus(focused)
            await pilot.pause()
            for name in ListedParts.COMPONENT_CLASSES:
                assert lines.style_of_part(name) == lines.get_component_rich_style(name), name


def first_style(app: ThemedApp) -> Style | None:
    """Return the style of what is painted in the first cell."""
    return next(iter(rendered_strips(app.screen)[0])).style


async def test_parts_are_painted_again_when_their_style_changes() -> None:
    app = ThemedApp(Options(theme=THEMES[0].name))
    async with app.run_test() as pilot:
        lines = app.query_one(ListedParts)
        lines.show([(Span("waits", "ask"),)])
        await pilot.pause()
        before = first_style(app)
        app.theme = THEMES[1].name
        await pilot.pause()
        assert first_style(app) not in (before, None)


def test_only_changed_cells_are_written() -> None:
    """Of a row that is shown already, nothing; of another one, what lies between the first difference and the
    last; after the screen was forgotten, all."""
    write_changed_cells_only()
    forget_what_is_shown()

    def written(*texts: str) -> str:
        row = [Strip([Segment(text) for text in texts])]
        return LayoutUpdate([row], Region(0, 1, 12, 1)).render_segments(Console())

    assert written("aaaa", "bbäb", "cccc") == "\x1b[2;1Haaaabbäbcccc"
    assert written("aaaa", "bbäb", "cccc") == ""
    assert written("aaaa", "bxäb", "cccc") == "\x1b[2;5Hbxäb"
    strips = {at: Strip([Segment(text)]) for at, text in ((0, "aaaa"), (4, "bxäb"), (8, "dddd"))}
    update = ChopsUpdate([{}, strips], [(1, 6, 10)], [[], [4, 8, 12]])
    assert update.render_segments(Console()) == "\x1b[2;9Hdd"
    forget_what_is_shown()
    assert written("aaaa", "bxäb", "ddcc") == "\x1b[2;1Haaaabxäbddcc"
