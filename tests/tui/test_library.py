"""The library: rows by day, filter, search, export."""

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from agentdash.agents.codex.home import CodexHome
from agentdash.replay.library.library import Library
from agentdash.replay.library.search import Hit
from agentdash.tui.library.app import SelectedSession
from agentdash.tui.library.list import day, hit_text
from agentdash.tui.primitives.spans import plain

from ..unit.rollout_files import RECORDINGS
from . import sample_fleet
from .rendering import rows, screen_text
from .sample_library import HOUR, PAST, StaticLibrary, library


async def wait_until_read(pilot):
    """Wait until everything is read and drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    pilot.app.rearrange_if_stale()
    await pilot.pause()


@pytest.mark.parametrize(
    ("size", "is_ascii"), [((20, 5), False), ((45, 50), True), ((80, 24), False), ((200, 50), True)]
)
async def test_rows_fit(size, is_ascii):
    app = library(ascii=is_ascii)
    async with app.run_test(size=size) as pilot:
        await wait_until_read(pilot)
        for keys in ((), ("j", "j", "z", "j"), ("/", *"failed", "enter"), ("?",)):
            await pilot.press(*keys)
            await pilot.pause()
            assert {cell_len(row) for row in rows(app)} == {size[0]}


# ---------------------------------------------------------------- rows


def test_names_of_days():
    now = sample_fleet.NOW
    names = [day(now - days * 24 * HOUR, now) for days in (0, 1, 2, 6, 7, 400)]
    assert names[:2] == ["TODAY", "YESTERDAY"]
    assert {name[-3:] for name in names[2:4]} == {"DAY"}
    assert names[4:] == ["4 MAR", "4 FEB 2025"]


@pytest.mark.parametrize("size", [(45, 50), (120, 36)])
async def test_rows_have_a_reason_below_the_head_of_their_day(size):
    denied = replace(PAST[0], denied=True, reason="may not write /home/dev/board/kanban.db")
    old = replace(PAST[1], reason="usage limit", begun=PAST[1].begun - 48 * HOUR)
    app = library(StaticLibrary([denied, replace(PAST[2], parent=None, reason="no sandbox"), old]))
    async with app.run_test(size=size) as pilot:
        await wait_until_read(pilot)
        shown = rows(app)
        days = [number for number, row in enumerate(shown) if row.strip() in ("TODAY", "MONDAY", "YESTERDAY")]
        assert len(days) == 2
        text = "\n".join(shown[days[0] :])
        for words in ("kanban.db", "≠ no sandbox", "usage limit"):
            assert words in text


async def test_folded_family_shows_its_worst_member():
    app = library()
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until_read(pilot)
        assert any("Ship the checkout" in row and "≠ Pasteur" in row for row in rows(app))


async def test_empty_home_shows_the_reason():
    app = library(StaticLibrary((), problem="/home/dev/.codex has no sessions yet"))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_until_read(pilot)
        assert any("has no sessions yet" in row for row in rows(app))
        await assert_nothing_selected(app, pilot, "y", "C", "enter", "z", "l", "h", "X")


async def assert_nothing_selected(app, pilot, *keys):
    for key in keys:
        app.show_message("")
        await pilot.press(key)
        assert rows(app)[-1].strip() == "No session is selected.", key


# ---------------------------------------------------------------- filter


@pytest.mark.parametrize("size", [(120, 36), (45, 50)])
async def test_problem_of_a_filter_is_shown_while_typing_and_the_list_stays(size):
    app = library()
    async with app.run_test(size=size) as pilot:
        await wait_until_read(pilot)
        before = app.model.rows
        await pilot.press("/", *"since:monday")
        for key in ("enter", "escape"):
            text = screen_text(app)
            assert "invalid date 'monday'" in text
            assert "Fix the flaky login test" in text
            assert app.model.rows == before
            await pilot.press(key)
        assert "since:monday" not in screen_text(app)


# ---------------------------------------------------------------- full text


@pytest.fixture
async def recorded(tmp_path):
    """Provide the library over real recordings."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "2026").symlink_to(Path(RECORDINGS))
    app = library(Library(CodexHome(tmp_path), sample_fleet.frozen()))
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until_read(pilot)
        yield app, pilot


async def search(pilot, words):
    await pilot.press("S", *words, "enter")
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_search_shows_hits_and_opens_one(recorded):
    app, pilot = recorded
    await search(pilot, "codex_sandbox")
    job = app.search_job
    assert (job.over, job.files) == (True, job.total)
    assert f"{len(job.hits)} hits" in screen_text(app)
    line = app.root.hits.line_at(1)
    assert any(span.tone == "strong" and span.text == "CODEX_SANDBOX" for span in line)
    await pilot.press("j", "enter")
    assert app.return_value == SelectedSession(job.hits[1].thread, job.hits[1].path, job.hits[1].at)


async def test_search_reads_filtered_sessions_only(recorded):
    app, pilot = recorded
    await pilot.press("/", *"0.169.0", "enter")
    await search(pilot, "the")
    assert {app.model.entries[str(hit.path)].version for hit in app.search_job.hits} == {"0.169.0"}
    await search(pilot, "zzyyzzyy")
    assert "No session has these words." in screen_text(app)
    assert 'The filter "0.169.0" is on' in screen_text(app)
    await assert_nothing_selected(app, pilot, "y", "C", "enter")


async def test_esc_stops_a_search_then_closes_it(recorded, monkeypatch):
    app, pilot = recorded
    held, loop = asyncio.Event(), asyncio.get_running_loop()

    def endless(search_job):
        loop.call_soon_threadsafe(held.set)
        while True:
            threading.Event().wait(0.01)
            yield

    monkeypatch.setattr("agentdash.replay.library.search.TextSearch.steps", endless)
    await pilot.press("S", *"the", "enter")
    await held.wait()
    assert not app.search_job.over
    assert any("esc stops" in row for row in rows(app))
    await pilot.press("escape")
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    assert app.search_job.over
    await pilot.press("escape")
    assert app.search_job is None


@pytest.mark.parametrize("cells", [12, 20, 40, 80])
def test_the_match_is_in_what_is_shown_of_a_hit(cells):
    text = "…10 PASSED [24%] E       and many more words, then AssertionError: no"
    start = text.index("Error")
    hit = Hit(Path("x"), "t", line=1, at=0.0, what="output", text=text, marks=((start, start + 5),))
    assert "Error" in plain(hit_text(hit, cells))[:cells]
