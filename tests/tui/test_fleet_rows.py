"""The order of the fleet list: groups, families, folds, and places that are kept."""

import pytest
from msgspec.structs import replace

from agentdash.model.git import Repository
from agentdash.model.states import Group, State
from agentdash.model.thread import Tokens
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.tui.fleet.rows import GROUPINGS, HEADS, PINNED, SORTS, Order, arrange, keep_places, tell_apart

from .sample_fleet import BY_NAME, SNAPSHOT

GLYPHS = ("├ ", "└ ", "│ ")
WORKERS = SNAPSHOT.workers
DEFAULT = Order()


def names(rows):
    by_id = {worker.id: worker for worker in WORKERS}
    return [row.stem + by_id[row.id].name for row in rows]


def tree(workers, order=DEFAULT):
    return arrange(workers, order, GLYPHS)


def test_groups_have_families_together_most_urgent_first():
    rows = tree(WORKERS)
    shown = names(rows)
    assert shown[:4] == ["main", "├ Lagrange", "└ Pasteur", "  └ Pasteur the Younger"]
    heads = [row.head for row in rows]
    assert heads == sorted(heads, key=list(HEADS.values()).index)
    assert {row.head for row in rows if "Pasteur" in names([row])[0]} == {HEADS[Group.NEEDS_YOU]}
    assert [each for each in shown if each in ("docs", "old-run", "spike")] == ["docs", "spike", "old-run"]


def test_tree_lines_pass_grandchildren():
    main, lagrange, pasteur, younger = (
        BY_NAME[name] for name in ("main", "Lagrange", "Pasteur", "Pasteur the Younger")
    )
    younger = replace(younger, parent=lagrange.id)
    assert names(tree((main, lagrange, younger, pasteur))) == [
        "main", "├ Lagrange", "│ └ Pasteur the Younger", "└ Pasteur",
    ]  # fmt: skip


def test_cyclic_parents_terminate():
    a, b = replace(WORKERS[0], id="a", parent="b"), replace(WORKERS[1], id="b", parent="a")
    assert {row.id for row in tree((a, b))} == {"a", "b"}


def tokens(total):
    usage = ModelUsage("gpt-5.2-codex", TokenUsage(input=total))
    return Tokens(total=total, by_model=(usage,))


def test_every_sort_orders_the_families_of_a_group():
    usual = replace(BY_NAME["Lagrange"], parent=None)
    workers = [
        replace(usual, id=name, name=name, last_activity=float(number), tokens=tokens(number))
        for name, number in (("b", 1), ("a", 2))
    ]
    assert set(SORTS) == {"attention", "activity", "age", "tokens", "cost", "name"}
    for sort in set(SORTS) - {"attention", "age"}:
        assert [row.id for row in tree(workers, Order(sort=sort))] == ["a", "b"], sort


def test_kept_places_lose_and_gain_rows_and_move_none():
    old = tree(WORKERS)
    healed = tuple(
        replace(worker, assessment=replace(worker.assessment, state=State.RUNNING)) for worker in WORKERS
    )
    new = replace(BY_NAME["Lagrange"], id="new", parent=WORKERS[0].id)
    rows = keep_places(old, tree((*healed[:-1], new)))
    assert [row.id for row in rows] == [row.id for row in old if row.id != WORKERS[-1].id] + ["new"]
    assert [row.head for row in rows[:-1]] == [row.head for row in old if row.id != WORKERS[-1].id]
    assert (rows[-1].head, rows[-1].stem) == (HEADS[Group.RUNNING], "")


def test_equal_names_are_told_apart():
    one = replace(BY_NAME["docs"], cwd="/home/dev/shop")
    two = replace(one, id="x-two222", cwd="/home/dev/docs/")
    assert tell_apart((one, two, BY_NAME["spike"])) == {one.id: "shop", "x-two222": "docs"}
    same = replace(two, cwd=one.cwd)
    assert tell_apart((one, same)) == {one.id: one.id[-6:], "x-two222": "two222"}


def placed(workers, order):
    """Return the rows by their heads, each once."""
    by_id = {worker.id: worker for worker in workers}
    found: dict[str, list[str]] = {}
    for row in tree(workers, order):
        found.setdefault(" ".join((row.head.name, row.head.detail)).strip(), []).append(by_id[row.id].name)
    return found


def worker_at(name, cwd, **more):
    return replace(BY_NAME["docs"], id=name, name=name, parent=None, children=(), cwd=cwd, **more)


def test_by_project_worktrees_follow_their_repository_and_families_are_folded():
    shop, fix = Repository("/r/shop", "/r/shop/.git"), Repository("/w/fix", "/r/shop/.git", worktree="fix")
    workers = (
        worker_at("unplaced", None),
        worker_at("in fix", "/w/fix/src", git=fix),
        replace(worker_at("parent", "/r/shop", git=shop), children=("child",)),
        replace(worker_at("child", "/w/fix", git=fix), parent="parent"),
        worker_at("past", "/w/fix/src", standing=Group.PAST),
        worker_at("bare", "/w/bare", git=Repository("/w/bare", "/r/api.git", worktree="bare")),
        worker_at("no repository", "/r/notes/"),
        worker_at("there", "/r/shop", host="build", git=Repository("/r/shop")),
    )
    order = Order(groups="project", shows_past=True, sort="name")
    assert list(placed(workers, order).items()) == [
        ("api.git worktree bare", ["bare"]),
        ("notes /r/notes/", ["no repository"]),
        ("shop /r/shop", ["parent"]),
        ("shop worktree fix", ["in fix", "past"]),
        ("shop build:/r/shop", ["there"]),
        ("no directory", ["unplaced"]),
    ]
    unfolded = placed(workers, order._replace(unfolded=frozenset(("parent",))))
    assert unfolded["shop /r/shop"] == ["parent", "child"]
    assert placed(workers, order._replace(shows_past=False))["shop worktree fix"] == ["in fix"]


@pytest.mark.parametrize("groups", GROUPINGS)
def test_pinned_families_keep_their_place_above_all_groups(groups):
    pinned = [worker_at(name, "/r", pinned=True) for name in ("b", "a")]
    others = [worker_at("c", "/r"), worker_at("d", "/q")]
    for state in (State.RUNNING, State.WAITING_APPROVAL, State.EXITED):
        changed = replace(pinned[0], assessment=replace(pinned[0].assessment, state=state))
        for standing in (None, Group.PAST):
            rows = tree((*others, replace(changed, standing=standing), pinned[1]), Order(groups=groups))
            assert [row.id for row in rows[:2]] == ["a", "b"]
            assert [row.head == PINNED for row in rows] == [True, True, False, False]
