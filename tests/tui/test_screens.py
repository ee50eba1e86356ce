"""What it looks like, at every size that has to be good. `pytest --snapshot-update` accepts a new look; look at it first."""

import xml.etree.ElementTree as ET

import pytest
from rich.cells import cell_len

from agentdash.tui.app import AgentDash, Options

from . import sample_fleet

SIZES = ((45, 50), (150, 8), (80, 24), (120, 36), (200, 50))
VIEWS = {
    "fleet": (sample_fleet.full_fleet, Options(), ()),
    "empty": (sample_fleet.empty_fleet, Options(), ()),
    "worker": (sample_fleet.full_fleet, Options(select="Pasteur"), ("enter", "enter")),
    "sandbox": (
        sample_fleet.full_fleet,
        Options(select="Pasteur"),
        ("enter", "enter", "right", "right", "right"),
    ),
    "why": (sample_fleet.full_fleet, Options(select="fix tests"), ("w",)),
    "help": (sample_fleet.full_fleet, Options(), ("question_mark",)),
    "ascii": (sample_fleet.full_fleet, Options(ascii=True, select="Pasteur", banner="DEMO"), ()),
    "monochrome": (sample_fleet.full_fleet, Options(select="Pasteur"), ()),
}
every_view = pytest.mark.parametrize("view", VIEWS)
every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


def show(view, monkeypatch):
    """The app of a view, and what presses its keys."""
    snapshot, options, keys = VIEWS[view]
    if view == "monochrome":
        monkeypatch.setenv("NO_COLOR", "1")

    async def prepare(pilot):
        await pilot.pause()
        if pilot.app.size.width >= 100 or len(keys) < 2:
            await pilot.press(*keys)
        else:
            await pilot.press(*keys[1:])
        await pilot.pause()

    return AgentDash(sample_fleet.StaticFeed(snapshot()), sample_fleet.frozen(), options=options), prepare


@every_size
@every_view
def test_look(snap_compare, monkeypatch, view, size):
    app, prepare = show(view, monkeypatch)
    assert snap_compare(app, terminal_size=size, run_before=prepare)


@every_size
@every_view
async def test_every_row_fits_and_every_picture_is_xml(monkeypatch, view, size):
    app, prepare = show(view, monkeypatch)
    async with app.run_test(size=size) as pilot:
        await prepare(pilot)
        rows = app.screen._compositor.render_strips()
        assert len(rows) == size[1]
        assert {cell_len(row.text) for row in rows} == {size[0]}
        assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for row in rows for c in row.text)
        ET.fromstring(app.export_screenshot())
