"""The matrix of workers and aspects of their sandboxes."""

from collections import Counter

import pytest
from msgspec.structs import replace

from agentdash.model.findings import FindingKind
from agentdash.model.layers import LayerField
from agentdash.model.reach import Reach, Reached, ReachKind, ReachTarget
from agentdash.tui.app import AgentDash, Options
from agentdash.tui.matrix.cells import Aspect, MatrixCell, aspects, legend, matrix_rows
from agentdash.tui.matrix.screen import CellScreen, MatrixScreen
from agentdash.tui.matrix.table import MatrixTable
from agentdash.tui.messages import WorkerPointed
from agentdash.tui.theme import ASCII, UNICODE
from tests import demo_day

from . import sample_fleet
from .rendering import rows as screen_rows
from .rendering import screen_text

MINUTE = demo_day.snapshots()[60]


def cells(snapshot, name):
    return next(row.cells for row in matrix_rows(snapshot.workers) if row.worker.name.startswith(name))


def signs(snapshot, name):
    found = cells(snapshot, name)
    return "".join(cell.sign(UNICODE, ascii_only=False).text for cell in found.values())


NAMES = (
    "Port the tests",
    "Sartre",
    "Compare",
    "Update",
    "Pasteur",
    "Push",
    "Wait",
    "Build",
    "Euclid",
    "Summarize",
)


def test_signs_of_the_demo():
    assert {name: signs(MINUTE, name) for name in NAMES} == {
        "Port the tests": "·····▴··",
        "Sartre": "=⊘==▾···",
        "Compare": "▴▴▴=····",
        "Update": "▾▾==····",
        "Pasteur": "==≠≠▾···",
        "Push": "====··≠·",
        "Wait": "⊘===··▾·",
        "Build": "▴▴==····",
        "Euclid": "▴▴===···",
        "Summarize": "▴▴==··▴·",
    }


def test_every_difference_is_in_a_cell_of_its_worker_at_every_second():
    seen = Counter()
    for snapshot in demo_day.snapshots():
        for row in matrix_rows(snapshot.workers):
            shown = {finding.kind for cell in row.cells.values() for finding in cell.findings}
            had = {finding.kind for finding in row.worker.sandbox.findings}
            changes = {FindingKind.POLICY_CHANGED}  # compares two times, not two layers
            assert had - changes == shown - changes
            seen.update(shown)
    assert set(FindingKind) - set(seen) == {FindingKind.POLICY_CHANGED}


def test_every_field_has_an_aspect():
    finding = sample_fleet.LOOSER
    for name in LayerField:
        fields = (replace(finding.fields[0], name=name),)
        assert len(aspects(replace(finding, fields=fields))) == 1


def test_an_observation_before_the_policy_agrees_with_nothing():
    worker = next(w for w in MINUTE.workers if w.sandbox.got.sandboxed is not None and w.sandbox.configured)
    old = replace(
        worker,
        parent=None,
        sandbox=replace(
            worker.sandbox, findings=(), got=replace(worker.sandbox.got, under_earlier_policy=True)
        ),
    )
    (row,) = matrix_rows([old])
    assert not any(cell.observed for cell in row.cells.values())


def test_families_stay_together_and_the_worst_is_first():
    order = [row.worker for row in matrix_rows(MINUTE.workers)]
    names = [worker.name for worker in order]
    assert names[:3] == ["Port the tests to pytest", "Sartre", "Euclid"]
    for worker in order:
        if worker.parent in {each.id for each in order}:
            parent = next(n for n, each in enumerate(order) if each.id == worker.parent)
            between = order[parent + 1 : order.index(worker)]
            assert all(each.depth >= worker.depth for each in between)
    assert len(order) == len(MINUTE.workers)


def test_signs_of_reach():
    docker = ReachTarget(kind=ReachKind.ESCAPE, path="/run/docker.sock", what="Docker", action="connect")
    shown = {
        certainty: MatrixCell(reach=Reach((Reached(docker, certainty),))).sign(UNICODE, ascii_only=False).text
        for certainty in ("can", "may", "unknown", "cannot")
    }
    assert shown == {"can": "!", "may": "?", "unknown": "·", "cannot": "="}


def test_one_meaning_per_sign():
    for glyphs in (UNICODE, ASCII):
        signs_of_legend = [sign for sign, _, _ in legend(glyphs, ascii_only=glyphs is ASCII)]
        assert len(set(signs_of_legend)) == len(signs_of_legend) == 8
    assert all(sign.isascii() for sign, _, _ in legend(ASCII, ascii_only=True))


def app_of(snapshot=MINUTE, **options):
    clock = sample_fleet.frozen()
    clock.set(paused=True, now=MINUTE.at)
    return AgentDash(sample_fleet.StaticFeed(snapshot), clock, options=Options(**options))


@pytest.mark.parametrize("size", [(45, 50), (80, 24), (100, 30), (120, 36), (200, 50), (150, 8)])
async def test_all_columns_and_the_legend_are_in_sight(size):
    app = app_of()
    async with app.run_test(size=size) as pilot:
        await pilot.press("m")
        await pilot.pause()
        assert isinstance(app.screen, MatrixScreen)
        text = screen_text(app)
        heads = next(line for line in text.splitlines() if line.strip().startswith("worker"))
        assert len(heads.split()) == len(Aspect) + 1
        assert "more than configured" in text
        assert "observed, no finding" in text


async def test_the_key_of_an_open_matrix_keeps_its_cursor():
    app = app_of()
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("m", "l", "j")
        cursor = app.screen.table.cursor_coordinate
        await pilot.press("m")
        assert app.screen.table.cursor_coordinate == cursor
        await pilot.press("escape")
        assert app.screen is app.root


async def test_cursor_begins_on_the_worst_cell_and_enter_quotes_both_sides():
    app = app_of()
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("m")
        await pilot.pause()
        assert "tmux configured in the sandbox, observed outside %9" in " ".join(screen_text(app).split())
        await pilot.press("j", "h", "h", "h", "h")
        await pilot.pause()
        assert app.worker.name == "Sartre"
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, CellScreen)
        text = screen_text(app)
        for part in ("network denied", "remedy (Y)", "listen EPERM", "output"):
            assert part in text
        await pilot.press("escape", "escape")
        assert app.screen is app.root


async def test_cell_of_a_difference_has_values_times_and_evidence():
    app = app_of()
    async with app.run_test(size=(120, 50)) as pilot:
        await pilot.press("j")  # until the first key the worst worker is selected
        app.select_worker(next(w.id for w in MINUTE.workers if w.name.startswith("Update")))
        await pilot.press("m", "l", "enter")
        await pilot.pause()
        text = " ".join(screen_text(app).split())
        for part in (
            "configured on, since 20:00:",
            "applied off, 20:00:",
            "policy-in-force",
            "bwrap stands",
        ):
            assert part in text, part


async def test_cursor_stays_on_its_cell_when_rows_move():
    feed = sample_fleet.QueueFeed()
    app = AgentDash(feed, sample_fleet.frozen())
    async with app.run_test(size=(120, 36)) as pilot:
        feed.push(demo_day.snapshots()[26])
        await pilot.pause()
        app.select_worker(next(w.id for w in MINUTE.workers if w.name.startswith("Compare")))
        await pilot.press("m", "l")
        await pilot.pause()
        table = app.screen.table
        before = (table.row.worker.name, table.aspect)
        for second in range(30, 60, 6):
            feed.push(demo_day.snapshots()[second])
            await pilot.pause()
            await pilot.pause()
            assert (table.row.worker.name, table.aspect) == before


async def test_rows_that_move_are_not_built_again_and_point_at_one_worker(monkeypatch):
    built, pointed = [], []
    add_rows, post = MatrixTable.add_rows, MatrixTable.post_message
    feed = sample_fleet.QueueFeed()
    app = AgentDash(feed, sample_fleet.frozen())
    monkeypatch.setattr(MatrixTable, "add_rows", lambda *given: built.append(1) or add_rows(*given))
    monkeypatch.setattr(MatrixTable, "post_message", lambda *given: pointed.append(given[1]) or post(*given))
    async with app.run_test(size=(120, 36)) as pilot:
        feed.push(MINUTE)
        await pilot.pause()
        await pilot.press("m")
        await pilot.pause()
        table = app.screen.table
        at = table.row.worker.id
        shown = [row.worker.id for row in table._rows]
        feed.push(replace(MINUTE, workers=MINUTE.workers[::-1]))
        await pilot.pause()
        await pilot.pause()
        assert [row.worker.id for row in table._rows] != shown
        assert table.row.worker.id == at
        names = [str(table.get_cell_at((row, 0))).strip() for row in range(table.row_count)]
        assert len(names) == len(shown)
        assert all(row.worker.name[:6] in name for row, name in zip(table._rows, names, strict=True))
    assert len(built) == 1
    assert [message.worker for message in pointed if isinstance(message, WorkerPointed)] == [at]


async def test_ascii_matrix_is_ascii():
    app = app_of(ascii=True)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("m")
        await pilot.pause()
        assert "\n".join(screen_rows(app)).isascii()


async def test_without_workers():
    app = app_of(replace(MINUTE, workers=()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("m", "enter", "j")
        await pilot.pause()
        assert "No workers" in screen_text(app)
