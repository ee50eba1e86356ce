"""The dashboard on snapshots, time, mouse and resizes."""

import random

import pytest
from msgspec.structs import replace
from textual.geometry import Region

from agentdash.model.states import Group
from agentdash.tui.app import AgentDash
from agentdash.tui.primitives.lines import Lines

from . import sample_fleet
from .rendering import screen_text
from .sample_fleet import SNAPSHOT


@pytest.fixture
async def pushed():
    """Provide an app with a full fleet, its pilot, and `push`, which returns when a snapshot is drawn."""
    feed = sample_fleet.Feed(SNAPSHOT)
    app = AgentDash(feed, sample_fleet.frozen())
    async with app.run_test(size=(120, 36)) as pilot:

        async def push(item):
            feed.queue.put_nowait(item)
            while feed.queue.qsize():
                await pilot.pause()
            await pilot.pause()

        await pilot.pause()
        yield app, pilot, push


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
    app, pilot, push = pushed
    painted.clear()
    await push(replace(SNAPSHOT, at=SNAPSHOT.at + 5))
    app.draw()
    await pilot.pause()
    assert painted == []


async def test_changed_row_is_repainted_alone(pushed, painted):
    app, _, push = pushed
    workers = list(SNAPSHOT.workers)
    workers[4] = replace(workers[4], assessment=replace(workers[4].assessment, since=sample_fleet.NOW - 20))
    painted.clear()
    await push(replace(SNAPSHOT, workers=tuple(workers)))
    index = next(number for number, row in enumerate(app.root.rows) if row.id == workers[4].id)
    top = app.root.fleet.top_of(index)
    assert [(name, region.y, region.height) for name, region in painted] == [("fleet", top, 1)]


async def test_removed_worker_is_not_replaced_on_its_open_screen(pushed):
    app, pilot, push = pushed
    await pilot.press("enter")
    await push(replace(SNAPSHOT, workers=SNAPSHOT.workers[4:]))
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
    app, _, push = pushed
    await push(item)
    assert message in screen_text(app)
    assert "api-worker" in screen_text(app)
    assert "\x1b" not in screen_text(app)


# ---------------------------------------------------------------- groups, and calm


async def test_until_a_key_is_pressed_the_most_urgent_worker_is_selected(pushed):
    app, pilot, push = pushed
    calm = tuple(
        replace(w, standing=Group.DONE if w.needs_you else w.standing, below=()) for w in SNAPSHOT.workers
    )
    await push(replace(SNAPSHOT, workers=calm))
    first = app.worker.name
    waiting = tuple(replace(w, standing=Group.NEEDS_YOU) if w.name == "deploy" else w for w in calm)
    await push(replace(SNAPSHOT, workers=waiting))
    assert first != app.worker.name == "deploy"
    await pilot.press("j")
    chosen = app.worker.name
    await push(SNAPSHOT)
    assert app.worker.name == chosen


@pytest.mark.parametrize("seed", range(2))
async def test_the_line_of_the_cursor_stays_while_workers_come_and_change(pushed, seed):
    app, pilot, push = pushed
    chance = random.Random(seed)
    await pilot.press(*"j" * chance.randint(1, 12))
    list_, chosen = app.root.fleet, app.selected_id
    line = list_.top_of(list_.cursor) - list_.scroll_offset.y
    workers = SNAPSHOT.workers
    for number in range(5):
        workers = tuple(replace(w, standing=chance.choice(list(Group)[:4])) for w in workers)
        parent = chance.choice([None, chance.choice(workers).id])
        new = replace(chance.choice(workers), id=f"new{number}", parent=parent, standing=Group.NEEDS_YOU)
        workers = (*workers, new)
        await push(replace(SNAPSHOT, workers=workers))
        await pilot.press("escape")
        assert app.selected_id == chosen
        assert list_.top_of(list_.cursor) - list_.scroll_offset.y == line
    assert {row.id for row in app.root.rows} == {worker.id for worker in workers}


async def test_past_workers_are_counted_below_one_head(pushed):
    app, pilot, push = pushed
    app.selected_id = SNAPSHOT.workers[5].id
    await push(replace(SNAPSHOT, workers=tuple(replace(w, standing=Group.PAST) for w in SNAPSHOT.workers)))
    for words in ("15 PAST  x shows them", "No worker is selected."):
        assert words in screen_text(app)
    assert app.root.rows == ()
    await pilot.press("x")
    assert len(app.root.rows) == 15
    assert app.selected_id == app.root.rows[0].id


# ---------------------------------------------------------------- looks


async def test_ascii_option_draws_ascii_only():
    workers = tuple(replace(w, notes=()) for w in SNAPSHOT.workers if w.name.isascii() and w.name != "claude")
    app = sample_fleet.dashboard(replace(SNAPSHOT, workers=workers), ascii=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        for key in ("", *"jj", "enter", *"lll", "enter", "escape", "escape", *"ww?", "?", "/"):
            await pilot.press(*filter(None, (key,)))
            await pilot.pause()
            text = screen_text(app)
            assert text.isascii(), (key, {c for c in text if not c.isascii()})
