"""Who is shown, and in which order."""

import pytest
from msgspec.structs import replace

from agentdash.model.states import State, bucket
from agentdash.tui.fleet.filter import BUCKETS, Filter, matches
from agentdash.tui.fleet.rows import flat, same_places, tree, urgency

from . import fleet

GLYPHS = ("├ ", "└ ", "│ ")
WORKERS = fleet.full_fleet().workers
BY_NAME = {worker.name: worker for worker in WORKERS}


def names(rows):
    by_id = {worker.id: worker for worker in WORKERS}
    return [row.stem + row.path + by_id[row.id].name for row in rows]


def test_every_state_can_be_filtered_for():
    assert WORKERS
    for worker in WORKERS:
        shown_in = {name for name in BUCKETS if Filter(name).accepts(worker)} - {"all", "mismatch"}
        assert shown_in == ({bucket(worker.state)} if worker.state is not State.UNKNOWN else set())


def test_the_buckets_go_round():
    chosen, seen = Filter(text="x"), []
    for _ in BUCKETS:
        seen.append(chosen.bucket)
        chosen = chosen.cycled()
    assert (tuple(seen), chosen) == (BUCKETS, Filter(text="x"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pasteur", {"Pasteur", "Pasteur the Younger"}),
        ("WAITING approval", {"Pasteur the Younger", "api-worker"}),
        ("opencode 1.0.150", {"fix tests"}),
        ("%4 codex", {"api-worker"}),
        ("stale-network-flag /home", {"Pasteur"}),
        ("custom net~", {"データベース移行の調査"}),
        ("mismatch deploy", {"deploy"}),
        ("移行", {"データベース移行の調査"}),
        ("no such thing", set()),
    ],
)
def test_words_are_looked_for_in_all_columns(text, found):
    assert {worker.name for worker in WORKERS if matches(worker, text)} == found
    assert {worker.name for worker in WORKERS if matches(worker, "!" + text)} == set(BY_NAME) - found


@pytest.mark.parametrize("text", ["", "!", " ", "! "])
def test_nothing_asked_holds_nothing_back(text):
    assert all(matches(worker, text) for worker in WORKERS)
    assert not Filter(text=text).active


def test_markup_in_a_filter_is_just_text():
    assert {worker.name for worker in WORKERS if matches(worker, "[/oops]")} == {fleet.HOSTILE}


def test_the_tree_keeps_families_and_puts_the_worst_first():
    shown = names(tree(WORKERS, WORKERS, GLYPHS))
    assert shown[:4] == ["main", "├ Lagrange", "└ Pasteur", "  └ Pasteur the Younger"]
    assert shown[4:10] == ["api-worker", "claude", "fix tests", "deploy", "gemini", fleet.HOSTILE]
    assert shown[10:] == ["nightly", "docs", "データベース移行の調査", "spike", "old-run"]


def test_lines_of_the_tree_go_past_grandchildren():
    main, lagrange, pasteur, younger = WORKERS[:4]
    younger = replace(younger, parent=lagrange.id)
    assert names(tree((main, lagrange, younger, pasteur), WORKERS[:4], GLYPHS)) == [
        "main", "├ Lagrange", "│ └ Pasteur the Younger", "└ Pasteur",
    ]  # fmt: skip


def test_whose_parent_is_hidden_says_whose_child_it_is():
    kept = [BY_NAME["main"], BY_NAME["Pasteur the Younger"], BY_NAME["Lagrange"]]
    assert names(tree(kept, WORKERS, GLYPHS)) == ["main/Pasteur/Pasteur the Younger", "main", "└ Lagrange"]


def test_flat_lists_come_worst_first_and_name_the_parents():
    shown = flat(WORKERS, WORKERS)
    by_id = {worker.id: worker for worker in WORKERS}
    ranks = [urgency(by_id[row.id]) for row in shown]
    assert ranks == sorted(ranks)
    assert names(shown)[:2] == ["main/Pasteur/Pasteur the Younger", "api-worker"]


def test_threads_that_name_each_other_as_parents_do_not_hang_it():
    a, b = replace(WORKERS[0], id="a", parent="b"), replace(WORKERS[1], id="b", parent="a")
    assert [row.id for row in flat((a, b), (a, b))] == ["b", "a"]
    assert {row.id for row in tree((a, b), (a, b), GLYPHS)} == {"a", "b"}


def test_only_changes_that_move_rows_ask_for_a_new_order():
    snapshot = fleet.full_fleet()
    assert same_places(snapshot.workers, fleet.changed(snapshot, 1, "busy").workers)
    first = snapshot.workers[0]
    for change in (
        {"name": "other"},
        {"assessment": replace(first.assessment, state=State.EXITED)},
        {"parent": "x"},
        {"sandbox": WORKERS[2].sandbox},
    ):
        assert not same_places(snapshot.workers, (replace(first, **change), *snapshot.workers[1:]))
    assert not same_places(snapshot.workers, snapshot.workers[1:])
