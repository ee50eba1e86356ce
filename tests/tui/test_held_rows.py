"""Rows keep their places while they are held."""

import pytest
from msgspec.structs import replace

from agentdash.model.states import Group
from agentdash.tui.fleet.filter import Filter
from agentdash.tui.fleet.held_rows import HeldRows
from agentdash.tui.fleet.rows import Order
from agentdash.tui.theme import UNICODE

from .sample_fleet import SNAPSHOT

PAST_TOO = Order(shows_past=True)


def ids(held):
    return [row.id for row in held.rows]


def with_other_groups(number):
    workers = (
        replace(worker, standing=list(Group)[(index + number) % len(Group)])
        for index, worker in enumerate(SNAPSHOT.workers)
    )
    return replace(SNAPSHOT, workers=tuple(workers))


@pytest.fixture
def held():
    rows = HeldRows(UNICODE)
    rows.update(SNAPSHOT, Filter(), PAST_TOO)
    return rows


def test_held_rows_stay_and_move_when_released(held):
    before, moved = ids(held), with_other_groups(1)
    held.update(moved, Filter(), PAST_TOO, is_held=True)
    assert (ids(held), held.is_kept) == (before, True)
    held.update(moved, Filter(), PAST_TOO)
    fresh = HeldRows(UNICODE)
    fresh.update(moved, Filter(), PAST_TOO)
    assert ids(held) == ids(fresh) != before
    assert not held.is_kept


def test_rows_of_the_same_places_are_not_computed_again(held):
    rows = held.rows
    held.update(replace(SNAPSHOT), Filter(), PAST_TOO)
    assert held.rows is rows


@pytest.mark.parametrize(
    ("chosen", "order"), [(Filter(text="api"), PAST_TOO), (Filter(), PAST_TOO._replace(sort="name"))]
)
def test_another_filter_or_order_moves_held_rows_too(held, chosen, order):
    before = ids(held)
    held.update(SNAPSHOT, chosen, order, is_held=True)
    assert ids(held) != before
    assert not held.is_kept


def test_a_worker_that_has_gone_leaves_the_held_rows_and_a_new_one_moves_none(held):
    before = ids(held)
    gone, *others = SNAPSHOT.workers
    new = replace(others[-1], id="new", name="new", parent=None, children=(), standing=Group.NEEDS_YOU)
    held.update(
        replace(SNAPSHOT, workers=(*others, new)), Filter(), PAST_TOO, selected_id=before[-1], is_held=True
    )
    kept = ids(held)
    assert "new" in kept
    assert [id_ for id_ in kept if id_ != "new"] == [id_ for id_ in before if id_ != gone.id]
