"""Snapshots of the dashboard at every supported size; `pytest --snapshot-update` accepts changes."""

import xml.etree.ElementTree as ET

import pytest
from rich.cells import cell_len

from . import sample_fleet
from .rendering import rows

VIEWS = {
    "fleet": {},
    "empty": {"snapshot": sample_fleet.EMPTY},
    "worker": {"keys": ("j", "j", "enter")},
    "sandboxes": {"keys": ("m",)},
    "help": {"keys": ("question_mark",)},
    "ascii": {"ascii": True, "banner": "DEMO", "keys": ("j", "j")},
    "monochrome": {"keys": ("j", "j")},
}
SIZES = ((45, 50), (80, 24), (120, 36))
SCREENS = [
    *((view, size) for view in ("fleet", "worker") for size in SIZES),
    *(("fleet", size) for size in ((20, 5), (150, 8))),
    *((view, SIZES[-1]) for view in VIEWS if view not in ("fleet", "worker")),
]


@pytest.mark.parametrize(
    ("view", "size"), SCREENS, ids=[f"{view}-{size[0]}x{size[1]}" for view, size in SCREENS]
)
def test_look(snap_compare, monkeypatch, view, size):
    """And every row fits."""
    if view == "monochrome":
        monkeypatch.setenv("NO_COLOR", "1")
    options = dict(VIEWS[view])
    keys = options.pop("keys", ())
    app = sample_fleet.dashboard(**options)

    async def prepare(pilot):
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        painted = rows(app)
        assert len(painted) == size[1]
        assert {cell_len(row) for row in painted} == {size[0]}
        assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for row in painted for c in row)
        ET.fromstring(app.export_screenshot())

    assert snap_compare(app, terminal_size=size, run_before=prepare)
