"""The worker panel: summary, timeline, calls, pane."""

import pytest
from msgspec.structs import replace

from agentdash.model.fleet import StatePeriod
from agentdash.model.pane import ScreenUsage
from agentdash.model.states import State
from agentdash.model.thread import Moment, Tokens
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.tui.fleet.cells import COLUMNS
from agentdash.tui.fleet.rows import Row
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.theme import STATE_WIDTH, UNICODE, sign
from agentdash.tui.worker.pane_view import pane_view
from agentdash.tui.worker.panel import heading, summary
from agentdash.tui.worker.screen import why
from agentdash.tui.worker.timeline import calls, timeline
from agentdash.tui.worker.usage import usage_lines

from . import sample_fleet
from .rendering import LOOK, text
from .sample_fleet import BY_NAME, SNAPSHOT


def test_stalled_worker_shows_silence_and_last_line():
    stalled = replace(
        next(w for w in SNAPSHOT.workers if w.state is State.RUNNING),
        stalled=sample_fleet.NOW - 300,
        line="$ make all",
    )
    mark = sign(stalled, UNICODE)
    assert (mark.text, width((mark,)) <= STATE_WIDTH) == ("▸ running, stalled", True)
    assert "stalled: no output, no CPU, no I/O for 5m; last: $ make all" in text(summary(stalled, 100, LOOK))


def test_summary_names_descendants_that_need_the_user():
    assert "! below it: waiting-approval Pasteur the Younger" in text(summary(BY_NAME["main"], 80, LOOK))
    assert "child of main" in text([heading(BY_NAME["Pasteur"], "main", 80, LOOK)])


def test_timeline_interleaves_states_and_moments():
    now = sample_fleet.NOW
    history = (
        StatePeriod("running", now - 90, "turn open", now - 30),
        StatePeriod("waiting-approval", now - 30, "wants to push"),
    )
    moments = (Moment(now - 90, "turn", "started"), Moment(now - 60, "message", "On\n\n- it."))
    lines = text(
        timeline(replace(SNAPSHOT.workers[0], history=history, moments=moments), 80, LOOK)
    ).splitlines()
    assert [line.split()[1:] for line in lines] == [
        ["!", "waiting", "approval", "wants", "to", "push", "30s"],
        ["agent:", "On", "-", "it."],
        ["▸", "running", "turn", "open", "1m"],
        ["turn:", "started"],
    ]


def test_timeline_shows_outcomes_newest_first():
    lines = text(timeline(BY_NAME["Pasteur"], 60, LOOK)).splitlines()
    assert lines[:3] == [
        "20:13:58      $ pytest -q tests/checkout          running 9s",
        "20:13:41      $ env | grep CODEX                     ok 0.0s",
        "20:13:27      trouble: stream disconnected before completi⋯",
    ]
    assert lines[-2:] == [
        "19:59:07      policy: full access, network on, approval ne⋯",
        "10 Mar 19:14  you: Find out why the checkout tests fail, a⋯",
    ]


def test_calls_show_escalation_and_denial():
    shown = text(calls(BY_NAME["api-worker"], 90, LOOK))
    assert "asked to run outside of the sandbox: the tests download a fixture" in shown
    assert "denied: curl: (6) Could not resolve host" in shown


def test_prompt_is_quoted_with_its_command_whole_and_the_way_there():
    shown = text(summary(BY_NAME["api-worker"], 60, LOOK))
    for part in ("Would you like to run the following command?", "$ curl -m 3 http://example.com", "2. No"):
        assert any(line.startswith("▏") and part in line for line in shown.splitlines())
    assert "o goes to pane %4" in shown
    assert "No tmux pane is linked" in text(summary(BY_NAME["Pasteur the Younger"], 60, LOOK))
    assert "goes to pane" not in text(summary(BY_NAME["main"], 60, LOOK))


@pytest.mark.parametrize("size", [(45, 50), (80, 24), (100, 30), (120, 36), (200, 50)])
def test_what_blocks_stands_above_the_table_with_its_remedy(size):
    cells = {45: 43, 80: 78}.get(size[0], int(size[0] * 0.48) - 2)
    lines = text(summary(BY_NAME["fix tests"], cells, LOOK)).splitlines()
    at = next(number for number, line in enumerate(lines) if "write denied" in line)
    assert any("remedy (Y)" in line for line in lines[at : at + 8])
    assert not any("configured " in line and "observed" in line for line in lines[:at])


def test_pane_view_is_aligned_to_the_bottom():
    shown = text(pane_view(BY_NAME["fix tests"].pane, 20, 80, LOOK)).split("\n")
    assert shown[0] == "pane %7 in work:7:agents, 80x24, drawn 3s ago"
    assert shown[-1] == "  > _"
    assert len(shown) == 20
    assert "No tmux pane" in text(pane_view(None, 20, 80, LOOK))
    assert "is empty" in text(pane_view(sample_fleet.pane(1, "\n\n"), 20, 80, LOOK))


@pytest.mark.parametrize("cells", [20, 42, 55, 88, 198])
def test_panel_lines_fit_into_the_panel(cells):
    assert SNAPSHOT.workers
    for worker in SNAPSHOT.workers:
        for part in (
            summary(worker, cells, LOOK, SNAPSHOT.workers),
            [heading(worker, "main", cells, LOOK)],
            timeline(worker, cells, LOOK),
            calls(worker, cells, LOOK),
            why(worker, cells, LOOK),
        ):
            lines = list(part)
            assert lines
            assert all(width(line) <= max(cells, 44) for line in lines)


def test_context_is_a_bar_with_tokens_and_cost():
    worker = replace(BY_NAME["api-worker"], tokens=Tokens(total=99_000, context=54_400, window=272_000))
    assert (
        text(usage_lines(worker, (), 80, LOOK)) == "context ━━━━────────────────  20% of 272k  99.0k tokens"
    )
    assert text(usage_lines(replace(worker, tokens=Tokens(total=99_000)), (), 80, LOOK)) == "99.0k tokens"
    assert usage_lines(replace(worker, tokens=Tokens()), (), 80, LOOK) == []


def test_a_context_that_is_nearly_full_is_marked():
    full = replace(BY_NAME["api-worker"], tokens=Tokens(context=230_000, window=272_000))
    (line,) = usage_lines(full, (), 80, LOOK)
    assert [span.tone for span in line if "━" in span.text or "84%" in span.text] == ["waited", "waited"]


def test_figures_of_a_screen_are_said_to_be_its():
    shown = ScreenUsage(model="GPT-5.2 Codex", context=41_200, percent=15.0, cost=0.12)
    worker = replace(BY_NAME["api-worker"], tokens=Tokens(), on_screen=shown)
    line = "from its screen  GPT-5.2 Codex ⋅ context 41.2k (15%) ⋅ $0.12"
    assert text(usage_lines(worker, (), 80, LOOK)) == line
    assert "$0.12" in plain(COLUMNS.layout(160, UNICODE, {"costs"}).line((Row(worker.id), worker), LOOK))


@pytest.mark.parametrize("cells", [20, 30, 45, 60, 80, 120])
def test_figures_of_usage_are_whole_at_every_width(cells):
    unread = ModelUsage(model=None, usage=TokenUsage(input=9_000))
    tokens = Tokens(total=99_000, context=55_000, window=272_000, by_model=(unread,))
    lines = usage_lines(replace(BY_NAME["api-worker"], tokens=tokens), (), cells, LOOK)
    assert all(width(line) <= cells for line in lines)
    words = " ".join(text([line]) for line in lines).split()
    assert {"99.0k", "tokens", "no", "price"} <= set(words)
    assert ("20%" in words) is (cells >= 30)


def test_tokens_are_shown_by_parts_of_different_prices():
    usage = TokenUsage(input=25_000, cached=70_000, output=5_000)
    (line,) = usage_lines(
        replace(BY_NAME["api-worker"], tokens=Tokens(by_model=(ModelUsage(model="mock", usage=usage),))),
        (),
        70,
        LOOK,
    )[1:]
    assert plain(line) == "tokens  ━━━━━──────────────━  25.0k in ⋅ 70.0k cached ⋅ 5.0k out"
    assert [len(span.text) for span in line if set(span.text) <= set("━─")] == [5, 14, 1]
