"""Replays: the transport bar at every size, and every key of time."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from agentdash.agents.codex.home import CodexHome
from agentdash.cli.past_sessions import playable
from agentdash.config import Config
from agentdash.engine.snapshot import build_snapshot
from agentdash.replay.clock import VirtualClock
from agentdash.replay.family import find_family
from agentdash.replay.index import MARKED, Mark
from agentdash.replay.player import Player
from agentdash.tui.app import Options
from agentdash.tui.primitives.spans import plain
from agentdash.tui.replay_app import ReplayApp, timeline
from tests.unit.test_journal import KILLED, LAST, NOW, PANES_ALONE, recording

from .rendering import LOOK, Stage, rows, screen_text
from .sample_fleet import Feed

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
    return ReplayApp(Feed(snapshot), clock, player, export=lambda file: f"Written to {file}", options=options)


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


@pytest.fixture
async def stage():
    app = replay_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        await pilot.pause()
        yield Stage(app, pilot)


async def test_the_scrubber_shows_what_v_goes_to(stage):
    """Signs stand in exactly the cells with a step that `v` goes to."""
    for marks in map(Mark, set(stage.app._player.index.marks)):
        sign = plain(timeline([Mark(0), marks], 0.0, 1.0, LOOK))[1]
        assert (sign in "≠!⊘✕▴→") == bool(marks & MARKED)
    await stage.press("v")
    assert stage.message[0] in "≠!⊘✕▴→"


async def test_the_clock_stays_at_the_end(stage):
    player = stage.app._player
    player.seek(1)
    player._clock.set(now=player.end + 30)
    assert stage.app._clock.now() == player.end
    stage.app.draw()
    await stage.pilot.pause()
    times = re.findall(r"\d\d:\d\d:\d\d", plain(stage.app.bar.position.line_at(0)))
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


async def test_worker_whose_pane_has_gone_stays(tmp_path):
    """In a recording of panes: it is shown dead, not left out."""
    part = await recording(tmp_path / "journal", [*PANES_ALONE, *KILLED, LAST])
    found = playable(str(part), Config(), tmp_path / "journal", NOW + 1e6)
    clock = VirtualClock(0)
    player = Player(found.family, clock, extra=found.recorded)
    player.index.read()
    player.seek(1)
    snapshot = build_snapshot(player.read().fleet, clock.now())
    app = ReplayApp(Feed(snapshot), clock, player, export=str, options=Options())
    async with app.run_test(size=(120, 20)) as pilot:
        await pilot.pause()
        await pilot.pause()
        assert "its pane is gone; it was waiting-approval" in screen_text(app)
        assert "REPLAY paused" in screen_text(app)
