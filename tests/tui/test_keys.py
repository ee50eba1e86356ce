"""The key table, the help, and what keys do; `tests/live/hands` presses all of them in a real terminal."""

from collections import Counter

import pytest
from msgspec.structs import replace
from textual.command import CommandList, CommandPalette

from agentdash.model.pane import PaneKey
from agentdash.tui.fleet.screen import HINTS
from agentdash.tui.help import dashboard_help, signs
from agentdash.tui.keys import BY_ID, KEYS, wrong_keys
from agentdash.tui.primitives.spans import plain
from agentdash.tui.theme import ASCII, UNICODE

from . import sample_fleet
from .rendering import Stage

SIZE = (120, 36)
ALL = ("lines", "app", "fleet", "player", "library", "textual")


@pytest.fixture
async def stage():
    app = sample_fleet.dashboard()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        yield Stage(app, pilot)


# ---------------------------------------------------------------- the table, and the signs


def test_keys_are_unique_and_few():
    assert list(wrong_keys({})) == []
    assert len(BY_ID) == len(KEYS) <= 43


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_there_are_few_signs_each_with_one_meaning(glyphs):
    found = [sign for signs_of_entry, *_ in signs(glyphs) for sign in signs_of_entry.split()]
    assert max(Counter(found).values()) == 1
    assert len(found) <= 18
    used = {*glyphs.states.values(), *glyphs.directions.values(), *glyphs.agrees, glyphs.verdicts["match"]}
    assert used <= set(found)


# ---------------------------------------------------------------- what keys do


async def test_jump(stage):
    visited = []

    async def go_to_pane(pane):
        visited.append(pane)
        return "Went to 1:agents."

    await stage.press("j", "o")
    assert "No tmux pane is linked to Lagrange" in stage.message
    await stage.press("home", "o")
    assert "this is its recorded screen" in stage.message
    assert stage.app.root.panel.open_tab == "Screen"
    await stage.press("escape")
    stage.app._go_to_pane = go_to_pane
    await stage.press("o")
    assert (visited, stage.message) == ([PaneKey("default", "%1")], "Went to 1:agents.")
    snapshot, main = stage.app.snapshot, stage.app.worker  # a sub-agent asks in the pane of its session
    child = next(each for each in snapshot.workers if each.name == "Lagrange")
    shows = replace(main, assessment=replace(main.assessment, asker=child.id))
    workers = (shows if each.id == main.id else each for each in snapshot.workers)
    stage.app.take(replace(snapshot, workers=tuple(workers)))
    await stage.press("j", "o")
    assert (stage.name, visited[1:]) == ("Lagrange", [main.pane.key])


async def test_without_workers_keys_of_one_say_that_none_is_selected():
    app = sample_fleet.dashboard(sample_fleet.EMPTY)
    async with app.run_test(size=SIZE) as pilot:
        stage = Stage(app, pilot)
        await pilot.pause()
        for key in ("y", "Y", "o", "d", "z", "w", "enter"):
            app.show_message("")
            await stage.press(key)
            assert stage.message == "No worker is selected.", key
        await stage.press("a")
        assert stage.message == "No worker here needs you."


async def test_drawing_while_the_app_ends(stage):
    """Screens lose their widgets before they leave the stack, while messages may still arrive."""
    await stage.press("w")
    await stage.app._shutdown()  # private: `exit` would only request it
    stage.app.draw()
    stage.app.root.fleet.focus()


# ---------------------------------------------------------------- the palette


async def choose(stage, text):
    await stage.press(":", *text)
    assert isinstance(stage.app.screen, CommandPalette)
    found = stage.app.screen.query_one(CommandList)
    while found.highlighted is None:
        await stage.pilot.pause()
    await stage.press("enter")


async def test_palette_finds_worker_named_like_markup(stage):
    await choose(stage, "[bold red]")
    while stage.name != sample_fleet.HOSTILE:
        await stage.pilot.pause()
    assert stage.app.screen is stage.app.root


# ---------------------------------------------------------------- other keys


async def test_remapped_keys():
    keys = {"down": "k", "up": "j", "sandboxes": "!", "why": "f2"}
    app = sample_fleet.dashboard(keys=keys)
    async with app.run_test(size=SIZE) as pilot:
        stage = Stage(app, pilot)
        await stage.press("k", "k", "j")
        assert stage.name == "Lagrange"
        assert "! sandboxes" in stage.message
        await stage.press("!")
        assert app.root.filter.bucket == "mismatch"
        await stage.press("escape", "?")
        lines = dashboard_help(HINTS, ALL, app.keys, UNICODE, (), 200)
        assert any(plain(line).split()[:2] == ["k", "Next"] for line in lines)


async def test_a_key_with_nothing_to_do_says_so(stage):
    for key, words in (
        ("escape", "No filter to clear"),
        ("x", "no past workers"),
        ("Y", "no finding with a remedy"),
        ("K", "In a replay nothing can be"),
        ("d", "In a replay nothing can be"),
    ):
        stage.app.select_worker(next(w.id for w in stage.app.snapshot.workers if not w.sandbox.findings))
        await stage.press(key)
        assert words in stage.message, key
    await stage.pilot.resize_terminal(80, 20)
    await stage.press("l")
    assert "no tabs here" in stage.message
