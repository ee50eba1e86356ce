"""The library: snapshots, list, filter, search."""

import asyncio
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from agentdash.agents.codex.home import CodexHome
from agentdash.prices import priced_usd
from agentdash.replay.library.entry import SORTS
from agentdash.replay.library.library import Library
from agentdash.replay.library.query import Query
from agentdash.tui.library.app import SelectedSession
from agentdash.tui.library.cells import Longest, columns, shown_text
from agentdash.tui.library.help import LibraryHelp
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.primitives.spans import plain
from agentdash.tui.theme import UNICODE, Look

from ..unit.rollout_files import RECORDINGS
from . import sample_fleet
from .rendering import rows
from .sample_library import PARENT, PAST, StaticLibrary, library
from .test_screens import SIZES

VIEWS = {
    "library": ((), {}),
    "family": (("j", "j", "x", "j", "j"), {}),
    "filtered": (("/", *"state:f !codex", "enter"), {}),
    "library-help": (("?",), {}),
    "library-ascii": (("j", "j", "x"), {"ascii": True}),
}
every_view = pytest.mark.parametrize("view", VIEWS)
every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


async def wait_until_read(pilot):
    """Wait until everything is read and drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    pilot.app.rearrange_if_stale()
    await pilot.pause()


def prepared(view):
    keys, options = VIEWS[view]

    async def prepare(pilot):
        await wait_until_read(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    return library(**options), prepare


def selected_title(app):
    row = app.root.sessions.selected
    return app.model.entries[row.key].title if row else None


@every_size
@every_view
def test_look(snap_compare, view, size):
    app, prepare = prepared(view)
    assert snap_compare(app, terminal_size=size, run_before=prepare)


@every_size
@every_view
async def test_rows_fit_and_screenshot_is_xml(view, size):
    app, prepare = prepared(view)
    async with app.run_test(size=size) as pilot:
        await prepare(pilot)
        assert {cell_len(row) for row in rows(app)} == {size[0]}
        ET.fromstring(app.export_screenshot())


@pytest.fixture
async def stage():
    app = library()
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until_read(pilot)
        yield app, pilot


# ---------------------------------------------------------------- rows


async def test_family_unfolds_and_folds(stage):
    app, pilot = stage
    await pilot.press("j", "j")
    assert selected_title(app) == PARENT.title
    before = len(app.model.rows)
    await pilot.press("x")
    assert len(app.model.rows) == before + 3
    assert selected_title(app) == PARENT.title
    await pilot.press("j", "j", "left")
    assert (selected_title(app), len(app.model.rows)) == (PARENT.title, before)
    await pilot.press("right", "right")
    assert len(app.model.rows) == before + 3


async def test_folded_family_has_its_worst_verdict(stage):
    app, _ = stage
    place = next(p for p in app.model.rows if p.key == PARENT.key)
    assert (place.family.verdict, PARENT.verdict) == ("mismatch", "match")


async def test_cursor_follows_its_session_when_families_merge():
    app = library(StaticLibrary([]))
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until_read(pilot)
        app.model.put([e for e in PAST if e is not PARENT])
        app._arrange()
        await pilot.press("j", "j", "j", "j")
        assert selected_title(app) == "Ship the checkout, but with the new client"
        app.model.put([PARENT])
        app._arrange()
        assert selected_title(app) == PARENT.title
        await pilot.press("j")
        below = selected_title(app)
        app.model.put([PAST[0]])
        app._arrange()
        assert selected_title(app) == below


async def test_empty_home_shows_the_reason():
    app = library(StaticLibrary((), problem="/home/dev/.codex has no sessions yet"))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_until_read(pilot)
        assert any("has no sessions yet" in row for row in rows(app))
        await assert_nothing_selected(app, pilot, "y", "C", "enter", "x", "l", "h")


async def assert_nothing_selected(app, pilot, *keys):
    for key in keys:
        app.show_message("")
        await pilot.press(key)
        assert rows(app)[-1].strip() == "No session is selected.", key


# ---------------------------------------------------------------- filter


async def test_filter_applies_while_typing(stage):
    app, pilot = stage
    await pilot.press("/", *"verdict:mis")
    assert [p.family.head.title for p in app.model.rows] == [PARENT.title]
    await pilot.press("enter")
    assert any('"verdict:mis"' in row and "1 of " in row for row in rows(app))
    await pilot.press("escape")
    assert app.model.query.text == ""


async def test_invalid_filter_term_shows_a_message(stage):
    app, pilot = stage
    await pilot.press("/", *"since:whenever", "enter")
    assert any("invalid date 'whenever'" in row for row in rows(app))


@pytest.mark.parametrize("size", [(120, 36), (45, 50), (80, 24)])
async def test_unknown_key_is_shown_while_typing_and_the_list_stays(size):
    app = library()
    async with app.run_test(size=size) as pilot:
        await wait_until_read(pilot)
        before = app.model.rows
        await pilot.press("/", *"sttate:f")
        for key in ("enter", "escape"):
            text = "\n".join(rows(app))
            assert "unknown key 'sttate'. Did you mean" in text
            assert "Fix the flaky login test" in text
            assert app.model.rows == before
            await pilot.press(key)
        assert "sttate" not in "\n".join(rows(app))


async def test_completion_is_accepted_with_right(stage):
    app, pilot = stage
    await pilot.press("/", *"verd")
    await pilot.pause()
    await pilot.press("right", *"mis")
    await pilot.pause()
    await pilot.press("right", "enter")
    assert app.model.query.text == "verdict:mismatch"
    assert [row.family.head.title for row in app.model.rows] == [PARENT.title]


async def test_what_a_row_shows_can_be_found(stage):
    """The content of a cell, in quotes, is a filter that the row matches; but for the sum of a family."""
    app, _ = stage
    listed, now = app.root.sessions, sample_fleet.NOW
    look = Look(now, UNICODE)
    signs = f"{''.join(UNICODE.states.values())}{UNICODE.dot}{UNICODE.agrees[0]} "
    columns = [each.column for each in (*listed.column_layout.left, *listed.column_layout.right)]
    tested = [column for column in columns if column.title in ("BEGUN", "STATE", "CODEX", "TOOK", "TOKENS")]
    assert (len(app.model.rows), len(tested)) == (69, 5)
    cells = [
        (index, row, column)
        for index, row in enumerate(app.model.rows)
        for column in tested
        if column.title != "TOKENS" or len(row.family.members) == 1
    ]
    assert len(cells) > 300
    for index, row, column in cells:
        shown = plain(column.cell(listed.item_at(index), 99, look)).lstrip(signs).strip()
        query = Query.parse(f'"{shown}"', now, lambda entry: shown_text(entry, now))
        assert query.matches(app.model.entries[row.key]), (column.title, shown)


# ---------------------------------------------------------------- choosing


async def test_enter_returns_the_session(stage):
    app, pilot = stage
    await pilot.press("j", "enter")
    assert app.return_value == SelectedSession(PAST[1].id, PAST[1].path)


async def test_unreadable_session_shows_the_reason_and_stays(stage):
    app, pilot = stage
    await pilot.press("/", *"header", "enter", "enter")
    await pilot.pause()
    assert app.is_running
    assert any("cannot be played: no rollout" in row for row in rows(app))


async def test_double_click_opens(stage):
    app, pilot = stage
    await pilot.click("#library", offset=(10, 2), times=2)
    assert app.return_value is not None


async def test_model_outlives_the_screen():
    model = LibraryModel()
    for _ in range(2):
        app = library(model=model)
        async with app.run_test(size=(120, 36)) as pilot:
            await wait_until_read(pilot)
            if not model.query.text:
                await pilot.press("/", *"nightly", "enter", "j", "j")
            assert selected_title(app) == "Nightly run 2"
            await pilot.press("enter")
    assert model.query.text == "nightly"


async def test_copy_id(stage):
    app, pilot = stage
    await pilot.press("y")
    assert app.clipboard == PAST[0].id


async def test_help_opens_and_closes(stage):
    app, pilot = stage
    await pilot.press("?")
    assert isinstance(app.screen, LibraryHelp)
    await pilot.press("q")
    assert app.screen is app.root


async def test_news_while_a_box_opens_are_drawn_later(stage):
    app, pilot = stage
    for opens, shown in ((app.action_help, "every term has to match"), (app.action_denials, "Denied calls")):
        opens()
        app.draw()  # before the box has its widgets
        await pilot.pause()
        await pilot.pause()
        assert any(shown in row for row in rows(app))
        await pilot.press("escape")


async def test_q_quits(stage):
    app, pilot = stage
    await pilot.press("q")
    assert not app.is_running
    assert app.return_value is None


# ---------------------------------------------------------------- full text


@pytest.fixture
async def recorded(tmp_path):
    """Provide the library over real recordings."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "2026").symlink_to(Path(RECORDINGS))
    home = CodexHome(tmp_path)
    app = library(Library(home, sample_fleet.frozen()))
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until_read(pilot)
        yield app, pilot


async def wait_for_search(pilot):
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_search_shows_hits_and_opens_one(recorded):
    app, pilot = recorded
    assert len(app.model.entries) > 10
    await pilot.press("S", *"codex_sandbox", "enter")
    await wait_for_search(pilot)
    assert app.search_job is not None
    assert app.search_job.over
    assert app.search_job.files == app.search_job.total
    text = "\n".join(rows(app))
    assert f"{len(app.search_job.hits)} hits" in text
    assert "CODEX_SANDBOX" in text
    await pilot.press("j", "enter")
    hit = app.search_job.hits[1]
    assert app.return_value == SelectedSession(hit.thread, hit.path, hit.at)


async def test_search_reads_filtered_sessions_only(recorded):
    app, pilot = recorded
    await pilot.press("/", *"version:0.169", "enter", "S", *"the", "enter")
    await wait_for_search(pilot)
    versions = {app.model.entries[str(hit.path)].version for hit in app.search_job.hits}
    assert versions == {"0.169.0"}


async def test_esc_stops_a_search_then_closes_it(recorded, monkeypatch):
    app, pilot = recorded
    held, loop = asyncio.Event(), asyncio.get_running_loop()

    def endless(search_job, cancelled):
        loop.call_soon_threadsafe(held.set)
        while not cancelled():
            threading.Event().wait(0.01)
        search_job.over = True
        yield

    monkeypatch.setattr("agentdash.tui.library.search_job.SearchJob.steps", endless)
    await pilot.press("S", *"the", "enter")
    await held.wait()
    assert not app.search_job.over
    assert any("esc stops" in row for row in rows(app))
    await pilot.press("escape")
    await wait_for_search(pilot)
    assert app.search_job.over
    await pilot.press("escape")
    assert app.search_job is None


async def test_search_words_are_marked(recorded):
    app, pilot = recorded
    await pilot.press("S", *"codex_sandbox", "enter")
    await wait_for_search(pilot)
    line = app.root.hits.line_at(0)
    assert "CODEX_SANDBOX" in plain(line)
    assert any(span.tone == "strong" and span.text == "CODEX_SANDBOX" for span in line)


async def test_without_hits_keys_of_a_session_say_that_none_is_selected(recorded):
    app, pilot = recorded
    await pilot.press("S", *"zzyyzzyy", "enter")
    await wait_for_search(pilot)
    await assert_nothing_selected(app, pilot, "y", "C", "enter")


async def test_search_without_hits_shows_the_filter(recorded):
    app, pilot = recorded
    await pilot.press("/", *"version:0.169", "enter", "S", *"zzyyzzyy", "enter")
    await wait_for_search(pilot)
    text = "\n".join(rows(app))
    assert "No session has these words." in text
    assert 'The filter "version:0.169" is on' in text


# ---------------------------------------------------------------- columns, order, preview


@pytest.mark.parametrize("sort", SORTS)
async def test_sort_orders_the_rows(stage, sort):
    app, pilot = stage
    names = list(SORTS)
    await pilot.press(*["s"] * names.index(sort))
    assert app.model.sort == sort
    heads = [row.family for row in app.model.rows]
    expected = {
        "newest": [-max(member.entry.begun for member in family.members) for family in heads],
        "tokens": [-sum(each.usage.total for each in family.by_model) for family in heads],
        "cost": [-(priced_usd(family.by_model) or 0.0) for family in heads],
        "duration": [-(family.head.took or 0) for family in heads],
        "size": [-family.head.size for family in heads],
        "findings": [-max(len(member.entry.findings) for member in family.members) for family in heads],
        "name": [(not family.head.title, family.head.title.casefold()) for family in heads],
    }[sort]
    assert expected == sorted(expected)
    assert len(set(expected)) > 1


async def test_click_on_a_column_head_sorts(stage):
    app, pilot = stage
    titles = next(row for row in rows(app) if "TOKENS" in row)
    await pilot.click("#titles", offset=(titles.index("TOKENS") + 1, 0))
    assert app.model.sort == "tokens"


@pytest.mark.parametrize("cells", [80, 120, 200])
def test_columns_are_as_wide_as_their_content(cells):
    short = Longest.of([replace(PAST[0], cwd="/src")])
    long = Longest.of([replace(PAST[0], cwd="/a" * 40 + "/" + "b" * 40)])
    layouts = [columns(longest).layout(cells, UNICODE) for longest in (short, long)]
    widths = [{placed.column.title: placed.cells for placed in layout.right} for layout in layouts]
    assert widths[0].get("DIRECTORY", 9) == len("DIRECTORY")
    assert "VERDICT" in plain(layouts[0].titles())
    assert widths[1].get("DIRECTORY", 0) == {80: 0, 120: 22, 200: 32}[cells]
    assert "FROM" not in widths[0]
    assert all(sum(cell_len(span.text) for span in layout.titles()) == cells + 1 for layout in layouts)


async def test_source_is_shown_and_found():
    past = [replace(PAST[0], source="vscode"), replace(PAST[1], source="exec")]
    app = library(StaticLibrary(past))
    async with app.run_test(size=(150, 30)) as pilot:
        await wait_until_read(pilot)
        text = "\n".join(rows(app))
        assert "FROM" in text
        assert "VS Code" in text
        await pilot.press("/", *"source:exec")
        assert [row.key for row in app.model.rows] == [PAST[1].key]


async def test_a_saved_filter_has_a_name():
    past = [replace(PAST[0], source="vscode"), replace(PAST[1], source="exec")]
    app = library(StaticLibrary(past), filters={"scripted": "source:exec"})
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until_read(pilot)
        assert len(app.model.rows) > 1
        await pilot.press("/", *"@scripted", "enter")
        assert [row.key for row in app.model.rows] == [PAST[1].key]
        assert app.model.query.text == "source:exec"
        await pilot.press("/", "end", " ", *"@other", "enter")
        assert app.model.query.text == "source:exec @other"


async def test_first_and_last_prompt_are_shown():
    app = library(StaticLibrary([replace(PAST[0], prompt="Fix it please", last_prompt="Now push")]))
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_until_read(pilot)
        text = "\n".join(rows(app))
        assert "first: Fix it please" in text
        assert "last:  Now push" in text


async def test_copy_resume(stage):
    app, pilot = stage
    await pilot.press("C")
    assert app.clipboard == f"codex resume {PAST[0].id}"
