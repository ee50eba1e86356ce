"""The activity of the last ten minutes, and the time that workers waited."""

from __future__ import annotations

import random
from collections import Counter

from agentdash.model.activity import MAX_LEVEL, MINUTES, counted
from agentdash.model.fleet import StatePeriod
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Worker

NOW = 6_000_000.0


def test_counts_are_those_of_the_last_ten_minutes_in_any_order() -> None:
    chance = random.Random(7)
    for _ in range(50):
        times = [NOW - chance.random() * 1_200 for _ in range(chance.randrange(1, 200))]
        activity = None
        for at in times:
            activity = counted(activity, at)
        assert activity is not None
        newest = max(int(at // 60) for at in times)
        expected = Counter(int(at // 60) for at in times)
        assert activity.minute == newest
        in_order = None
        for at in sorted(times):
            in_order = counted(in_order, at)
        assert in_order is not None
        shown = [expected[newest - MINUTES + 1 + index] for index in range(MINUTES)]
        assert list(in_order.counts) == shown
        # an event that is late is counted in its minute, unless that is out of sight
        assert all(0 < got <= true or got == true for got, true in zip(activity.counts, shown, strict=True))


def test_levels_move_with_the_clock() -> None:
    activity = None
    for number in range(300):
        activity = counted(activity, NOW + number / 10)
    assert activity is not None
    assert activity.levels(NOW)[-1] == MAX_LEVEL
    assert activity.levels(NOW + 300)[-6] == MAX_LEVEL
    assert set(activity.levels(NOW + 900)) == {0}
    assert set(activity.levels(NOW - 900)) == {0}


def worker(*history: StatePeriod, state: State = State.WAITING_APPROVAL) -> Worker:
    return Worker(
        id="a",
        kind="pane",
        name="a",
        agent=Agent("codex"),
        assessment=Assessment(state, NOW, ""),
        history=history,
        last_activity=NOW - 50,
    )


def test_time_waited_is_that_of_questions_and_approvals() -> None:
    def period(since: float, until: float | None, *, waits: bool = True) -> StatePeriod:
        return StatePeriod(state="waiting-approval", since=since, why="", until=until, waits=waits)

    over = period(NOW - 500, NOW - 400)
    idle = period(NOW - 400, NOW - 100, waits=False)
    present = period(NOW - 100, None)
    assert worker(over, idle, present).waited(NOW - 1_000, NOW) == 200
    assert worker(over, idle, present).waited(NOW - 450, NOW) == 150
    # one that is gone waits no longer
    assert worker(over, present, state=State.EXITED).waited(NOW - 1_000, NOW) == 150
