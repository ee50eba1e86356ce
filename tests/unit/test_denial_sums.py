"""Denials over time."""

from __future__ import annotations

from agentdash.model.denials import LedgerEntry
from tests.unit.story import begun, polled, worker
from tests.unit.test_denial_ledger import DENIED, ran

DAY = 86_400.0


def entered(times: list[float]) -> LedgerEntry:
    """Return the entry of a command that was denied at these times."""
    calls = [event for at in times for event in ran(f"c{at}", "touch /srv/board/x", DENIED, 1, at=at)]
    (entry,) = worker(begun(), *calls, polled(times[-1] + 2)).sandbox.denials
    return entry


def test_each_denied_call_is_counted_on_its_day() -> None:
    times = [10 * DAY + 5, 10 * DAY + 80_000, 11 * DAY + 1, 13 * DAY - 1]
    entry = entered(times)
    assert entry.days == ((10, 2), (11, 1), (12, 1))
    assert entry.count == 4


def test_only_the_newest_days_are_kept() -> None:
    entry = entered([day * DAY + 1 for day in range(1, 71)])
    assert (len(entry.days), entry.days[-1], entry.count) == (60, (70, 1), 70)
