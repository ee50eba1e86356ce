"""The first minute of `agentdash demo` shows every state and every kind of finding."""

from __future__ import annotations

import pytest

from agentdash.demo.day import demo_events
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.findings import FindingKind
from agentdash.model.fleet import Fleet
from agentdash.model.states import State


@pytest.fixture(scope="module")
def minute() -> tuple[set[str], set[str]]:
    """Return all states and finding kinds of the first minute, sampled twice a second."""
    start, unordered = demo_events()
    events = sorted(unordered, key=lambda event: event.at)
    fleet, states, kinds, reduced = Fleet(), set(), set(), 0
    for half in range(121):
        at = start + half / 2
        due = next((n for n in range(reduced, len(events)) if events[n].at > at), len(events))
        fleet, reduced = reduce(fleet, events[reduced:due]), due
        for worker in build_snapshot(fleet, at).workers:
            states.add(str(worker.state))
            kinds |= {finding.kind for finding in worker.sandbox.findings}
    return states, kinds


def test_every_state_is_shown(minute: tuple[set[str], set[str]]) -> None:
    assert minute[0] == {str(state) for state in State}


def test_every_finding_kind_is_shown(minute: tuple[set[str], set[str]]) -> None:
    assert minute[1] == set(FindingKind)
