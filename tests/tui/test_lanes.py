"""The lanes: states of all workers on one time axis."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentdash.model.fleet import StatePeriod
from agentdash.model.states import State
from agentdash.tui.app import AgentDash, Options
from agentdash.tui.lanes.model import ZOOMS_S, Axis, axis_line, lane, legend, length_of, states_per_cell
from agentdash.tui.lanes.screen import LanesScreen
from agentdash.tui.messages import WorkerOpened
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.theme import ASCII, UNICODE, Look
from tests import demo_day

from . import sample_fleet
from .rendering import screen_text

DEMO = demo_day.snapshots()[60]
NOW = DEMO.at
MINUTE = replace(DEMO, workers=tuple(each for each in DEMO.workers if each.history[0].since >= NOW - 60))
"""The workers that have begun since the demo began."""


def worker(*periods, **more):
    return replace(
        sample_fleet.BY_NAME["main"], history=tuple(StatePeriod(*each) for each in periods), **more
    )


def test_cells_have_the_state_of_their_time():
    axis = Axis(end=100.0, length=10.0, cells=10)
    shown = states_per_cell(worker(("running", 92.5, "", 96.0), ("waiting-approval", 96.0, "", None)), axis)
    assert shown[:2] == [None, None]
    assert set(shown[2:5]) == {State.RUNNING}
    assert set(shown[6:]) == {State.WAITING_APPROVAL}


def test_the_most_urgent_state_of_a_cell_is_shown():
    axis = Axis(end=100.0, length=100.0, cells=2)
    busy = worker(
        ("running", 0.0, "", 60.0), ("blocked-sandbox", 60.0, "", 61.0), ("completed", 61.0, "", None)
    )
    assert states_per_cell(busy, axis) == [State.RUNNING, State.BLOCKED_SANDBOX]


@given(
    st.lists(st.floats(0, 1_000), min_size=2, max_size=8, unique=True),
    st.integers(4, 200),
    st.sampled_from(ZOOMS_S),
)
def test_a_lane_has_the_width_of_its_axis_and_each_state_is_seen(times, cells, length):
    times.sort()
    states = ("running", "waiting-input", "completed", "exited")
    ends = [*times[1:], None]
    history = [(states[n % 4], at, "", end) for n, (at, end) in enumerate(zip(times, ends, strict=True))]
    axis = Axis(end=1_000.0, length=length, cells=cells)
    shown = states_per_cell(worker(*history), axis)
    assert width(lane(worker(*history), axis, UNICODE)) == len(shown) == cells
    assert shown[-1] is not None
    if times[-1] >= axis.begin:
        assert shown[axis.cell(times[-1])] is not None


def test_denials_are_marked_also_when_the_worker_got_past_them():
    build = next(w for w in MINUTE.workers if w.name.startswith("Build"))
    assert build.sandbox.denials
    axis = Axis(end=NOW, length=60.0, cells=60)
    shown = plain(lane(build, axis, UNICODE))
    assert "⊘" in shown
    assert shown.rstrip()[-1] == "╌"  # done since


def test_axis_has_round_times_and_now():
    for cells in (20, 40, 80, 150):
        for length in (60.0, *ZOOMS_S):
            line = plain(axis_line(Axis(NOW, length, cells), Look(NOW, UNICODE)))
            assert (len(line), line[-3:]) == (cells, "now")
    assert "┊20:00:30" in plain(axis_line(Axis(NOW, 60.0, 80), Look(NOW, UNICODE)))
    assert "┊19:30" in plain(axis_line(Axis(NOW, 3_600.0, 80), Look(NOW, UNICODE)))


def test_axis_is_as_short_as_what_is_known():
    assert length_of(600.0, MINUTE.workers, NOW) == 60.0
    old = [worker(("running", NOW - 5_000, "", None))]
    assert [length_of(zoom, old, NOW) for zoom in ZOOMS_S] == [600.0, 3_600.0, 86_400.0]
    assert length_of(600.0, [], NOW) == 5.0


def test_signs_are_ascii_where_wanted():
    axis = Axis(end=NOW, length=60.0, cells=60)
    for each in MINUTE.workers:
        assert plain(lane(each, axis, ASCII)).isascii()
    assert all(sign.isascii() for sign, _, _ in legend(ASCII))


class Watched(AgentDash):
    """Keeps the messages of opened workers."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.opened = []

    def worker_opened(self, event: WorkerOpened) -> None:
        self.opened.append((event.worker, event.at))
        super().worker_opened(event)


@pytest.mark.parametrize("size", [(45, 50), (80, 24), (100, 30), (120, 36), (200, 50), (150, 8)])
async def test_all_workers_have_a_lane(size):
    app = AgentDash(sample_fleet.StaticFeed(MINUTE), demo_clock())
    async with app.run_test(size=size) as pilot:
        await pilot.press("L")
        await pilot.pause()
        assert isinstance(app.screen, LanesScreen)
        text = screen_text(app)
        assert "now" in text
        assert "running" in text
        assert any(worker.name[:8] in text for worker in MINUTE.workers)


def demo_clock():
    clock = sample_fleet.frozen()
    clock.set(paused=True, now=NOW)
    return clock


async def test_cursor_tells_what_was_then_and_enter_goes_to_the_worker():
    app = AgentDash(sample_fleet.StaticFeed(MINUTE), demo_clock())
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("L", "g")
        await pilot.pause()
        name = MINUTE.workers[0].name
        assert app.worker.name == name
        await pilot.press(*["h"] * 30)
        await pilot.pause()
        assert "waiting approval for 36s" in screen_text(app)
        await pilot.press("j", "enter")
        await pilot.pause()
        assert app.screen is app.root
        assert app.worker.name == MINUTE.workers[1].name


async def test_zoom():
    app = AgentDash(sample_fleet.StaticFeed(MINUTE), demo_clock())
    async with app.run_test(size=(120, 36)) as pilot:
        aged = replace(
            MINUTE,
            workers=(replace(MINUTE.workers[0], history=(StatePeriod("running", NOW - 90_000, "x", None),)),),
        )
        app.take(aged)
        await pilot.press("L")
        await pilot.pause()
        shown = []
        for key in ("-", "-", "-", "+", "+", "+"):
            await pilot.press(key)
            await pilot.pause()
            shown.append(screen_text(app).splitlines()[1][:11].strip())
        assert shown == ["1 hour", "1 day", "1 day", "1 hour", "10 minutes", "10 minutes"]


async def test_ascii_lanes_are_ascii():
    app = AgentDash(sample_fleet.StaticFeed(MINUTE), demo_clock(), options=Options(ascii=True))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("L")
        await pilot.pause()
        assert "".join(screen_text(app).splitlines()[1:22]).isascii()
