"""The screen of all sandboxes: what differs, in words."""

import pytest
from msgspec.structs import replace

from agentdash.cli.attention import UserAttention
from agentdash.demo.play import demo_hub
from agentdash.model.causes import causes
from agentdash.tui.app import AgentDash, Options
from agentdash.tui.sandbox_screen import SandboxScreen, sandbox_rows
from agentdash.tui.worker.overview import remedies
from agentdash.tui.worker.screen import WorkerScreen
from tests import demo_day

from . import sample_fleet
from .rendering import rows, screen_text

MINUTE = demo_day.snapshots()[60]


def app_of(snapshot=MINUTE, **options):
    clock = sample_fleet.frozen()
    clock.set(paused=True, now=MINUTE.at)
    return AgentDash(sample_fleet.StaticFeed(snapshot), clock, options=Options(**options))


def row_of(name):
    return next(row for row in sandbox_rows(MINUTE.workers) if row.worker.name.startswith(name))


def test_what_workers_have_instead_in_words():
    actual = {
        name: row_of(name).actual
        for name in ("Compare", "Port", "Update", "Euclid", "Pasteur", "Publish the p", "Check", "Run the")
    }
    assert actual == {
        "Compare": "no sandbox, network",
        "Port": "ran outside %9 via tmux",
        "Update": "no network",
        "Euclid": "asked for: read only, no network",
        "Pasteur": 'flag says "no network", CODEX_SANDBOX=seatbelt',
        "Publish the p": "not observed",
        "Check": "as configured",
        "Run the": "denied /home/dev/board/kanban.db",
    }


def test_every_cause_is_in_a_row_with_words_at_every_second():
    seen = set()
    for snapshot in demo_day.snapshots():
        found = sandbox_rows(snapshot.workers)
        assert len(found) == len(snapshot.workers)
        for row in found:
            wrong = {finding.kind for finding in row.worker.sandbox.findings if finding.severity != "info"}
            assert wrong <= {finding.kind for cause in row.causes for finding in cause.findings}
            assert bool(row.causes) == bool(row.why)
            assert row.actual
            assert (row.actual == "as configured") <= (row.worker.sandbox.verdict == "match")
            seen |= wrong
        assert [bool(row.causes) for row in found] == sorted(
            (bool(row.causes) for row in found), reverse=True
        )
    assert len(seen) > 20


@pytest.mark.parametrize("size", [(20, 8), (45, 50), (80, 24), (120, 36), (150, 8)])
async def test_differences_only_then_all(size):
    app = app_of()
    async with app.run_test(size=size) as pilot:
        await pilot.press("m")
        await pilot.pause()
        assert isinstance(app.screen, SandboxScreen)
        differ = [row.worker.name for row in app.screen.sandboxes.rows]
        assert "Compare the two parsers" in differ
        assert "Check the links in the docs" not in differ
        assert f"SANDBOX  {len(differ)} differ" in screen_text(app) or size[0] < 45
        await pilot.press("x")
        await pilot.pause()
        assert app.screen.sandboxes.total == len(MINUTE.workers)
        await pilot.press("x", "escape")
        assert app.screen is app.root


async def test_the_row_under_the_cursor_has_both_sides_and_keys_act_on_it():
    app = app_of()
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("j", "m", "g")
        await pilot.pause()
        row = app.screen.sandboxes.row
        assert app.worker.id == row.worker.id
        while row.causes[0].worst.got not in " ".join(screen_text(app).split()):
            await pilot.pause(0.05)
        await pilot.press("Y", "j", "Y")
        assert app.worker.id != row.worker.id
        assert app.clipboard == remedies(app.worker)[0]
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, WorkerScreen)
        assert app.screen.panel.open_tab == "Evidence"
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, SandboxScreen)


async def test_the_cursor_stays_on_its_worker_when_rows_move():
    feed = sample_fleet.QueueFeed()
    app = AgentDash(feed, sample_fleet.frozen())
    async with app.run_test(size=(120, 36)) as pilot:
        feed.push(demo_day.snapshots()[26])
        await pilot.press("j")  # until the first key the most urgent worker is selected
        app.select_worker(next(w.id for w in MINUTE.workers if w.name.startswith("Compare")))
        await pilot.press("m")
        for second in range(30, 60, 6):
            feed.push(demo_day.snapshots()[second])
            await pilot.pause()
            await pilot.pause()
            assert app.screen.sandboxes.row.worker.name == app.worker.name == "Compare the two parsers"


async def test_ascii_and_empty():
    for snapshot, words in ((MINUTE, "differ"), (replace(MINUTE, workers=()), "No workers yet.")):
        app = app_of(snapshot, ascii=True)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.press("m", "j", "Y")
            await pilot.pause()
            assert words in screen_text(app)
            assert "\n".join(rows(app)).isascii()


async def test_a_known_problem_leaves_the_list_and_comes_back():
    hub, clock = demo_hub(at=60.0)
    app = AgentDash(hub, clock, attention=UserAttention(hub, clock))
    clock.set(paused=True)
    async with app.run_test(size=(120, 36)) as pilot:
        app.run_worker(hub.run())
        while not app.snapshot or not app.snapshot.counts()["mismatch"]:
            await pilot.pause(0.05)
        await pilot.press("m")
        await pilot.pause()
        name, total = app.worker.name, app.screen.sandboxes.total
        presses = sum(cause.worst.severity != "info" for cause in causes(app.worker))
        for _ in range(presses):
            await pilot.press("K")
        while app.screen.sandboxes.total != total - 1:
            await pilot.pause(0.05)
        assert "1 known" in screen_text(app)
        await pilot.press("x")
        app.select_worker(next(w.id for w in app.snapshot.workers if w.name == name))
        await pilot.pause()
        await pilot.press("K")
        while app.screen.heading.size and "known" in rows(app)[0]:
            await pilot.pause(0.05)
