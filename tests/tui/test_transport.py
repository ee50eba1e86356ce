"""Replays: the transport bar at every size, and every key of time."""

import asyncio
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.widgets import Input

from agentdash.agents.codex.home import CodexHome
from agentdash.cli.family import playable
from agentdash.config import Config
from agentdash.engine.snapshot import build_snapshot
from agentdash.replay.clock import VirtualClock
from agentdash.replay.family import find_family
from agentdash.replay.index import MARKED, Mark
from agentdash.replay.player import Player
from agentdash.tui.app import Options
from agentdash.tui.keys import BY_ID
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.spans import plain
from agentdash.tui.replay_app import ReplayApp, timeline
from tests.unit.test_journal import KILLED, LAST, NOW, PANES_ALONE, recording

from .rendering import LOOK, rows, screen_text
from .sample_fleet import StaticFeed

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"


def replay_app(version="0.114.0", scenario="spawn-leaked-flags", *, finding=2, options=Options()):  # noqa: B008 - it is frozen
    """Return the app over a recording, paused at its n-th mismatch."""
    first = min((RECORDINGS / version / scenario).iterdir())
    clock = VirtualClock(0)
    player = Player(find_family(CodexHome(Path("/nonexistent")), str(first)), clock)
    player.index.read()
    player.toggle()
    for _ in range(finding):
        player.seek_mark(Mark.MISMATCH, 1)
    snapshot = build_snapshot(player.read().fleet, clock.now())
    return ReplayApp(
        StaticFeed(snapshot), clock, player, export=lambda file: f"Written to {file}", options=options
    )


@pytest.mark.parametrize(
    ("size", "is_ascii"), [((45, 50), True), ((80, 24), False), ((29, 9), False), ((20, 5), True)]
)
async def test_bar_is_shown_and_rows_fit(size, is_ascii):
    app = replay_app(options=Options(ascii=is_ascii))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for keys in ((), ("w",)):
            await pilot.press(*keys)
            await pilot.pause()
            await pilot.pause()
            painted = rows(app)
            assert {cell_len(row) for row in painted} == {size[0]}
            assert any("REPLAY" in row and "READ-ONLY" in row for row in painted)


# ---------------------------------------------------------------- each key


class Stage:
    """The app over a family of three at its second finding, and shortcuts for tests."""

    def __init__(self, app, pilot):
        self.app, self.pilot, self.player = app, pilot, app._player

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def message(self):
        return plain(self.app.screen.query_one(Footer).line_at(0)).strip()

    @property
    def bar(self):
        return plain(self.app.bar.position.line_at(0))


@pytest.fixture
async def stage():
    app = replay_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        await pilot.pause()
        yield Stage(app, pilot)


@pytest.mark.parametrize(
    ("key", "wanted"), [("next-failure", Mark.FAILURE | Mark.DENIAL), ("next-mark", MARKED)]
)
async def test_every_mark_is_gone_to_and_the_first_follows_the_last(stage, key, wanted):
    marks = stage.player.index.marks
    places = [n for n in range(1, len(marks) + 1) if marks[n - 1] & wanted]
    stage.player.seek(0)
    seen = []
    for _ in [*places, 0]:
        await stage.press(BY_ID[key].keys)
        seen.append(stage.player.position)
    assert places
    assert seen == [*places, places[0]]


async def test_the_scrubber_shows_what_v_goes_to(stage):
    """Signs stand in exactly the cells with a step that `v` goes to."""
    for marks in map(Mark, set(stage.player.index.marks)):
        sign = plain(timeline([Mark(0), marks], 0.0, 1.0, LOOK))[1]
        assert (sign in "≠!⊘✕▴→") == bool(marks & MARKED)
    await stage.press("v")
    assert stage.message[0] in "≠!⊘✕▴→"


@pytest.mark.parametrize("key", ["S", "/"])
async def test_a_time_or_a_share_is_gone_to(stage, key):
    await stage.press(key)
    assert isinstance(stage.app.focused, Input)
    await stage.press("escape")
    assert not isinstance(stage.app.focused, Input)
    await stage.press(key, *"2026-11-20T20:10:33.6Z", "enter")
    assert stage.player._clock.now() == pytest.approx(1795205433.6)
    await stage.press(key, *"0%", "enter")
    assert stage.player.position == 1
    await stage.press(key, *"100%", "enter")
    assert stage.player.share == 1


async def test_the_clock_stays_at_the_end(stage):
    stage.player.seek(1)
    stage.player._clock.set(now=stage.player.end + 30)
    assert stage.app._clock.now() == stage.player.end
    stage.app.draw()
    await stage.pilot.pause()
    times = re.findall(r"\d\d:\d\d:\d\d", stage.bar)
    assert len(times) == 2
    assert times[0] == times[1]


async def test_a_lone_session_has_the_whole_screen():
    app = replay_app("0.169.0", "full-access", finding=0)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.pause()
        assert app.root.is_zoomed
        assert "REPLAY paused" in screen_text(app)
        await pilot.press("escape")
        assert app.root.is_zoomed
        await pilot.press("q")
        assert not app.is_running


# ---------------------------------------------------------------- find texts


async def done(stage, name):
    """Wait until the threads of this name have ended, and what they found is drawn."""
    await asyncio.gather(*(worker.wait() for worker in stage.app.workers if worker.name == name))
    await stage.pilot.pause()
    await stage.pilot.pause()


async def found_text(stage, *keys):
    """Press keys, wait until the search has ended, and return the message."""
    await stage.press(*keys)
    await done(stage, "find")
    return stage.message


async def test_find_in_this_session(stage):
    first = await found_text(stage, "/", *"seatbelt", "enter")
    match = re.match(r"(\d+) of (\d+): output: .*seatbelt", first)
    assert match, first
    count = int(match[2])
    assert count > 1
    numbers, times = [int(match[1])], [stage.player.read().at]
    for _ in range(count):
        numbers.append(int((await found_text(stage, "n")).split(" of ")[0]))
        times.append(stage.player.read().at)
    assert numbers == [(numbers[0] + step - 1) % count + 1 for step in range(count + 1)]
    assert times[0] == times[-1]
    assert not stage.player.playing


async def test_worker_whose_pane_has_gone_stays(tmp_path):
    """In a recording of panes: it is shown dead, not left out."""
    part = await recording(tmp_path / "journal", [*PANES_ALONE, *KILLED, LAST])
    found = playable(str(part), Config(), tmp_path / "journal", NOW + 1e6)
    clock = VirtualClock(0)
    player = Player(found.family, clock, extra=found.recorded)
    player.index.read()
    player.seek(1)
    snapshot = build_snapshot(player.read().fleet, clock.now())
    app = ReplayApp(StaticFeed(snapshot), clock, player, export=str, options=Options())
    async with app.run_test(size=(120, 20)) as pilot:
        await pilot.pause()
        await pilot.pause()
        assert "its pane is gone; it was waiting-approval" in screen_text(app)
        assert "REPLAY paused" in screen_text(app)
