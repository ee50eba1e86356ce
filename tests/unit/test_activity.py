"""The activity of the last ten minutes."""

from __future__ import annotations

import random
from collections import Counter

from agentdash.model.activity import MAX_LEVEL, MINUTES, count_event

NOW = 6_000_000.0


def test_counts_are_those_of_the_last_ten_minutes_in_any_order() -> None:
    chance = random.Random(7)
    for _ in range(50):
        times = [NOW - chance.random() * 1_200 for _ in range(chance.randrange(1, 200))]
        activity = None
        for at in times:
            activity = count_event(activity, at)
        assert activity is not None
        newest = max(int(at // 60) for at in times)
        expected = Counter(int(at // 60) for at in times)
        assert activity.minute == newest
        in_order = None
        for at in sorted(times):
            in_order = count_event(in_order, at)
        assert in_order is not None
        shown = [expected[newest - MINUTES + 1 + index] for index in range(MINUTES)]
        assert list(in_order.counts) == shown
        # an event that is late is counted in its minute, unless that is out of sight
        assert all(0 < got <= true or got == true for got, true in zip(activity.counts, shown, strict=True))


def test_levels_move_with_the_clock() -> None:
    activity = None
    for number in range(300):
        activity = count_event(activity, NOW + number / 10)
    assert activity is not None
    assert activity.levels(NOW)[-1] == MAX_LEVEL
    assert activity.levels(NOW + 300)[-6] == MAX_LEVEL
    assert set(activity.levels(NOW + 900)) == {0}
    assert set(activity.levels(NOW - 900)) == {0}
