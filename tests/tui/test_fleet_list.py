"""Rows of the fleet list, their heads, and its empty state."""

from typing import get_args

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from agentdash.engine.judge.states import facts as short
from agentdash.model.causes import causes
from agentdash.model.denials import Certainty, Denial, Operation
from agentdash.model.events import Escalation
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.states import State
from agentdash.model.thread import Call, Tokens
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.model.worker import Agent, Sandbox
from agentdash.tui.app import AgentDash
from agentdash.tui.fleet.cells import COLUMNS, features, name, token_usage
from agentdash.tui.fleet.list import FleetList, empty_state, in_words
from agentdash.tui.fleet.row_lines import row_height, row_lines
from agentdash.tui.fleet.rows import Order, Row, arrange
from agentdash.tui.fleet.what import fact_line, what
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.theme import UNICODE

from . import sample_fleet
from .rendering import ASCII_LOOK, LOOK, text
from .sample_fleet import BY_ID, BY_NAME, SNAPSHOT

PATH = "/home/dev/.local/share/opencode/log/opencode.log"
DENIED = Fact(
    kind=FactKind.DENIED,
    what="write denied",
    object=PATH,
    form=ObjectForm.PATH,
    why="read-only file system",
)
LEAVES = Fact(
    kind=FactKind.LEAVE,
    what="wants to leave the sandbox for",
    object="git push --force-with-lease origin main:release",
    form=ObjectForm.COMMAND,
)


def blocked(fact):
    worker = BY_NAME["fix tests"]
    return replace(worker, assessment=replace(worker.assessment, fact=fact))


def lines(fact, cells, look=LOOK):
    item = (Row("x"), blocked(fact))
    layout = COLUMNS.layout(cells, look.glyphs)
    return row_lines(item, layout, cells, row_height(item, layout, cells), look)


def test_a_folded_family_shows_who_needs_the_user():
    running = next(w for w in SNAPSHOT.workers if w.state is State.RUNNING)
    parent = replace(
        running, sandbox=Sandbox(), below=("waiting-approval Pasteur", "failed-provider Lagrange")
    )
    row = Row(parent.id, folded=2)
    assert plain(what(parent, row, 60, LOOK)).startswith("! waiting-approval Pasteur +1")
    assert "Pasteur" not in plain(what(parent, Row(parent.id), 60, LOOK))


def test_a_mismatch_is_named_before_the_activity_but_not_before_a_need():
    pasteur = BY_NAME["Pasteur"]
    assert plain(what(pasteur, Row("x"), 60, LOOK)).startswith("⚑ inherited marks of a sandbox  ")
    waiting = replace(pasteur, assessment=replace(blocked(DENIED).assessment, fact=DENIED))
    assert plain(what(waiting, Row("x"), 90, LOOK)) == f"write denied {PATH}  (read-only file system)"


def test_findings_are_whole_in_a_narrow_list():
    for worker in SNAPSHOT.workers:
        if worker.mismatch and not worker.needs_you:
            item = (Row(worker.id), worker)
            layout = COLUMNS.layout(43, LOOK.glyphs)
            shown = row_lines(item, layout, 43, row_height(item, layout, 43), LOOK)
            assert causes(worker)[0].words in text(shown)
            assert all(width(line) <= 43 for line in shown)


@pytest.mark.parametrize("cells", range(44, 200, 5))
@pytest.mark.parametrize("fact", [DENIED, LEAVES], ids=["path", "command"])
def test_the_object_stands_at_every_width(cells, fact):
    shown = lines(fact, cells)
    assert len(shown) <= (2 if cells >= 50 else 3)
    assert all(width(line) <= cells for line in shown)
    squeezed = "".join(text(shown).split())
    assert "".join(fact.object.split()) in squeezed or (cells < 50 and fact.object[-12:] in squeezed)


LONG_PATH = "/home/dev/projects/shop/packages/api/node_modules/.cache/babel-loader/cache-of-the-build.sqlite3"
LONG_COMMAND = "docker run --rm -v $PWD:/work -e CI=1 registry.example.com/tools/builder:2026 make release"
QUESTION = "Should I also delete the three old migrations, or keep them until the next release is out?"
DENIALS = [
    Denial(what=what, operation=operation, certainty=certainty, quote="read-only file system", target=target)
    for what, targets in (
        ("filesystem", ("/etc/hosts", LONG_PATH, None)),
        ("network", ("index.example.org", "registry.example.com", None)),
        ("sandbox", (None,)),
    )
    for operation in get_args(Operation)
    for certainty in get_args(Certainty)
    for target in targets
]
NEEDS = [
    short.wants(None),
    *(
        short.wants(Call(id="c", at=0.0, line=1, kind=kind, tool="t", text=text, escalation=escalation))
        for kind in ("command", "patch", "permission")
        for text in ("git push", LONG_COMMAND, LONG_PATH)
        for escalation in (None, Escalation("escalated", "The push needs the network."))
    ),
    *(short.asks(text) for text in ("Which port?", QUESTION)),
    short.idle(),
    *(short.denied(denial, LONG_COMMAND) for denial in DENIALS),
    *(short.refused(text, "the approval policy") for text in ("npm publish", LONG_COMMAND)),
    short.provider(QUESTION),
    short.retries(QUESTION),
    short.unanswered(QUESTION),
    Fact(FactKind.SANDBOX, "sandbox failed:", "bwrap: setting up uid map: Permission denied"),
    short.crashed(None, QUESTION),
    short.by_status("waiting", "permission prompt"),
]
"""The facts of prompts, questions, denials of all operations, refusals, failures."""


LIST_CELLS = {"45x50": 41, "80x24": 76, "100x30": 96, "120x36": 116, "150x8": 146, "200x50": 120}
"""Cells of the list, without its gutter and its margin, on screens of these sizes."""
FEATURES = ("agents", "costs")


@pytest.mark.parametrize("held", [None, 1, 2, 3])
@pytest.mark.parametrize(("screen", "cells"), LIST_CELLS.items())
def test_every_need_of_every_size_has_its_object(screen, cells, held):
    """Whole where it fits; else what tells most: a path's end, both ends of a command, a text's beginning.

    A row that is held under the cursor while its state changes keeps the height that it had.
    """
    if held == 3 and cells >= 50:
        held = 2
    whole = 0
    for fact in NEEDS:
        item = (Row("x"), blocked(fact))
        layout = COLUMNS.layout(cells, LOOK.glyphs, FEATURES)
        height = held or (1 if screen == "150x8" else row_height(item, layout, cells))
        drawn = "".join(text(row_lines(item, layout, cells, height, LOOK)).split())
        object_ = "".join(fact.object.split())
        room = layout.main.cells if height == 1 else cells - 4
        if object_ in drawn:
            whole += bool(object_)
            continue
        assert cell_len(fact.object) > room, (fact, drawn)
        if fact.form is ObjectForm.PATH:
            assert object_.rpartition("/")[2][-room // 2 :] in drawn, (fact, drawn)
        elif fact.form is ObjectForm.COMMAND:
            assert object_[: min(10, room // 3)] in drawn, (fact, drawn)
            assert object_[-min(7, room // 5) :] in drawn, (fact, drawn)
        else:
            assert object_[: min(12, room // 2)] in drawn, (fact, drawn)
    assert whole > len(NEEDS) // (8 if held == 1 else 3)


def test_objects_are_cut_where_that_costs_least():
    assert plain(fact_line(DENIED, 48, LOOK)) == PATH
    assert plain(fact_line(DENIED, 32, LOOK)) == "write denied /⋯/log/opencode.log"
    assert plain(fact_line(DENIED, 14, LOOK)) == "⋯/opencode.log"
    assert plain(fact_line(LEAVES, 30, LOOK)).endswith(":release")


def test_path_is_cut_before_the_name():
    younger = BY_NAME["Pasteur the Younger"]
    rows = arrange(SNAPSHOT.workers, SNAPSHOT.workers, Order(is_flat=True), UNICODE.tree)
    row = next(row for row in rows if row.id == younger.id)
    shown = [plain(name(row, younger, cells, LOOK)).rstrip() for cells in (32, 26, 20, 14)]
    assert shown == [
        "main/Pasteur/Pasteur the Younger",
        "main/⋯/Pasteur the Younger",
        "Pasteur the Younger",
        "Pasteur the Y⋯",
    ]


def test_a_name_ends_with_what_tells_it_from_others():
    worker = BY_NAME["api-worker"]
    assert plain(name(Row("x", tag="shop"), worker, 20, LOOK)) == "api-worker shop     "
    assert plain(name(Row("x"), worker, 20, LOOK)) == "api-worker %4       "
    assert plain(name(Row("x"), worker, 12, LOOK)) == "api-worker  "
    assert plain(name(Row("x", folded=3), worker, 20, LOOK)) == "api-worker %4 +3    "


@pytest.mark.parametrize("cells", [43, 58, 62, 79, 99, 110, 148, 300])
@pytest.mark.parametrize("look", [LOOK, ASCII_LOOK], ids=["unicode", "ascii"])
def test_rows_of_every_width_fill_their_columns(cells, look):
    columns = COLUMNS.layout(cells, look.glyphs)
    rows = arrange(SNAPSHOT.workers, SNAPSHOT.workers, Order(), look.glyphs.tree)
    assert rows
    for row in rows:
        assert width(columns.line((row, BY_ID[row.id]), look)) == cells
    assert width(columns.titles()) == cells + 1  # the gutter


def test_the_title_of_the_column_that_sorts_is_marked():
    columns = COLUMNS.layout(117, UNICODE)
    for sort, title in (("age", "FOR⇣"), ("tokens", "CTX⇣"), ("name", "WORKER⇣"), ("attention", "WHY⇣")):
        line = columns.titles(sort, UNICODE.sorted)
        assert title in plain(line)
        assert [span.tone for span in line].count("chosen") == 1
        assert width(line) == 118


def test_row_of_a_wide_list():
    columns = COLUMNS.layout(148, UNICODE)
    rows = {row.id: row for row in arrange(SNAPSHOT.workers, SNAPSHOT.workers, Order(), UNICODE.tree)}
    shown = plain(columns.line((rows[BY_NAME["Pasteur"].id], BY_NAME["Pasteur"]), LOOK))
    assert shown.startswith("▸ └ Pasteur  ")
    assert "⚑ inherited marks of a sandbox  " in shown
    assert shown.endswith("≠ full            11%   1m")


def test_the_chosen_row_in_words():
    (line,) = in_words(BY_NAME["api-worker"], 200, LOOK)
    shown = plain(line)
    assert "waiting approval for 14s ⋅ = workspace, no network: as configured ⋅ codex 0.169.0" in shown
    assert BY_NAME["api-worker"].id[-12:] in shown
    narrow = in_words(BY_NAME["api-worker"], 43, LOOK)
    assert len(narrow) == 3
    assert "workspace, no network: as configured" in text(narrow)


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (Tokens(), ""),
        (Tokens(total=12_400), "12.4k"),
        (Tokens(total=9, context=96_000, window=272_000), "35%"),
    ],
)
def test_token_usage(tokens, shown):
    assert token_usage(replace(BY_NAME["api-worker"], tokens=tokens)) == shown


def test_empty_state_shows_what_each_source_did_not_find():
    shown = text(empty_state(sample_fleet.empty_fleet(), False, 60, LOOK))
    assert "No workers yet." in shown
    assert "✗ codex      no Codex home at /home/dev/.codex" in shown
    assert "✗ tmux       no tmux server on /tmp/tmux-1000/default" in shown
    assert "✓ processes" in shown
    assert "filter" in text(empty_state(SNAPSHOT, True, 60, LOOK))
    assert "Looking" in text(empty_state(None, False, 60, LOOK))


def test_columns_that_not_every_fleet_has_values_for():
    one, two = BY_NAME["api-worker"], replace(BY_NAME["api-worker"], agent=Agent("claude", "2.1.330"))
    priced = replace(one, tokens=Tokens(by_model=(ModelUsage("gpt-5.2-codex", TokenUsage(input=1)),)))
    assert features((one,), has_hosts=False) == set()
    assert features((one, two), has_hosts=True) == {"agents", "hosts"}
    assert features((priced,), has_hosts=False) == {"costs"}
    titles = plain(COLUMNS.layout(118, UNICODE, {"agents", "costs"}).titles())
    assert "AGENT" in titles
    assert "COST" in titles
    assert "AGENT" not in plain(COLUMNS.layout(118, UNICODE).titles())


@pytest.mark.parametrize("before", [(45, 50), (120, 36)], ids=["narrow", "wide"])
async def test_rows_are_painted_at_a_width_that_they_were_not_placed_for(monkeypatch, before):
    """As between a change of the terminal's size and the next drawing."""
    app = AgentDash(sample_fleet.StaticFeed(sample_fleet.full_fleet()), sample_fleet.frozen())
    async with app.run_test(size=before) as pilot:
        await pilot.pause()
        fleet = app.root.fleet
        count = fleet.virtual_size.height
        for after in (0, 20, 45, 80, 160, 300):
            monkeypatch.setattr(FleetList, "_cells", after)
            fleet._lines.clear()
            assert len([fleet.line_at(y) for y in range(count)]) == count


@pytest.mark.parametrize("cells", range(-5, 30))
def test_object_below_a_name_ends_at_any_width(cells):
    """Where not even the words before it fit, nothing of it does."""
    item = (Row("x"), blocked(DENIED))
    lines = row_lines(item, COLUMNS.layout(max(1, cells), UNICODE), cells, 3, LOOK)
    assert 1 <= len(lines) <= 3
