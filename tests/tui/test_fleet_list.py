"""Rows of the fleet list, and its empty state."""

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from agentdash.engine.judge.states import facts as short
from agentdash.model.events import Escalation
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.states import State
from agentdash.model.thread import Call
from agentdash.model.worker import Sandbox
from agentdash.tui.fleet.cells import COLUMNS, layout, row_lines, sandbox_words
from agentdash.tui.fleet.list import FleetList
from agentdash.tui.fleet.rows import Order, Row, arrange
from agentdash.tui.primitives.spans import width

from . import sample_fleet
from .rendering import ASCII_LOOK, LOOK, text
from .sample_fleet import BY_ID, BY_NAME, SNAPSHOT

PATH = "/home/dev/.local/share/opencode/log/opencode.log"
LONG_PATH = "/home/dev/projects/shop/packages/api/node_modules/.cache/babel-loader/cache-of-the-build.sqlite3"
LONG_COMMAND = "docker run --rm -v $PWD:/work -e CI=1 registry.example.com/tools/builder:2026 make release"
QUESTION = "Should I also delete the three old migrations, or keep them until the next release is out?"
DENIED = Fact(FactKind.DENIED, "write denied", PATH, ObjectForm.PATH, "read-only file system")
LEAVES = Fact(
    FactKind.LEAVE,
    "wants to leave the sandbox for",
    "git push --force-with-lease origin main:release",
    ObjectForm.COMMAND,
)
NEEDS = [
    DENIED,
    LEAVES,
    short.wants(None),
    *(
        short.wants(Call(id="c", at=0.0, line=1, kind=kind, tool="t", text=text, escalation=escalation))
        for kind in ("command", "patch", "permission")
        for text in ("git push", LONG_COMMAND, LONG_PATH)
        for escalation in (None, Escalation("escalated", "The push needs the network."))
    ),
    *(short.asks(text) for text in ("Which port?", QUESTION)),
    short.IDLE,
    *(
        Fact(FactKind.REFUSED, "the approval policy refused", text, ObjectForm.COMMAND)
        for text in ("npm publish", LONG_COMMAND)
    ),
    short.provider(QUESTION),
    Fact(FactKind.SANDBOX, "sandbox failed:", "bwrap: setting up uid map: Permission denied"),
    short.crashed(None, QUESTION),
]
"""The facts of prompts, questions, denials, refusals, failures."""


def needing(fact):
    worker = BY_NAME["fix tests"]
    return replace(worker, assessment=replace(worker.assessment, fact=fact))


def lines(worker, cells, row=None, look=LOOK):
    placed = layout(COLUMNS, cells, look.glyphs)
    return row_lines((row or Row(worker.id), worker), placed, cells, look)


@pytest.mark.parametrize("cells", [20, 43, 58, 77, 97, 118, 148, 198])
def test_what_is_needed_stands_at_every_width(cells):
    """Whole where it fits; else what tells most: a path's end, both ends of a command, a text's beginning."""
    for fact in NEEDS:
        drawn = lines(needing(fact), cells)
        assert len(drawn) <= (2 if cells >= 50 else 5)
        assert all(width(line) <= cells for line in drawn), fact
        object_ = fact.object or fact.text
        shown = text(drawn)
        squeezed = "".join(shown.split())
        if set(object_.split()) <= set(shown.split()) or "".join(object_.split()) in squeezed:
            continue
        assert cell_len(object_) > (cells - 4) * (1 if cells >= 50 else 2), (fact, shown)
        begin, end = {
            ObjectForm.PATH: ("", object_.rpartition("/")[2][-cells // 2 :]),
            ObjectForm.COMMAND: (object_[:3], object_[-cells // 9 :]),
        }.get(fact.form, (object_[:6], ""))
        assert "".join(begin.split()) in squeezed, (fact, shown)
        assert "".join(end.split()) in squeezed, (fact, shown)


def test_only_what_needs_the_user_has_more_than_one_line_and_is_bold():
    for worker in SNAPSHOT.workers:
        for cells in (43, 118):
            drawn = lines(worker, cells)
            assert len(drawn) == 1 or worker.needs_you
            assert any(span.tone == "strong" for line in drawn for span in line) is worker.needs_you


def test_a_folded_family_shows_who_needs_the_user():
    running = next(w for w in SNAPSHOT.workers if w.state is State.RUNNING)
    parent = replace(running, below=("waiting-approval Pasteur", "failed-provider Lagrange"))
    assert "waiting approval Pasteur +1" in text(lines(parent, 118, Row(parent.id, folded=2)))
    assert "Pasteur" not in text(lines(parent, 118))


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (None, ""),
        (Policy(Filesystem.WORKSPACE, Network.OFF), "workspace"),
        (Policy(Filesystem.WORKSPACE, Network.ON), "workspace+net"),
        (Policy(Filesystem.CUSTOM, Network.MEDIATED), "custom+proxy"),
        (Policy(Filesystem.READ_ONLY, Network.OFF), "read-only"),
        (Policy(Filesystem.UNRESTRICTED, Network.ON), "full access"),
        (Policy(Filesystem.UNRESTRICTED, Network.OFF), "all files"),
    ],
)
def test_the_sandbox_in_words(policy, shown):
    assert sandbox_words(replace(BY_NAME["api-worker"], sandbox=Sandbox(configured=policy))) == shown


@pytest.mark.parametrize("look", [LOOK, ASCII_LOOK], ids=["unicode", "ascii"])
@pytest.mark.parametrize("cells", [43, 62, 99, 148, 300])
def test_rows_of_every_width_fill_their_columns(cells, look):
    columns = layout(COLUMNS, cells, look.glyphs)
    for row in arrange(SNAPSHOT.workers, Order(), look.glyphs.tree):
        assert width(columns.line((row, BY_ID[row.id]), look)) == cells
    assert width(columns.titles("attention", "")) == cells + 1  # the gutter


@pytest.mark.parametrize("before", [(45, 50), (120, 36)], ids=["narrow", "wide"])
async def test_rows_are_painted_at_a_width_that_they_were_not_placed_for(monkeypatch, before):
    """As between a change of the terminal's size and the next drawing."""
    app = sample_fleet.dashboard()
    async with app.run_test(size=before) as pilot:
        await pilot.pause()
        fleet = app.root.fleet
        count = fleet.virtual_size.height
        for after in (0, 20, 45, 80, 160, 300):
            monkeypatch.setattr(FleetList, "room", after)
            fleet._drawn.clear()
            assert len([fleet.line_at(y) for y in range(count)]) == count
