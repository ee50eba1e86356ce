"""The order of the fleet list."""

from msgspec.structs import replace

from agentdash.model.states import State
from agentdash.tui.fleet.rows import flat, same_places, tree, urgency

from . import sample_fleet
from .sample_fleet import BY_NAME, SNAPSHOT

GLYPHS = ("├ ", "└ ", "│ ")
WORKERS = SNAPSHOT.workers


def names(rows):
    by_id = {worker.id: worker for worker in WORKERS}
    return [row.stem + row.path + by_id[row.id].name for row in rows]


def test_tree_keeps_families_together_most_urgent_first():
    shown = names(tree(WORKERS, WORKERS, GLYPHS))
    assert shown[:4] == ["main", "├ Lagrange", "└ Pasteur", "  └ Pasteur the Younger"]
    assert shown[4:10] == ["api-worker", "claude", "fix tests", "deploy", "gemini", sample_fleet.HOSTILE]
    assert shown[10:] == ["nightly", "docs", "データベース移行の調査", "spike", "old-run"]


def test_tree_lines_pass_grandchildren():
    main, lagrange, pasteur, younger = WORKERS[:4]
    younger = replace(younger, parent=lagrange.id)
    assert names(tree((main, lagrange, younger, pasteur), WORKERS[:4], GLYPHS)) == [
        "main", "├ Lagrange", "│ └ Pasteur the Younger", "└ Pasteur",
    ]  # fmt: skip


def test_worker_with_hidden_parent_shows_its_path():
    kept = [BY_NAME["main"], BY_NAME["Pasteur the Younger"], BY_NAME["Lagrange"]]
    assert names(tree(kept, WORKERS, GLYPHS)) == ["main/Pasteur/Pasteur the Younger", "main", "└ Lagrange"]


def test_flat_list_is_ordered_by_urgency_with_paths():
    shown = flat(WORKERS, WORKERS)
    by_id = {worker.id: worker for worker in WORKERS}
    ranks = [urgency(by_id[row.id]) for row in shown]
    assert ranks == sorted(ranks)
    assert names(shown)[:2] == ["main/Pasteur/Pasteur the Younger", "api-worker"]


def test_cyclic_parents_terminate():
    a, b = replace(WORKERS[0], id="a", parent="b"), replace(WORKERS[1], id="b", parent="a")
    assert [row.id for row in flat((a, b), (a, b))] == ["b", "a"]
    assert {row.id for row in tree((a, b), (a, b), GLYPHS)} == {"a", "b"}


def test_same_places_detects_changes_that_move_rows():
    snapshot = sample_fleet.full_fleet()
    assert same_places(snapshot.workers, sample_fleet.changed(snapshot, 1, "busy").workers)
    first = snapshot.workers[0]
    for change in (
        {"name": "other"},
        {"assessment": replace(first.assessment, state=State.EXITED)},
        {"parent": "x"},
        {"sandbox": WORKERS[2].sandbox},
    ):
        assert not same_places(snapshot.workers, (replace(first, **change), *snapshot.workers[1:]))
    assert not same_places(snapshot.workers, snapshot.workers[1:])
