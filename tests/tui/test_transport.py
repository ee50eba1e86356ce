"""Replays: the transport bar at every size, and every key of time."""

import re
import xml.etree.ElementTree as ET
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
from agentdash.replay.index import Mark
from agentdash.replay.player import Player
from agentdash.tui.app import Options
from agentdash.tui.keys import BY_ID, KEYS
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import plain
from agentdash.tui.transport.app import HINTS, ReplayApp
from agentdash.tui.transport.bar import Track, Transport
from tests.unit.test_journal import KILLED, LAST, NOW, PANES_ALONE, recording

from .rendering import rows, screen_text
from .sample_fleet import StaticFeed
from .test_screens import SIZES

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
VIEWS = {
    "player": (Options(), ()),
    "player-worker": (Options(), ("enter", "enter")),
    "player-ascii": (Options(ascii=True), ("w",)),
}
every_view = pytest.mark.parametrize("view", VIEWS)
every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


def replay_app(version="0.114.0", scenario="spawn-leaked-flags", *, finding=2, options=Options()):  # noqa: B008 - it is frozen
    """Return the app over a recording, paused at its n-th finding."""
    first = min((RECORDINGS / version / scenario).iterdir())
    clock = VirtualClock(0)
    player = Player(find_family(CodexHome(Path("/nonexistent")), str(first)), clock)
    player.index.read()
    player.toggle()
    for _ in range(finding):
        player.seek_mark(Mark.FINDING, 1)
    snapshot = build_snapshot(player._cursor.fleet, clock.now())
    return ReplayApp(StaticFeed(snapshot), clock, player, options=options)


def show(view):
    """Return the app of a view and a function that presses its keys."""
    options, keys = VIEWS[view]

    async def prepare(pilot):
        await pilot.pause()
        await pilot.press(*keys[-1:] if pilot.app.size.width < 100 or pilot.app.size.height < 14 else keys)
        await pilot.pause()
        await pilot.pause()

    return replay_app(options=options), prepare


@every_size
@every_view
def test_look(snap_compare, view, size):
    app, prepare = show(view)
    assert snap_compare(app, terminal_size=size, run_before=prepare)


@every_size
@every_view
async def test_bar_is_shown_and_rows_fit(view, size):
    app, prepare = show(view)
    async with app.run_test(size=size) as pilot:
        await prepare(pilot)
        painted = rows(app)
        assert {cell_len(row) for row in painted} == {size[0]}
        assert any("REPLAY" in row and "READ-ONLY" in row for row in painted)
        ET.fromstring(app.export_screenshot())


@pytest.mark.parametrize("size", [(29, 9), (20, 5)])
async def test_smallest_bar(size):
    async with replay_app().run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        assert "REPLAY READ-ONLY" in screen_text(pilot.app)


# ---------------------------------------------------------------- each key


class Stage:
    """The app over a family of three at its second finding, and shortcuts for tests."""

    def __init__(self, app, pilot):
        self.app, self.pilot, self.player = app, pilot, app._player

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def place(self):
        return self.player._cursor.position

    @property
    def message(self):
        return plain(self.app.screen.query_one(Footer).line_at(0)).strip()

    @property
    def bar(self):
        bar = self.app.screen.query_one(Transport)
        return "".join(
            plain(bar.query_one(f"#{name}", Lines).line_at(0))
            for name in ("transport-left", "track", "transport-right")
        )


@pytest.fixture
async def stage():
    app = replay_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        await pilot.pause()
        yield Stage(app, pilot)


async def assert_steps(stage, key, wanted):
    """Check that the keys step to every position with these marks, forward and back."""
    forth, back = BY_ID[f"next-{key}"].keys, BY_ID[f"previous-{key}"].keys
    marks, start = stage.player.index.marks, stage.place
    ahead = [n for n in range(start + 1, len(marks) + 1) if marks[n - 1] & wanted]
    behind = [n for n in range(1, start) if marks[n - 1] & wanted]
    for place in ahead:
        await stage.press(forth)
        assert stage.place == place
        assert not stage.player.playing
    await stage.press("0")
    stage.player.seek(1)
    seen = []
    while stage.player.seek_mark(wanted, -1):
        seen.append(stage.place)
    assert [n for n in seen if n < start] == behind[::-1]
    await stage.press(back)
    assert (stage.place == 1) if wanted & Mark.VISIBLE else stage.message.startswith("No earlier")


async def check_pause(stage):
    assert "paused" in stage.bar
    await stage.press("space")
    assert stage.player.playing
    assert "playing" in stage.bar
    await stage.press("space")
    assert not stage.player.playing


async def check_event(stage):
    await assert_steps(stage, "event", Mark.VISIBLE)


async def check_turn(stage):
    await assert_steps(stage, "turn", Mark.TURN)


async def check_command(stage):
    await assert_steps(stage, "command", Mark.COMMAND)


async def check_failure(stage):
    await assert_steps(stage, "failure", Mark.FAILURE | Mark.DENIAL)


async def check_wait(stage):
    await assert_steps(stage, "wait", Mark.WAIT)


async def check_finding(stage):
    await assert_steps(stage, "finding", Mark.FINDING)


async def check_speed(stage):
    await stage.press(*"<<<<")
    assert stage.player.speed == 0.25
    await stage.press(*">" * 20)
    assert "xmax" in stage.bar
    await stage.press("<")
    assert stage.player.speed == 64


async def check_tenth(stage):
    places = []
    for key in "0123456789":
        await stage.press(key)
        places.append(stage.place)
    assert places == sorted(places)
    assert places[0] == 1
    assert len(set(places)) > 5


async def check_last(stage):
    await stage.press("$")
    assert stage.player._cursor.closed
    assert stage.player.share == 1


async def check_go_to_time(stage):
    await stage.press("S", *"nonsense", "enter")
    assert stage.message.startswith("Invalid time")
    await stage.press("S")
    assert isinstance(stage.app.focused, Input)
    await stage.press("escape")
    assert stage.app.focused is stage.app.root.fleet
    await stage.press("S", *"2026-11-20T20:10:33.6Z", "enter")
    assert stage.player._clock.now() == pytest.approx(1795205433.6)


PAIRS = ("event", "turn", "command", "failure", "wait", "finding")
CHECKS = {
    name.removeprefix("check_").replace("_", "-"): check
    for name, check in globals().items()
    if name.startswith("check_")
}


def test_every_key_of_time_has_a_check():
    pairs = {f"{way}-{name}" for way in ("next", "previous") for name in PAIRS}
    assert {key.id for key in KEYS if key.on == "player"} == {
        *(CHECKS.keys() - {*PAIRS, "speed"}),
        *pairs,
        "slower",
        "faster",
    }
    assert set(HINTS) <= set(BY_ID)


@pytest.mark.parametrize("name", CHECKS)
async def test_key(stage, name):
    await CHECKS[name](stage)


async def test_click_on_the_track_seeks(stage):
    track = stage.app.screen.query_one(Track)
    places = []
    for x in (0, track.size.width // 2, track.size.width - 1):
        await stage.pilot.click(Track, offset=(x, 0))
        await stage.pilot.pause()
        places.append(stage.player.share)
    assert places == sorted(places)
    assert (places[0], places[2]) == (0, 1)
    assert places[1] == pytest.approx(0.5, abs=0.1)


async def test_the_clock_stays_at_the_end(stage):
    stage.player.seek(1)
    stage.player._clock.set(now=stage.player.end + 30)
    assert stage.app._clock.now() == stage.player.end
    stage.app.draw()
    await stage.pilot.pause()
    times = re.findall(r"\d\d:\d\d:\d\d", stage.bar)
    assert len(times) == 2
    assert times[0] == times[1]


# ---------------------------------------------------------------- find texts


async def found_text(stage, *keys):
    """Press keys, wait until the search has ended, and return the message."""
    await stage.press(*keys)
    for worker in [worker for worker in stage.app.workers if worker.name == "find"]:
        await worker.wait()
    await stage.pilot.pause()
    await stage.pilot.pause()
    return stage.message


async def test_find_in_this_session(stage):
    first = await found_text(stage, "/", *"seatbelt", "enter")
    assert "feed" in {worker.name for worker in stage.app.workers if worker.is_running}
    match = re.match(r"(\d+) of (\d+): output: .*seatbelt", first)
    assert match, first
    count = int(match[2])
    assert count > 1
    numbers, times = [int(match[1])], [stage.player._cursor.at]
    for _ in range(count):
        numbers.append(int((await found_text(stage, "n")).split(" of ")[0]))
        times.append(stage.player._cursor.at)
    assert numbers == [(numbers[0] + step - 1) % count + 1 for step in range(count + 1)]
    assert times[0] == times[-1]
    assert not stage.player.playing


async def test_found_text_is_on_the_screen(stage):
    """The worker that wrote it is selected, at the step that has it."""
    message = await found_text(stage, "/", *'"children reported"', "enter")
    assert "message: Both children reported." in message
    assert stage.app.selected_id in stage.app._by_id
    thread = stage.player._cursor.fleet.threads[stage.app.selected_id]
    assert "children reported" in (thread.last_message or "")


async def test_nothing_found(stage):
    before = stage.place
    assert await found_text(stage, "n") == "Nothing to repeat yet: / finds texts in this session."
    assert "No text of this session has zzzz" in await found_text(stage, "/", *"zzzz", "enter")
    assert stage.place == before


async def test_worker_whose_pane_has_gone_stays(tmp_path):
    """In a recording of panes: it is shown dead, not left out."""
    part = await recording(tmp_path / "journal", [*PANES_ALONE, *KILLED, LAST])
    found = playable(str(part), Config(), tmp_path / "journal", NOW + 1e6)
    clock = VirtualClock(0)
    player = Player(found.family, clock, open_extra=found.recorded)
    player.index.read()
    player.seek(1)
    snapshot = build_snapshot(player._cursor.fleet, clock.now())
    app = ReplayApp(StaticFeed(snapshot), clock, player)
    async with app.run_test(size=(120, 20)) as pilot:
        await pilot.pause()
        await pilot.pause()
        assert "its pane is gone; it was waiting-approval" in screen_text(app)
        assert "REPLAY paused" in screen_text(app)
