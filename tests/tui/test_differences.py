"""The list of sandbox problems: what is configured, and what workers have instead, in words."""

import pytest
from msgspec.structs import replace

from agentdash.cli.attention import UserAttention
from agentdash.demo.day import demo_hub
from agentdash.model.causes import causes
from agentdash.tui.app import AgentDash, Options
from agentdash.tui.fleet.cells import actual_words
from agentdash.tui.worker.overview import remedies
from tests import demo_day

from . import sample_fleet
from .rendering import rows, screen_text

MINUTE = demo_day.snapshots()[60]


def app_of(snapshot=MINUTE, **options):
    clock = sample_fleet.frozen()
    clock.set(paused=True, now=MINUTE.at)
    return AgentDash(sample_fleet.StaticFeed(snapshot), clock, options=Options(**options))


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


@pytest.mark.parametrize(("size", "is_ascii"), [((20, 8), True), ((45, 50), False), ((120, 36), True)])
async def test_problems_only_then_all(size, is_ascii):
    app = app_of(ascii=is_ascii)
    async with app.run_test(size=size) as pilot:
        await pilot.press("m")
        await pilot.pause()
        shown = [app._by_id[row.id] for row in app.root.rows]
        assert {worker.id for worker in shown} == {worker.id for worker in MINUTE.workers if worker.mismatch}
        assert f"Sandbox problems  {len(shown)} of" in screen_text(app) or size[0] < 45
        assert "no sandbox, network" in screen_text(app) or size[0] < 45
        assert not is_ascii or "\n".join(rows(app)).isascii()
        await pilot.press("Y", "m")
        await pilot.pause()
        assert len(app.root.rows) > len(shown)
        assert app.clipboard == remedies(app.worker)[0]


async def test_without_problems_the_key_says_so():
    app = app_of(replace(MINUTE, workers=()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("m")
        await pilot.pause()
        assert "No sandbox differs" in screen_text(app)


async def test_a_known_problem_leaves_the_list_and_comes_back():
    hub, clock = demo_hub(at=60.0)
    app = AgentDash(hub, clock, attention=UserAttention(hub, clock))
    clock.set(paused=True)
    async with app.run_test(size=(120, 36)) as pilot:
        app.run_worker(hub.run())
        while not app.snapshot or not app.snapshot.counts()["mismatch"]:
            await pilot.pause(0.05)
        await pilot.press("m", "home")
        await pilot.pause()
        chosen, total = app.worker, len(app.root.rows)
        for _ in range(sum(cause.worst.severity != "info" for cause in causes(chosen))):
            await pilot.press("K")
        while len(app.root.rows) != total - 1:
            await pilot.pause(0.05)
        app.select_worker(chosen.id)
        await pilot.pause()
        await pilot.press("K", "m")
        while len(app.root.rows) != total:
            await pilot.pause(0.05)
