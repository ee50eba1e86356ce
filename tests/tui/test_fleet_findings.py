"""The findings of the fleet: one cause a row, the worst first."""

from collections import Counter

import pytest
from msgspec.structs import replace
from textual.geometry import Size
from textual.widgets import OptionList

from agentdash.model.causes import KIND_WORDS, causes, ranked_findings
from agentdash.model.findings import SEVERITIES, FindingKind
from agentdash.model.states import State
from agentdash.tui.app import AgentDash
from agentdash.tui.fleet.findings import FindingsScreen, fact_of, group_causes, prompt, row
from tests import demo_day

from . import sample_fleet
from .rendering import LOOK, screen_text
from .sample_fleet import BY_NAME, SNAPSHOT


def named(name, second):
    return next(w for w in demo_day.snapshots()[second].workers if w.name.startswith(name))


def test_worst_cause_comes_first():
    groups = group_causes(SNAPSHOT.workers)
    assert [(each.cause.words, [w.name for w in each.workers], each.times) for each in groups] == [
        ("write denied", ["fix tests"], 1),
        ("network flag missing", ["deploy"], 2),
        ("flag marks the network as off", ["Lagrange"], 9),
        ("inherited marks of a sandbox", ["Pasteur"], 18),
    ]


def test_no_sandbox_is_one_cause_of_three_kinds():
    cause = causes(named("Compare the two parsers", 26))[0]
    assert cause.words == "no sandbox"
    assert set(cause.kinds) == {
        FindingKind.NETWORK_OPEN,
        FindingKind.FILESYSTEM_WIDER,
        FindingKind.MISSING_NETWORK_FLAG,
    }
    assert cause.worst.severity == "danger"


def test_what_blocks_comes_first_though_others_are_worse():
    sartre = next(
        w
        for snapshot in demo_day.snapshots()
        for w in snapshot.workers
        if w.name == "Sartre" and w.state is State.BLOCKED_SANDBOX
    )
    first, *others = causes(sartre)
    assert (first.words, first.blocks) == ("network denied", True)
    assert others
    assert not any(cause.blocks for cause in others)


def test_every_finding_of_the_demo_belongs_to_one_cause():
    seen = Counter()
    for worker in demo_day.workers():
        ranked = ranked_findings(worker)
        assert sorted(map(id, ranked)) == sorted(map(id, worker.sandbox.findings))
        ranks = [SEVERITIES.index(cause.worst.severity) for cause in causes(worker) if not cause.blocks]
        assert ranks == sorted(ranks)
        seen.update(finding.kind for finding in ranked)
    assert seen.keys() == set(FindingKind)


def test_every_kind_of_the_demo_has_words():
    assert KIND_WORDS.keys() >= {f.kind for worker in demo_day.workers() for f in worker.sandbox.findings}


@pytest.mark.parametrize("cells", [40, 77, 197])
def test_sentence_is_whole(cells):
    for group in group_causes(demo_day.snapshots()[40].workers):
        lines = prompt(group, LOOK, cells).plain.splitlines()
        assert all(len(line) <= cells and line.startswith("  ") for line in lines[1:])
        text = "".join("".join(lines).split())
        remedy = next((each.remedy for each in group.cause.findings if each.remedy), None)
        named = (group.cause.words, group.cause.worst.message, remedy.text if remedy else "")
        for whole in (*named, *(worker.name for worker in group.workers)):
            assert "".join(whole.split()) in text


@pytest.mark.parametrize("cells", [77, 117, 197])
def test_row_of_a_cause_has_its_columns_below_each_other(cells):
    groups = group_causes(demo_day.snapshots()[40].workers)
    rows = [row(group, LOOK, cells).plain for group in groups]
    assert {len(each) for each in rows} == {cells}
    shown = list(zip(rows, groups, strict=True))
    assert len({each.index(group.workers[0].name[:10]) for each, group in shown}) == 1
    for each, group in shown:
        assert group.cause.words in each


def test_row_of_a_cause_states_what_differs_and_what_was_denied():
    groups = group_causes(demo_day.snapshots()[40].workers)
    facts = {group.cause.words: fact_of(group, LOOK, 40) for group in groups}
    assert facts["no network, though granted"] == "network: on → off"
    assert facts["sandbox cannot start"].startswith("The sandbox itself could not be started")
    smoke = next(each for each in groups if each.workers[0].name.startswith("Run the smoke"))
    assert fact_of(smoke, LOOK, 40) == "/home/dev/board/kanban.db"
    assert fact_of(smoke, LOOK, 20) == "/⋯/board/kanban.db"


@pytest.fixture
def app():
    return AgentDash(sample_fleet.StaticFeed(SNAPSHOT), sample_fleet.frozen())


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (45, 50), (150, 8)])
async def test_screen_of_all_findings_shows_sentences_and_opens_the_worker(app, size):
    async with app.run_test(size=size) as pilot:
        await pilot.press("Z")
        await pilot.pause()
        assert isinstance(app.screen, FindingsScreen)
        shown = " ".join(screen_text(app).split())
        assert "write denied" in shown
        await pilot.press("j", "enter")
        await pilot.pause()
        assert app.screen is app.root
        assert app.worker.name == "deploy"


async def test_highlighted_finding_is_the_selected_worker(app):
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("Z", "j", "j")
        await pilot.pause()
        assert app.worker.name == "Lagrange"
        await pilot.press("w")
        await pilot.pause()
        assert " Lagrange ⋅ codex" in screen_text(app)


async def test_a_click_in_the_strip_goes_to_the_worker(app):
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        strip = app.root.query_one("#findings", OptionList)
        assert strip.display
        await pilot.click("#findings", offset=(4, 1))
        await pilot.pause()
        assert app.worker.name == "fix tests"


async def test_highlight_stays_on_its_cause():
    feed = sample_fleet.QueueFeed()
    app = AgentDash(feed, sample_fleet.frozen())
    async with app.run_test(size=(120, 36)) as pilot:
        feed.push(SNAPSHOT)
        await pilot.pause()
        await pilot.press("Z", "j", "j")
        healed = replace(
            SNAPSHOT,
            workers=tuple(
                replace(w, sandbox=replace(w.sandbox, findings=())) if w.name == "fix tests" else w
                for w in SNAPSHOT.workers
            ),
        )
        feed.push(healed)
        await pilot.pause()
        await pilot.pause()
        assert app.worker.name == "Lagrange"
        assert app.screen.findings.highlighted == 1


async def test_without_findings_it_says_so():
    empty = replace(SNAPSHOT, workers=(BY_NAME["main"],))
    app = AgentDash(sample_fleet.StaticFeed(empty), sample_fleet.frozen())
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("Z")
        await pilot.pause()
        assert "No findings" in screen_text(app)


async def test_no_width_is_too_small_for_a_list(app):
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("Z")
        await pilot.pause()
        found = app.screen.findings
        assert found.option_count > 0
        for cells in range(-1, 12):
            assert found.get_content_height(Size(cells, 9), Size(cells, 9), cells) > 0
