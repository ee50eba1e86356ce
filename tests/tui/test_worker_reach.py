"""The Reach tab and the branch column."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentdash.model.git import Repository
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.reach import Reach, Reached, ReachKind, ReachTarget
from agentdash.tui.app import AgentDash, Options
from agentdash.tui.theme import UNICODE, Look
from agentdash.tui.worker.reach import reach_in_words, reach_tab
from tests import demo_day
from tests.tui import sample_fleet
from tests.tui.rendering import text

DOCKER = ReachTarget(kind=ReachKind.ESCAPE, path="/run/docker.sock", what="Docker: root", action="connect")
BASHRC = ReachTarget(
    kind=ReachKind.TAKEOVER, path="/home/me/.bashrc", what="each shell runs it", action="write"
)
KEY = ReachTarget(kind=ReachKind.SECRET, path="/home/me/.ssh/id", what="private key", action="read")
LOOK = Look(0.0, UNICODE)
MINUTE = demo_day.snapshots()[60]


def worker(reach: Reach | None):
    return replace(MINUTE.workers[0], reach=reach)


def lines(reach: Reach | None, cells: int = 90) -> list[str]:
    return text(reach_tab(worker(reach), cells, LOOK)).split("\n")


def test_worst_is_first_and_unknown_last():
    reach = Reach(
        (Reached(KEY, "unknown"), Reached(BASHRC, "may", "replace"), Reached(DOCKER, "can")),
        ("a seccomp filter",),
        refused=4,
    )
    shown = lines(reach)
    assert shown[0] == "Its commands can reach 1 and may reach 1 of 7 targets."
    assert shown[1] == "could refuse more: a seccomp filter"
    assert [line.split()[0] for line in shown[3:]] == ["can", "may", "unknown"]
    assert "connect to /run/docker.sock  Docker: root" in shown[3]
    assert "write /home/me/.bashrc (replace)" in shown[4]
    assert all(len(line) <= 40 for line in lines(reach, 40))


def test_nothing_reached_and_nothing_known():
    assert reach_in_words(Reach((), by="policy", refused=9)) == (
        "By its policy, its commands reach none of 9 targets."
    )
    (line,) = lines(None)
    assert line.startswith("Not known")


def test_repository_in_few_cells_and_in_words():
    plain = Repository(
        "/srv", branch="main", commit="0" * 40, dirty=False, upstream="origin/main", ahead=0, behind=0
    )
    assert (plain.short(), plain.in_words()) == ("main", "main, unchanged, level with origin/main")
    busy = replace(plain, dirty=True, ahead=2, behind=1, worktree="fix")
    assert busy.short() == "main*+2-1"
    assert busy.in_words() == "main, worktree fix, changed, 2 ahead of and 1 behind origin/main"
    detached = replace(plain, branch=None, upstream=None, ahead=None, behind=None, dirty=None)
    assert (detached.short(), detached.in_words()) == ("00000000", "detached at 000000000000")
    assert replace(plain, ahead=None, behind=None).in_words() == "main, unchanged, follows origin/main"


@pytest.mark.slow
async def test_tab_begins_at_its_top_after_one_that_was_followed_to_its_end():
    screen = tuple(f"line {number}" for number in range(40))
    pane = Pane(
        key=PaneKey("default", "%1"), session="s", window="0:w", pid=1, command="codex", screen=screen
    )
    targets = tuple(Reached(replace(BASHRC, path=f"/home/me/{number}"), "may") for number in range(40))
    shown = replace(MINUTE.workers[0], reach=Reach(targets), pane=pane)
    clock = sample_fleet.frozen()
    clock.set(paused=True, now=MINUTE.at)
    app = AgentDash(sample_fleet.StaticFeed(replace(MINUTE, workers=(shown,))), clock, options=Options())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        for tab in ("Screen", "Reach"):
            app.action_tab_named(tab)
            await pilot.pause()
        panel = app.screen.query_one("#tab")
        assert panel.scroll_offset.y == 0
        assert panel.max_scroll_y > 0
