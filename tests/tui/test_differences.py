"""The list of sandbox problems: what is configured, and what workers have instead, in words."""

import pytest

from agentdash.tui.fleet.cells import actual_words
from agentdash.tui.worker.overview import remedies
from tests import demo_day

from . import sample_fleet
from .rendering import screen_text

MINUTE = demo_day.snapshots()[60]


def test_what_workers_have_instead_in_words():
    expected = {
        "Compare": "no sandbox, network",
        "Port": "tmux outside %9",
        "Update": "no network",
        "Euclid": "asked for: read only, no network",
        "Pasteur": "network flag 1 (network off), CODEX_SANDBOX seatbelt",
        "Check": "",
        "Run the": "denied /home/dev/board/kanban.db",
    }
    for name, words in expected.items():
        worker = next(worker for worker in MINUTE.workers if worker.name.startswith(name))
        assert actual_words(worker) == words


def test_every_problem_has_words_at_every_second():
    for snapshot in demo_day.snapshots():
        for worker in snapshot.workers:
            assert bool(actual_words(worker)) == bool(worker.sandbox.findings)


@pytest.mark.parametrize("size", [(20, 8), (45, 50), (120, 36)])
async def test_problems_only_then_all(size):
    app = sample_fleet.dashboard(MINUTE)
    async with app.run_test(size=size) as pilot:
        await pilot.press("m")
        await pilot.pause()
        shown = [app._by_id[row.id] for row in app.root.rows]
        assert {worker.id for worker in shown} == {worker.id for worker in MINUTE.workers if worker.mismatch}
        assert f"Sandbox problems  {len(shown)} of" in screen_text(app) or size[0] < 45
        assert "no sandbox, network" in screen_text(app) or size[0] < 45
        await pilot.press("Y", "m")
        await pilot.pause()
        assert len(app.root.rows) > len(shown)
        assert app.clipboard == remedies(app.worker)[0]
