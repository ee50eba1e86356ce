"""The tabs of a worker: Overview, Screen, Evidence; and the line about it."""

import pytest
from msgspec.structs import replace

from agentdash.model.findings import difference
from agentdash.model.fleet import StatePeriod
from agentdash.model.layers import DifferingField, LayerField
from agentdash.model.pane import ScreenUsage
from agentdash.model.thread import Moment, Tokens
from agentdash.model.tokens import ModelUsage, TokenUsage
from agentdash.model.worker import Got, Sandbox
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.worker.overview import heading, overview, remedies, sandbox_table, summary, timeline
from agentdash.tui.worker.panel import TABS, evidence_tab, tab_bar
from tests import demo_day

from . import sample_fleet
from .rendering import LOOK, screen_text, text
from .sample_fleet import BY_NAME, SNAPSHOT

WIDTHS = pytest.mark.parametrize("cells", [20, 42, 78, 160])


def words(lines):
    """Return lines as words: what is wrapped is not torn."""
    return " ".join(text(lines).split())


@WIDTHS
def test_lines_fit_into_the_panel(cells):
    assert SNAPSHOT.workers
    for worker in SNAPSHOT.workers:
        parts = (
            overview(worker, cells, LOOK, 50),
            overview(worker, cells, LOOK, 8),
            [heading(worker, "main", cells, LOOK)],
            evidence_tab(worker, cells, LOOK),
            [tab_bar(tab, cells, LOOK, worker.name) for tab in TABS],
        )
        assert all(parts)
        assert all(width(line) <= max(cells, 44) for lines in parts for line in lines)


# ---------------------------------------------------------------- state, question, fix


def test_heading_has_where_a_worker_is_and_what_it_has_used():
    usage = ModelUsage("gpt-5.2-codex", TokenUsage(input=100_000))
    tokens = Tokens(total=99_000, context=54_400, window=272_000, by_model=(usage,))
    worker = replace(BY_NAME["main"], tokens=tokens)
    shown = plain(heading(worker, None, 120, LOOK))
    assert shown.startswith(" main ⋅ codex 0.169.0 ⋅ window 1:agents ⋅ /home/dev/shop ⋅ $")
    assert shown.endswith("20% context")
    assert "child of main ⋅ on box" in plain(heading(replace(worker, host="box"), "main", 120, LOOK))
    screen = ScreenUsage(model="GPT-5.2 Codex", percent=15.0, cost=0.12)
    from_screen = replace(worker, tokens=Tokens(), on_screen=screen)
    assert plain(heading(from_screen, None, 120, LOOK)).endswith("$0.12 ⋅ 15% context")


def test_prompt_is_quoted_with_its_command_whole():
    shown = text(summary(BY_NAME["api-worker"], 60, LOOK))
    for part in ("Would you like to run the following command?", "$ curl -m 3 http://example.com", "2. No"):
        assert any(line.startswith("▏") and part in line for line in shown.splitlines())
    assert "No tmux pane is linked" in text(summary(BY_NAME["Pasteur the Younger"], 60, LOOK))
    assert "! below it: waiting approval Pasteur the Younger" in text(summary(BY_NAME["main"], 80, LOOK))


@WIDTHS
def test_what_blocks_stands_first_with_all_that_can_be_copied(cells):
    shown = words(summary(BY_NAME["fix tests"], cells, LOOK))
    assert shown.index("Fix Y") < shown.index("YY") < shown.index("Sandbox")
    joined = "".join(shown.split())
    for copied in remedies(BY_NAME["fix tests"]):
        assert "".join(copied.split()) in joined


# ---------------------------------------------------------------- sandbox


@WIDTHS
def test_both_values_of_every_difference_are_in_sight(cells):
    values = 0
    for worker in demo_day.workers():
        table = "".join(words(sandbox_table(worker.sandbox, cells, LOOK)).split())
        assert "⋯" not in table
        for finding in worker.sandbox.findings:
            for field in finding.fields:
                for side in difference(field):
                    if cells == 160:  # in a narrower one the lines of neighbours are between those of a cell
                        assert "".join(side.text.split()) in table, (worker.name, field)
                    values += 1
    assert values > 40


def test_sandbox_as_configured_and_one_that_differs():
    assert text(sandbox_table(BY_NAME["api-worker"].sandbox, 78, LOOK)).splitlines() == [
        "Sandbox        configured  actual     observed 20:13:07",
        " files         workspace   workspace  as configured",
        " network       off         off        as configured",
        " writable      /home/dev/shop  /tmp  $TMPDIR",
        " approval      on-request",
    ]
    shown = text(sandbox_table(BY_NAME["Pasteur"].sandbox, 100, LOOK)).splitlines()
    assert shown[1] == " network flag  unset         1 (network off)  ≠ configured"
    assert shown[2] == " CODEX_SANDBOX unset         seatbelt         ▾ less than configured"


@pytest.mark.parametrize(
    ("sandbox", "line"),
    [
        (Sandbox(), "Sandbox        Nothing is known of it."),
        (Sandbox(got=Got(sandboxed=True, network_namespace="own")), " network       isolated"),
        (Sandbox("unverified", sample_fleet.WORKSPACE), " network       off         not observed"),
        (
            Sandbox("match", sample_fleet.WORKSPACE, got=Got(sandboxed=False, network_namespace="host")),
            " files         workspace   no sandbox",
        ),
        (
            Sandbox("match", sample_fleet.FULL, got=Got(sandboxed=True, under_earlier_policy=True)),
            " files         all writable  in a sandbox  observed before the policy changed",
        ),
    ],
)
def test_nothing_is_said_to_be_as_configured_that_is_not(sandbox, line):
    assert line in [
        each.split("  - ")[0].rstrip() for each in text(sandbox_table(sandbox, 90, LOOK)).splitlines()
    ]


def test_what_a_value_is_compared_with_is_named():
    drift = DifferingField(
        LayerField.NETWORK, expected="on", actual="off", layer="configured", reference="parent"
    )
    asked = replace(
        drift, name=LayerField.FILES, expected="read-only", actual="workspace", reference="requested"
    )
    finding = replace(sample_fleet.LOOSER, fields=(drift, asked))
    shown = text(sandbox_table(Sandbox("mismatch", sample_fleet.WORKSPACE, findings=(finding,)), 100, LOOK))
    assert "▴ more than parent: on" in shown
    assert "read only  workspace" in shown
    assert "▴ more than asked for" in shown


# ---------------------------------------------------------------- timeline, screen


def test_timeline_interleaves_states_and_moments():
    now = sample_fleet.NOW
    history = (
        StatePeriod("running", now - 90, "turn open", now - 30),
        StatePeriod("waiting-approval", now - 30, "wants to push"),
    )
    moments = (Moment(now - 90, "turn", "started"), Moment(now - 60, "message", "On\n\n- it."))
    lines = text(timeline(replace(BY_NAME["main"], history=history, moments=moments), 80, LOOK)).splitlines()
    assert [line.split()[1:] for line in lines] == [
        ["!", "waiting", "approval", "wants", "to", "push", "30s"],
        ["agent:", "On", "-", "it."],
        ["▸", "running", "turn", "open", "1m"],
        ["turn:", "started"],
    ]


# ---------------------------------------------------------------- evidence


def test_evidence_for_and_against_with_links_and_facts():
    shown = text(evidence_tab(BY_NAME["fix tests"], 100, LOOK))
    for part in (sample_fleet.DENIED.message, sample_fleet.DENIED.got):
        assert "".join(part.split()) in "".join(shown.split())
    assert "= screen      20:11:02  opencode.denied" in shown
    assert "≠ screen      20:14:05  redrawn" in shown
    assert "(against)" in shown
    pasteur = text(evidence_tab(BY_NAME["Pasteur"], 100, LOOK))
    for part in (
        BY_NAME["Pasteur"].id,
        BY_NAME["Pasteur"].file,
        "3 × unknown world_state2 skipped",
        "pid 4242: CODEX_THREAD_ID",
        "not known: the kernel's facts",
    ):
        assert part in pasteur


# ---------------------------------------------------------------- the widgets


async def test_a_tab_begins_at_its_top_after_one_that_was_followed_to_its_end():
    screen = "\n".join(f"line {number}" for number in range(60))
    worker = replace(BY_NAME["Pasteur"], pane=sample_fleet.pane(7, screen))
    app = sample_fleet.dashboard(replace(SNAPSHOT, workers=(worker,)))
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.press("enter", "enter")
        for tab in ("Screen", "Evidence"):
            app.action_tab_named(tab)
            await pilot.pause()
        panel = app.screen.query_one("#tab")
        assert panel.max_scroll_y > 0
        assert panel.scroll_offset.y == 0
        assert " Pasteur ⋅ codex 0.169.0" in screen_text(app)
