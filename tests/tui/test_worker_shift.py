"""Horizontal scrolling of the tabs with lines that are cut or wrapped."""

import pytest
from msgspec.structs import replace

from agentdash.model.thread import Moment
from agentdash.tui.app import AgentDash
from agentdash.tui.options import Options
from agentdash.tui.primitives.spans import Span, plain, without_start
from agentdash.tui.worker.panel import WorkerPanel

from . import sample_fleet
from .rendering import screen_text
from .sample_fleet import BY_NAME, SNAPSHOT

LONG = "docker run --rm " + " ".join(f"-e NAME_{n}=value_{n}" for n in range(12)) + " THE-END"


def with_long_command():
    worker = BY_NAME["api-worker"]
    moment = Moment(at=sample_fleet.NOW - 20, kind="call", text=LONG, call=None)
    longer = replace(worker, moments=(moment, *worker.moments))
    return replace(SNAPSHOT, workers=tuple(longer if w is worker else w for w in SNAPSHOT.workers))


@pytest.fixture
def app():
    options = Options(select="api-worker")
    return AgentDash(sample_fleet.StaticFeed(with_long_command()), sample_fleet.frozen(), options=options)


async def test_a_long_command_is_shown_to_its_end_and_no_farther(app):
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await pilot.pause()
        assert "THE-END" not in screen_text(app)
        shown = []
        for _ in range(40):
            await pilot.press("shift+right")
            await pilot.pause()
            shown.append(screen_text(app))
        assert "THE-END" in shown[-1]
        assert "Nothing more is cut here." in shown[-1]
        for _ in range(40):
            await pilot.press("shift+left")
        await pilot.pause()
        assert "docker run --rm" in screen_text(app)
        assert app.screen.query_one(WorkerPanel).shift_tab(-1) is False


async def test_another_tab_begins_at_the_left(app):
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter", "shift+right", "shift+right", "l", "h")
        await pilot.pause()
        assert "docker run --rm" in screen_text(app)


def test_start_of_a_line_is_left_out_by_cells():
    line = (Span("ab"), Span("漢字x", "muted"), Span("yz"))
    assert plain(without_start(line, 0)) == "ab漢字xyz"
    assert plain(without_start(line, 3)) == " 字xyz"
    assert plain(without_start(line, 8)) == "z"
    assert without_start(line, 20) == ()
