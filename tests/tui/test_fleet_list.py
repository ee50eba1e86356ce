"""Rows and cards of the fleet list, and its empty state."""

import pytest
from msgspec.structs import replace

from agentdash.model.fleet import Tokens
from agentdash.model.states import State
from agentdash.model.worker import Sandbox
from agentdash.tui.fleet.list import COLUMNS, card, empty_state, note, token_usage
from agentdash.tui.fleet.rows import flat, tree
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.theme import STATE_WIDTH, UNICODE

from . import sample_fleet
from .rendering import ASCII_LOOK, LOOK, text
from .sample_fleet import BY_ID, BY_NAME, SNAPSHOT


def test_note_shows_descendants_that_need_the_user():
    running = next(w for w in SNAPSHOT.workers if w.state is State.RUNNING)
    parent = replace(running, sandbox=Sandbox(), line="waits", below=())
    waiting = replace(parent, below=("waiting-approval Pasteur", "failed-provider Lagrange"))
    assert text([note(waiting)]) == "! waiting-approval Pasteur +1  waits"
    assert text([note(parent)]) == "waits"


def test_path_is_cut_before_the_name():
    younger = BY_NAME["Pasteur the Younger"]
    row = next(row for row in flat(SNAPSHOT.workers, SNAPSHOT.workers) if row.id == younger.id)
    shown = [
        plain(card((row, younger), cells, LOOK)[0])[STATE_WIDTH + 1 : -4].rstrip()
        for cells in (60, 50, 44, 38)
    ]
    assert shown == [
        "main/Pasteur/Pasteur the Younger",
        "main/⋯/Pasteur the Younger",
        "Pasteur the Younger",
        "Pasteur the Y⋯",
    ]


@pytest.mark.parametrize("cells", [24, 30, 43, 58, 62, 79, 99, 110, 148, 300])
@pytest.mark.parametrize("look", [LOOK, ASCII_LOOK], ids=["unicode", "ascii"])
def test_rows_of_every_width_fill_their_columns(cells, look):
    columns = COLUMNS.layout(cells, look.glyphs)
    rows = tree(SNAPSHOT.workers, SNAPSHOT.workers, look.glyphs.tree)
    for row in rows:
        line = columns.line((row, BY_ID[row.id]), look)
        assert cells - columns.rest_cells <= width(line) <= cells
    assert width(columns.titles()) == cells + 1  # the gutter


def test_row_of_a_wide_list():
    columns = COLUMNS.layout(148, UNICODE)
    rows = {row.id: row for row in tree(SNAPSHOT.workers, SNAPSHOT.workers, UNICODE.tree)}
    shown = [
        plain(columns.line((rows[BY_NAME[n].id], BY_NAME[n]), LOOK)).rstrip()
        for n in ("Pasteur", "api-worker")
    ]
    assert shown == [
        "▸ running           └ Pasteur                        codex 0.169.0     ≠ full          11%   0s  "
        "stale-network-flag  $ pytest -q tests/checkout",
        "! waiting approval  api-worker %4                    codex 0.169.0     = ws net-       73%  14s  "
        "asks to run `curl -m 3 http://example.com`: the ne⋯",
    ]


def test_cards_of_a_narrow_list():
    rows = {row.id: row for row in flat(SNAPSHOT.workers, SNAPSHOT.workers)}
    shown = [
        text(card((rows[BY_NAME[n].id], BY_NAME[n]), 42, ASCII_LOOK))
        for n in ("Pasteur", "claude", "データベース移行の調査")
    ]
    assert shown == [
        "> running           main/Pasteur        0s\n  != full  stale-network-flag  $ pytest..",
        "? waiting input     claude %5           1m\n  sits at its prompt",
        "+ completed         データベース移行.. 50m\n  ? custom net~  移行スクリプトを書きま..",
    ]


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (Tokens(), ""),
        (Tokens(total=12_400), "12.4k"),
        (Tokens(total=9, context=96_000, window=272_000), "35%"),
    ],
)
def test_token_usage(tokens, shown):
    assert token_usage(tokens) == shown


def test_empty_state_shows_what_each_source_did_not_find():
    shown = text(empty_state(sample_fleet.empty_fleet(), False, 60, LOOK))
    assert "No workers yet." in shown
    assert "✗ codex      no Codex home at /home/dev/.codex" in shown
    assert "✗ tmux       no tmux server on /tmp/tmux-1000/default" in shown
    assert "✓ processes" in shown
    assert "filter" in text(empty_state(SNAPSHOT, True, 60, LOOK))
    assert "Looking" in text(empty_state(None, False, 60, LOOK))
