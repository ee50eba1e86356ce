"""Keys that arrive in one read of the terminal do what they do one by one."""

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.widgets import Input

from agentdash.tui.primitives.filter_bar import FilterBar

from . import sample_fleet

NAMES = {"\r": "enter", "\x1b": "escape"}


def post(app, text):
    """Post the keys of a text without a pause."""
    for character in text:
        key = NAMES.get(character) or _character_to_key(character)
        app.post_message(events.Key(key, character))


async def shown_after(text, *, at_once):
    """Return the filter, the focused part and the screen after typing a text in the fleet."""
    app = sample_fleet.dashboard()
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        for part in (text,) if at_once else text:
            post(app, part)
            await pilot.pause()
        await pilot.pause()
        edited = app.root.query_one(FilterBar).has_class("-editing")
        typed = [line.value for line in app.screen.query(Input)]
        focused = app.focused and app.focused.id
        return app.root.filter.text, edited, focused, type(app.screen).__name__, app.selected_id, typed


@pytest.mark.parametrize(
    ("text", "words", "screen"),
    [
        ("/x\r?", "x", "HelpScreen"),
        ("/x\r/y\r", "y", "FleetScreen"),
        ("/\r?", "", "HelpScreen"),
        ("?/x", "", "HelpScreen"),
        ("?\x1b/x", "x", "FleetScreen"),
        ("w\x1bj?", "", "HelpScreen"),
    ],
)
async def test_keys_in_one_read_do_what_they_do_one_by_one(text, words, screen):
    at_once = await shown_after(text, at_once=True)
    assert (at_once[0], at_once[3]) == (words, screen)
    assert at_once == await shown_after(text, at_once=False)


async def test_a_filter_has_a_longest_text():
    text, edited, *_ = await shown_after("/" + "x" * 600, at_once=True)
    assert (text, edited) == ("x" * 500, True)
