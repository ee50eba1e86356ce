"""The dashboard on snapshots, time, mouse and resizes."""

import random

import pytest
from msgspec.structs import replace
from textual.geometry import Region

from agentdash.model.states import Group
from agentdash.tui.app import AgentDash, Options
from agentdash.tui.primitives.lines import Lines

from . import sample_fleet
from .rendering import screen_text


def make(*snapshots, clock=None, **options):
    return AgentDash(
        sample_fleet.StaticFeed(*snapshots), clock or sample_fleet.frozen(), options=Options(**options)
    )


@pytest.fixture
async def pushed():
    """Provide an app, its pilot, `push` (returns when the snapshot is drawn), and its clock."""
    feed = sample_fleet.QueueFeed()
    clock = sample_fleet.frozen()
    app = AgentDash(feed, clock)
    async with app.run_test(size=(120, 36)) as pilot:

        async def push(item):
            feed.push(item)
            while feed.queue.qsize():
                await pilot.pause()
            await pilot.pause()

        yield app, pilot, push, clock


@pytest.fixture
def painted(monkeypatch):
    """Provide the repainted regions with the id of their widget."""
    seen: list[tuple[str, Region]] = []
    refresh = Lines.refresh

    def spy(self, *regions, **how):
        seen.extend((self.id, region) for region in regions or (self.size.region,))
        return refresh(self, *regions, **how)

    monkeypatch.setattr(Lines, "refresh", spy)
    return seen


# ---------------------------------------------------------------- snapshots


async def test_equal_snapshot_repaints_nothing(pushed, painted):
    app, pilot, push, _ = pushed
    await push(sample_fleet.full_fleet())
    painted.clear()
    await push(replace(sample_fleet.full_fleet(), at=sample_fleet.NOW + 5))
    app.draw()
    await pilot.pause()
    assert painted == []


async def test_changed_row_is_repainted_alone(pushed, painted):
    app, _, push, _ = pushed
    snapshot = sample_fleet.full_fleet()
    await push(snapshot)
    workers = list(snapshot.workers)
    workers[4] = replace(workers[4], assessment=replace(workers[4].assessment, since=sample_fleet.NOW - 20))
    painted.clear()
    await push(replace(snapshot, workers=tuple(workers)))
    assert [(name, region.y, region.height) for name, region in painted] == [
        ("fleet", row_of(app, workers[4].name), 1)
    ]


async def test_removed_worker_is_not_replaced_on_its_open_screen(pushed):
    app, pilot, push, _ = pushed
    snapshot = sample_fleet.full_fleet()
    await push(snapshot)
    await pilot.press("enter")
    await push(replace(snapshot, workers=snapshot.workers[4:]))
    assert "This worker is no longer listed." in screen_text(app)
    await pilot.press("escape")
    assert app.worker.name == "api-worker"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (None, "The feed has ended"),
        (ValueError("torn [/b] \x1b]2;x\x07 line"), "ValueError: torn [/b]  line"),
    ],
)
async def test_ended_feed_shows_a_message_and_keeps_the_snapshot(pushed, item, message):
    app, _, push, _ = pushed
    await push(sample_fleet.full_fleet())
    await push(item)
    assert message in screen_text(app)
    assert "api-worker" in screen_text(app)
    assert "\x1b" not in screen_text(app)


# ---------------------------------------------------------------- sizes


def row_of(app, name):
    """Return the first line of a worker in the list."""
    index = next(i for i, row in enumerate(app.root.rows) if app._by_id[row.id].name == name)
    return app.root.fleet.top_of(index)


def parts(app):
    names = ("titles", "fleet", "panel", "footer")
    return {name for name in names if app.root.query_one(f"#{name}").region.area}


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ((45, 50), {"fleet", "panel", "footer"}),
        ((150, 8), {"fleet", "footer"}),
        ((80, 24), {"titles", "fleet", "footer"}),
        ((120, 36), {"titles", "fleet", "panel", "footer"}),
        ((20, 5), {"fleet", "footer"}),
    ],
)
async def test_parts_shown_by_size_also_after_resize(size, shown):
    for start in (size, (120, 36)):
        app = make(sample_fleet.full_fleet())
        async with app.run_test(size=start) as pilot:
            await pilot.pause()
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert parts(app) == shown
            assert "6 need y" in screen_text(app)


# ---------------------------------------------------------------- groups, and calm


async def test_until_a_key_is_pressed_the_most_urgent_worker_is_selected(pushed):
    app, pilot, push, _ = pushed
    snapshot = sample_fleet.full_fleet()
    calm = tuple(
        replace(w, standing=Group.DONE if w.needs_you else w.standing, below=()) for w in snapshot.workers
    )
    await push(replace(snapshot, workers=calm))
    first = app.worker.name
    waiting = tuple(replace(w, standing=Group.NEEDS_YOU) if w.name == "deploy" else w for w in calm)
    await push(replace(snapshot, workers=waiting))
    assert first != app.worker.name == "deploy"
    await pilot.press("j")
    chosen = app.worker.name
    await push(snapshot)
    assert app.worker.name == chosen


@pytest.mark.parametrize("seed", range(2))
async def test_the_line_of_the_cursor_stays_while_workers_come_and_change(pushed, seed):
    app, pilot, push, _ = pushed
    chance = random.Random(seed)
    snapshot = sample_fleet.full_fleet()
    await push(snapshot)
    await pilot.press(*"j" * chance.randint(1, 12))
    list_, chosen = app.root.fleet, app.selected_id
    line = list_.top_of(list_.cursor) - list_.scroll_offset.y
    workers = snapshot.workers
    for number in range(5):
        workers = tuple(replace(w, standing=chance.choice(list(Group)[:4])) for w in workers)
        parent = chance.choice([None, chance.choice(workers).id])
        new = replace(chance.choice(workers), id=f"new{number}", parent=parent, standing=Group.NEEDS_YOU)
        workers = (*workers, new)
        await push(replace(snapshot, workers=workers))
        await pilot.press("escape")
        assert app.selected_id == chosen
        assert list_.top_of(list_.cursor) - list_.scroll_offset.y == line
    assert {row.id for row in app.root.rows} == {worker.id for worker in workers}


async def test_past_workers_are_counted_below_one_head(pushed):
    app, pilot, push, _ = pushed
    snapshot = sample_fleet.full_fleet()
    await push(snapshot)
    app.selected_id = snapshot.workers[5].id
    past = tuple(replace(w, standing=Group.PAST) for w in snapshot.workers)
    await push(replace(snapshot, workers=past))
    assert "15 PAST  x shows them" in screen_text(app)
    assert app.root.rows == ()
    await pilot.press("x")
    assert len(app.root.rows) == 15
    assert app.selected_id == app.root.rows[0].id


# ---------------------------------------------------------------- looks


async def test_ascii_option_draws_ascii_only():
    snapshot = sample_fleet.full_fleet()
    workers = tuple(replace(w, notes=()) for w in snapshot.workers if w.name.isascii() and w.name != "claude")
    app = make(replace(snapshot, workers=workers), ascii=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        for key in ("", *"jj", "enter", *"lll", "enter", "escape", "escape", *"ww?", "?", "/"):
            await pilot.press(*filter(None, (key,)))
            await pilot.pause()
            text = screen_text(app)
            assert text.isascii(), (key, {c for c in text if not c.isascii()})
