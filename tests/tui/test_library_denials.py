"""The chart of denials in the library: by day, version and directory, with the remedies."""

from __future__ import annotations

import asyncio

import pytest
from rich.cells import cell_len

from agentdash.replay.library.entry import EntryDenial, sums_of
from agentdash.replay.library.query import Query
from agentdash.tui.library.denials import DenialsChart, denial_lines
from agentdash.tui.library.model import LibraryModel
from agentdash.tui.primitives.spans import plain
from agentdash.tui.theme import ASCII, UNICODE, Look

from . import sample_fleet
from .rendering import rows
from .sample_library import entry, library
from .test_screens import SIZES

ROOTS = '[sandbox_workspace_write]\nwritable_roots = ["{}"]'
WHERE = "~/.codex/config.toml, at the end"


def denial(path: str, *days: tuple[int, int], is_open: bool = True) -> EntryDenial:
    count = sum(calls for _, calls in days)
    return EntryDenial(path + "/f", count, days, is_open, ROOTS.format(path), WHERE)


DAY = 20_000  # 2024-10-04
ENTRIES = (
    entry(1, "one", denials=(denial("/srv/a", (DAY, 2), (DAY + 1, 9)), denial("/srv/b", (DAY, 1)))),
    entry(2, "two", denials=(denial("/srv/a", (DAY, 4), is_open=False),), version="0.114.0", cwd="/w/x"),
    entry(4, "quiet", depth="skimmed"),
)


def model(query: str = "") -> LibraryModel:
    found = LibraryModel()
    found.put(ENTRIES)
    found.query = Query.parse(query, sample_fleet.NOW, lambda each: each.title)
    found.arrange()
    return found


def drawn(found: LibraryModel, cells: int = 100, glyphs=UNICODE) -> list[str]:
    return [plain(line) for line in denial_lines(found, cells, Look(sample_fleet.NOW, glyphs))]


def test_sums_are_equal_by_day_version_and_directory() -> None:
    sums = sums_of(ENTRIES)
    for each in (sums.by_day, sums.by_version, sums.by_directory):
        assert sum(one.calls for one in each) == 16
    assert [(one.name, one.calls, one.threads, one.open) for one in sums.by_day] == [
        ("2024-10-04", 7, 2, 1),
        ("2024-10-05", 9, 1, 1),
    ]
    (joined,) = sums.remedies
    assert (joined.calls, joined.targets) == (16, ["/srv/a/f", "/srv/b/f"])
    assert 'writable_roots = ["/srv/a", "/srv/b"]' in joined.remedy


def test_chart_has_days_versions_directories_and_remedies() -> None:
    text = drawn(model())
    assert text[0] == "Denied calls  in 3 sessions"
    assert "  1 of them are read in part, or not yet: they may have more." in text
    (day,) = [line for line in text if "2024-10-05" in line]
    assert day.split()[:2] == ["2024-10-05", "9"]
    assert day.endswith(" 1 session, 1 not got past")
    assert day.count("█") > next(line for line in text if "2024-10-04" in line).count("█") > 0
    assert any(line.startswith("  codex 0.114.0") and line.endswith(" 1 session") for line in text)
    assert any(line.startswith("  /w/x") for line in text)
    assert any('writable_roots = ["/srv/a", "/srv/b"]' in line for line in text)
    assert any(WHERE in line for line in text)


def test_chart_is_of_the_sessions_that_match_the_filter() -> None:
    text = drawn(model("version:0.114"))
    assert text[0] == 'Denied calls  in 1 sessions, filter "version:0.114"'
    assert not any("2024-10-05" in line for line in text)
    assert "  No denial is known." in drawn(model("quiet"))


def test_ascii_and_narrow_charts_fit() -> None:
    for cells in (36, 60, 140):
        text = drawn(model(), cells, ASCII)
        assert all(line.isascii() for line in text)
        assert max(map(cell_len, text)) <= cells


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_d_opens_and_closes_the_chart(size) -> None:
    app = library()
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        app.model.put(ENTRIES)
        app.rearrange_if_stale()
        await pilot.press("D")
        async with asyncio.timeout(30):
            while not (isinstance(app.screen, DenialsChart) and "Denied calls" in "".join(rows(app))):
                await pilot.pause(0.01)
        assert {cell_len(row) for row in rows(app)} == {size[0]}
        await pilot.press("D")
        await pilot.pause()
        assert not isinstance(app.screen, DenialsChart)
