"""What snapshots, clocks, mice and resizes do to the screen."""

import pytest
from msgspec.structs import replace
from textual.geometry import Region

from agentdash.tui.app import AgentDash, Options
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import plain
from agentdash.tui.worker.screen import WorkerScreen
from agentdash.tui.worker.why import WhyScreen

from . import sample_fleet


def screen_text(app):
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def make(*snapshots, clock=None, **options):
    return AgentDash(
        sample_fleet.StaticFeed(*snapshots), clock or sample_fleet.frozen(), options=Options(**options)
    )


@pytest.fixture
async def pushed():
    """An app whose snapshots the test pushes: app, pilot, and `push`, which returns when it has been taken."""
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
    """The regions that lines ask to be painted, by the id of the lines."""
    seen: list[tuple[str, Region]] = []
    refresh = Lines.refresh

    def spy(self, *regions, **how):
        seen.extend((self.id, region) for region in regions or (self.size.region,))
        return refresh(self, *regions, **how)

    monkeypatch.setattr(Lines, "refresh", spy)
    return seen


# ---------------------------------------------------------------- snapshots


async def test_before_the_first_snapshot_it_says_that_it_is_looking(pushed):
    app, _, push, _ = pushed
    assert "Looking for workers." in screen_text(app)
    await push(sample_fleet.full_fleet())
    assert "Looking" not in screen_text(app)
    assert "api-worker" in screen_text(app)


async def test_an_equal_snapshot_paints_nothing(pushed, painted):
    app, pilot, push, _ = pushed
    await push(sample_fleet.full_fleet())
    painted.clear()
    await push(replace(sample_fleet.full_fleet(), at=sample_fleet.NOW + 5))
    app.draw()
    await pilot.pause()
    assert painted == []


async def test_a_second_paints_only_what_it_changed(pushed, painted):
    app, pilot, push, clock = pushed
    await push(sample_fleet.full_fleet())
    painted.clear()
    clock.set(now=sample_fleet.NOW + 3_600.0)
    app.draw()
    await pilot.pause()
    painted.clear()
    clock.set(now=sample_fleet.NOW + 3_601.0)  # all ages are hours by now; but for the clock nothing changes
    app.draw()
    await pilot.pause()
    assert [name for name, _ in painted] == ["header"]
    assert painted[0][1].width <= len("20:14:07 ")


async def test_a_changed_row_is_painted_alone(pushed, painted):
    _, _, push, _ = pushed
    snapshot = sample_fleet.full_fleet()
    await push(snapshot)
    workers = list(snapshot.workers)
    workers[4] = replace(workers[4], last_activity=sample_fleet.NOW - 2_000)
    painted.clear()
    await push(replace(snapshot, workers=tuple(workers)))
    assert [(name, region.y, region.height) for name, region in painted] == [("fleet", 4, 1)]
    assert painted[0][1].width <= 6


async def test_the_cursor_stays_on_its_worker_when_rows_move(pushed):
    app, pilot, push, _ = pushed
    snapshot = sample_fleet.full_fleet()
    await push(snapshot)
    await pilot.press("a", "a", "a", "a")
    assert app.worker.name == "fix tests"
    before = app.root.fleet.cursor
    healed = tuple(
        replace(w, assessment=replace(w.assessment, state=sample_fleet.State.RUNNING))
        if w.name in ("fix tests", "api-worker")
        else w
        for w in snapshot.workers
    )
    await push(replace(snapshot, workers=healed))
    assert app.worker.name == "fix tests"
    assert app.root.fleet.cursor > before
    assert plain(app.root.fleet.line_at(app.root.fleet.cursor)).startswith("›▸ running           fix tests")
    await push(replace(snapshot, workers=tuple(w for w in healed if w.name != "fix tests")))
    assert app.worker is not None
    assert app.worker.name != "fix tests"


async def test_the_chosen_row_is_scrolled_into_sight(pushed):
    app, pilot, push, _ = pushed
    await push(sample_fleet.many(2_000))
    await pilot.press("G")
    list_ = app.root.fleet
    assert list_.scroll_offset.y == 2_000 - list_.size.height
    selected_id = app.selected_id
    moved = sample_fleet.many(2_000)
    last_first = (
        *(w for w in moved.workers if w.id == selected_id),
        *(replace(w, parent=None) for w in moved.workers if w.id != selected_id),
    )
    await push(replace(moved, workers=last_first))
    assert app.selected_id == selected_id
    assert list_.scroll_offset.y <= list_.cursor < list_.scroll_offset.y + list_.size.height


async def test_a_worker_that_goes_while_it_is_open_is_not_exchanged_for_another(pushed):
    app, pilot, push, _ = pushed
    snapshot = sample_fleet.full_fleet()
    await push(snapshot)
    await pilot.press("enter", "enter")
    await push(replace(snapshot, workers=snapshot.workers[4:]))
    assert "This worker is not listed any more." in screen_text(app)
    await pilot.press("escape")
    assert app.worker.name == "api-worker"


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (None, "The feed has ended"),
        (ValueError("torn [/b] \x1b]2;x\x07 line"), "ValueError: torn [/b]  line"),
    ],
)
async def test_a_feed_that_stops_says_so_and_what_was_seen_stays(pushed, item, says):
    app, _, push, _ = pushed
    await push(sample_fleet.full_fleet())
    await push(item)
    assert says in screen_text(app)
    assert "api-worker" in screen_text(app)
    assert "\x1b" not in screen_text(app)


@pytest.mark.parametrize("wanted", ["fix tests", "%7"])
async def test_it_starts_on_the_worker_asked_for(wanted):
    app = make(sample_fleet.full_fleet(), select=wanted)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.worker.name == "fix tests"


async def test_it_starts_on_the_worker_whose_id_begins_so():
    spike = next(w for w in sample_fleet.full_fleet().workers if w.name == "spike")
    app = make(sample_fleet.full_fleet(), select=spike.id[:12])
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.worker == spike


async def test_ages_grow_with_the_clock(pushed):
    app, _, push, clock = pushed
    await push(sample_fleet.full_fleet())
    clock.set(now=sample_fleet.NOW + 120)
    app.draw()
    row = next(i for i, row in enumerate(app.root.rows) if app._by_id[row.id].name == "api-worker")
    assert plain(app.root.fleet.line_at(row)).rstrip().endswith("2m")


# ---------------------------------------------------------------- mouse


async def test_a_click_chooses_a_row_and_a_second_one_opens_it(pushed):
    app, pilot, push, _ = pushed
    await push(sample_fleet.full_fleet())
    await pilot.click("#fleet", offset=(30, 6))
    assert app.worker.name == "fix tests"
    assert app.focused.id == "fleet"
    await pilot.click("#fleet", offset=(30, 4), times=2)
    assert app.worker.name == "api-worker"
    assert app.focused.id == "tab"


async def test_counts_tabs_and_hints_can_be_clicked(pushed):
    app, pilot, push, _ = pushed
    await push(sample_fleet.full_fleet())
    await pilot.click("#header", offset=(4, 0))
    assert app.root.filter.bucket == "needs-you"
    await pilot.click("#header", offset=(4, 0))
    assert not app.root.filter.active
    tabs = plain(app.screen.query_one("#tabs", Lines).line_at(0))
    await pilot.click("#tabs", offset=(tabs.index("Calls") + 1, 0))
    assert "[Calls]" in plain(app.screen.query_one("#tabs", Lines).line_at(0))
    await pilot.click(
        "#footer", offset=(plain(app.screen.query_one("#footer", Lines).line_at(0)).index("why"), 0)
    )
    assert isinstance(app.screen, WhyScreen)


async def test_a_finding_leads_to_its_worker(pushed):
    app, pilot, push, _ = pushed
    await push(sample_fleet.full_fleet())
    await pilot.press("shift+tab", "j", "j", "enter")
    assert app.worker.name == "fix tests"
    assert app.focused.id == "fleet"


# ---------------------------------------------------------------- sizes


def parts(app):
    names = ("titles", "fleet", "panel", "findings", "footer")
    return {name for name in names if app.root.query_one(f"#{name}").region.area}


@pytest.mark.parametrize(
    ("size", "shown", "item_height"),
    [
        ((45, 50), {"fleet", "footer"}, 2),
        ((150, 8), {"fleet"}, 1),
        ((80, 24), {"titles", "fleet", "findings", "footer"}, 1),
        ((100, 30), {"titles", "fleet", "panel", "findings", "footer"}, 1),
        ((120, 36), {"titles", "fleet", "panel", "findings", "footer"}, 1),
        ((200, 50), {"titles", "fleet", "panel", "findings", "footer"}, 1),
        ((29, 20), set(), 1),
        ((45, 7), {"fleet"}, 1),
    ],
)
async def test_what_is_shown_at_which_size_also_after_a_live_resize(size, shown, item_height):
    for start in (size, (120, 36), (45, 50)):
        app = make(sample_fleet.full_fleet())
        async with app.run_test(size=start) as pilot:
            await pilot.pause()
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert parts(app) == shown
            assert "! 6" in screen_text(app)
            if "fleet" in shown:
                assert app.root.fleet.item_height == item_height


async def test_a_strip_and_a_narrow_list_are_flat_and_worst_first():
    for size in ((150, 8), (45, 50)):
        app = make(sample_fleet.full_fleet())
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            assert [app._by_id[row.id].state for row in app.root.rows][:2] == [
                sample_fleet.State.WAITING_APPROVAL
            ] * 2
            assert app.root.rows[0].path == "main/Pasteur/"
            assert app.worker.name == "Pasteur the Younger"


async def test_focus_comes_back_to_the_list_when_what_had_it_is_hidden(pushed):
    app, pilot, push, _ = pushed
    await push(sample_fleet.full_fleet())
    await pilot.press("enter")
    await pilot.resize_terminal(45, 50)
    await pilot.pause()
    assert app.focused is app.root.fleet


async def test_a_message_shows_even_where_there_is_no_footer():
    app = make(sample_fleet.full_fleet())
    async with app.run_test(size=(150, 8)) as pilot:
        await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
        assert f"Copied {app.worker.id}" in screen_text(app)


async def test_a_pane_in_full_is_seen_from_its_last_line():
    screen = "\n".join(f"line {i}" for i in range(200))
    worker = replace(sample_fleet.full_fleet().workers[5], pane=sample_fleet.pane(7, screen), moments=())
    app = make(replace(sample_fleet.full_fleet(), workers=(worker,)))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        assert "line 199" in screen_text(app)
        assert isinstance(app.screen, type(app.root))
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, WorkerScreen)
        assert "line 199" in screen_text(app)


# ---------------------------------------------------------------- looks


async def test_in_ascii_every_sign_is_ascii():
    snapshot = sample_fleet.full_fleet()
    workers = tuple(replace(w, notes=()) for w in snapshot.workers if w.name.isascii() and w.name != "claude")
    app = make(replace(snapshot, workers=workers), ascii=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        for keys in (
            (),
            ("j", "j"),
            ("enter",),
            ("l",),
            ("l",),
            ("l",),
            ("enter",),
            ("escape", "escape", "w"),
            ("w", "?"),
            ("?", "f"),
            ("/",),
        ):
            await pilot.press(*keys)
            await pilot.pause()
            text = screen_text(app)
            assert text.isascii(), (keys, {c for c in text if not c.isascii()})


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast", "colour-blind", "terminal", "nord"])
async def test_every_theme_draws(theme):
    app = make(sample_fleet.full_fleet(), theme=theme)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        assert app.theme == theme
        assert "api-worker" in screen_text(app)


async def test_the_users_own_textual_theme_is_respected(monkeypatch):
    monkeypatch.setattr("textual.constants.DEFAULT_THEME", "gruvbox")
    assert make().theme == "gruvbox"
    assert make(theme="light").theme == "light"


async def test_whoever_tells_people_is_shown_every_snapshot():
    told = []
    snapshots = (sample_fleet.empty_fleet(), sample_fleet.full_fleet())
    async with AgentDash(
        sample_fleet.StaticFeed(*snapshots), sample_fleet.frozen(), on_snapshot=told.append
    ).run_test() as pilot:
        await pilot.pause()
        assert told == list(snapshots)
