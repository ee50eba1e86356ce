"""The order of the fleet list: groups, families, folds, and places that are kept."""

import random

import pytest
from msgspec.structs import replace

from agentdash.model.states import Group, State
from agentdash.model.thread import Tokens
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.tui.fleet.rows import SORTS, Order, arrange, kept_in_place, same_places, tell_apart

from . import sample_fleet
from .sample_fleet import BY_NAME, SNAPSHOT

GLYPHS = ("├ ", "└ ", "│ ")
WORKERS = SNAPSHOT.workers
FLAT = Order(is_flat=True)
DEFAULT = Order()


def names(rows):
    by_id = {worker.id: worker for worker in WORKERS}
    return [row.stem + row.path + by_id[row.id].name for row in rows]


def tree(workers, every=WORKERS, order=DEFAULT):
    return arrange(workers, every, order, GLYPHS)


def test_groups_have_families_together_most_urgent_first():
    rows = tree(WORKERS)
    shown = names(rows)
    assert shown[:4] == ["main", "├ Lagrange", "└ Pasteur", "  └ Pasteur the Younger"]
    groups = [row.group for row in rows]
    assert groups == sorted(groups, key=list(Group).index)
    assert {row.group for row in rows if "Pasteur" in names([row])[0]} == {Group.NEEDS_YOU}
    assert [each for each in shown if each in ("docs", "old-run", "spike")] == ["docs", "spike", "old-run"]


def test_tree_lines_pass_grandchildren():
    main, lagrange, pasteur, younger = (
        BY_NAME[name] for name in ("main", "Lagrange", "Pasteur", "Pasteur the Younger")
    )
    younger = replace(younger, parent=lagrange.id)
    assert names(tree((main, lagrange, younger, pasteur), WORKERS[:4])) == [
        "main", "├ Lagrange", "│ └ Pasteur the Younger", "└ Pasteur",
    ]  # fmt: skip


def test_worker_with_hidden_parent_shows_its_path():
    kept = [BY_NAME["main"], BY_NAME["Pasteur the Younger"], BY_NAME["Lagrange"]]
    assert names(tree(kept)) == ["main/Pasteur/Pasteur the Younger", "main", "└ Lagrange"]


def test_flat_list_is_ordered_by_urgency_with_paths():
    shown = names(tree(WORKERS, order=FLAT))
    assert shown[:2] == ["main/Pasteur/Pasteur the Younger", "api-worker"] or shown[:2] == [
        "api-worker",
        "main/Pasteur/Pasteur the Younger",
    ]
    assert [BY_NAME[name.rpartition("/")[2]].needs_you for name in shown[:6]] == [True] * 6


def test_cyclic_parents_terminate():
    a, b = replace(WORKERS[0], id="a", parent="b"), replace(WORKERS[1], id="b", parent="a")
    for order in (FLAT, Order()):
        assert {row.id for row in tree((a, b), (a, b), order)} == {"a", "b"}


def test_same_places_detects_changes_that_move_rows():
    snapshot = sample_fleet.full_fleet()
    assert same_places(snapshot.workers, sample_fleet.changed(snapshot, 1, "busy").workers, "attention")
    first = snapshot.workers[0]
    for change in (
        {"name": "other"},
        {"assessment": replace(first.assessment, state=State.EXITED)},
        {"parent": "x"},
        {"standing": Group.PAST},
        {"cwd": "/elsewhere"},
    ):
        workers = (replace(first, **change), *snapshot.workers[1:])
        assert not same_places(snapshot.workers, workers, "attention")
    busier = (replace(first, last_activity=1.0), *snapshot.workers[1:])
    assert same_places(snapshot.workers, busier, "attention")
    assert not same_places(snapshot.workers, busier, "activity")
    assert not same_places(snapshot.workers, snapshot.workers[1:], "attention")


def test_old_mismatches_of_finished_workers_are_below_running_ones():
    done = replace(BY_NAME["docs"], sandbox=BY_NAME["Pasteur"].sandbox)
    running = replace(BY_NAME["Lagrange"], parent=None)
    assert done.mismatch
    assert [row.id for row in tree((done, running), ())] == [running.id, done.id]


def test_past_families_are_folded():
    past = replace(BY_NAME["docs"], standing=Group.PAST)
    workers = (past, BY_NAME["spike"])
    assert [row.id for row in tree(workers)] == [BY_NAME["spike"].id]
    shown = tree(workers, order=Order(shows_past=True))
    assert [(row.id, row.group) for row in shown] == [
        (BY_NAME["spike"].id, Group.DONE),
        (past.id, Group.PAST),
    ]


def test_a_folded_family_counts_its_members():
    main = BY_NAME["main"]
    rows = tree(WORKERS, order=Order(folded=frozenset([main.id])))
    row = next(row for row in rows if row.id == main.id)
    assert (row.folded, row.group) == (3, Group.NEEDS_YOU)
    assert not [name for name in names(rows) if "Pasteur" in name]


def tokens(total):
    usage = ModelUsage("gpt-5.2-codex", TokenUsage(input=total))
    return Tokens(total=total, by_model=(usage,))


def test_every_sort_orders_the_families_of_a_group():
    first, second = (
        replace(BY_NAME["Lagrange"], parent=None, id=name, name=name, **more)
        for name, more in (
            ("b", {"last_activity": 1.0, "tokens": tokens(1)}),
            ("a", {"last_activity": 2.0, "tokens": tokens(2)}),
        )
    )
    found = {
        sort: [row.id for row in tree((first, second), (), Order(sort=sort))]
        for sort in SORTS
        if sort in ("activity", "tokens", "cost", "name")
    }
    assert found == {sort: ["a", "b"] for sort in ("activity", "tokens", "cost", "name")}
    assert set(SORTS) == {"attention", "activity", "age", "tokens", "cost", "name"}


def test_kept_places_lose_and_gain_rows_and_move_none():
    old = tree(WORKERS)
    healed = tuple(
        replace(worker, assessment=replace(worker.assessment, state=State.RUNNING)) for worker in WORKERS
    )
    new = replace(BY_NAME["Lagrange"], id="new", parent=None)
    workers = (*healed[:-1], new)
    rows = kept_in_place(old, tree(workers, ()), {worker.id: worker for worker in workers}, None)
    ids = [row.id for row in rows]
    assert [each for each in ids if each != "new"] == [row.id for row in old if row.id != WORKERS[-1].id]
    assert rows[ids.index("new")].group is Group.RUNNING


def random_fleet(chance, count):
    """Return workers in families, parents before their children, in random groups."""
    workers = []
    for number in range(count):
        parent = chance.choice([None, *(worker.id for worker in workers[-4:])])
        changes = {"id": f"w{number}", "name": chance.choice(["api", "docs", f"w{number}"]), "parent": parent}
        workers.append(replace(BY_NAME["docs"], **changes, standing=chance.choice(list(Group)[:4])))
    return workers


def changed_fleet(chance, workers):
    """Return the fleet a moment later: other groups, some workers gone, children of any worker come."""
    later = [
        replace(worker, standing=chance.choice(list(Group)[:4]))
        for worker in workers
        if chance.random() > 0.1
    ]
    for number in range(chance.randint(0, 4)):
        parent = chance.choice([None, *(worker.id for worker in later)])
        new = {
            "id": f"new{number}-{chance.random()}",
            "parent": parent,
            "standing": chance.choice(list(Group)[:4]),
        }
        later.append(replace(BY_NAME["spike"], **new))
    return sorted(later, key=lambda worker: depth(worker, later))


def depth(worker, workers):
    above = next((other for other in workers if other.id == worker.parent), None)
    return 0 if above is None else 1 + depth(above, workers)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_moves_under_the_cursor_and_each_child_stands_below_its_parent(seed):
    chance = random.Random(seed)
    workers = random_fleet(chance, 12)
    rows = tree(workers, workers)
    cursor = chance.choice(rows).id
    for _ in range(6):
        workers = changed_fleet(chance, workers)
        by_id = {worker.id: worker for worker in workers}
        kept = kept_in_place(rows, tree(workers, workers), by_id, cursor)
        assert {row.id for row in kept} == set(by_id)
        survivors = [row.id for row in rows if row.id in by_id]
        assert [row.id for row in kept if row.id in survivors] == survivors
        if cursor in by_id:
            above = survivors.index(cursor)
            assert [row.id for row in kept].index(cursor) == above
        else:
            cursor = chance.choice(kept).id
        for index, row in enumerate(kept):
            if row.stem:
                parent = next(each for each in kept[index::-1] if len(each.stem) < len(row.stem))
                assert by_id[row.id].parent == parent.id
            elif by_id[row.id].parent in by_id:
                assert row.path.endswith(f"{by_id[by_id[row.id].parent].name}/")
        rows = kept


def test_equal_names_are_told_apart():
    one = replace(BY_NAME["docs"], cwd="/home/dev/shop")
    two = replace(one, id="x-two222", cwd="/home/dev/docs/")
    assert tell_apart((one, two, BY_NAME["spike"])) == {one.id: "shop", "x-two222": "docs"}
    same = replace(two, cwd=one.cwd)
    assert tell_apart((one, same)) == {one.id: one.id[-6:], "x-two222": "two222"}
