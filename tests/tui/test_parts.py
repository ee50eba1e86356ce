"""Parts of screens as text, without an app."""

import re
import unicodedata
from importlib.resources import files

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from agentdash.model.fleet import Moment, StatePeriod, Tokens
from agentdash.model.state_paths import Installed, StatePath
from agentdash.model.states import State
from agentdash.model.worker import Got, Sandbox
from agentdash.tui.fleet.findings import group_findings
from agentdash.tui.fleet.findings import one_line as finding_line
from agentdash.tui.fleet.header import header, sources
from agentdash.tui.fleet.list import COLUMNS, card, empty_state, note, token_usage
from agentdash.tui.fleet.rows import flat, tree
from agentdash.tui.primitives.footer import hints
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.theme import ASCII, STATE_WIDTH, UNICODE, Look, sign
from agentdash.tui.worker.evidence import evidence_tab
from agentdash.tui.worker.findings import finding_details, remedies
from agentdash.tui.worker.inheritance import inheritance
from agentdash.tui.worker.layers import layers
from agentdash.tui.worker.pane_view import pane_view
from agentdash.tui.worker.panel import summary
from agentdash.tui.worker.timeline import calls, timeline
from agentdash.tui.worker.why import why

from . import fleet

LOOK, PLAIN = Look(fleet.NOW, UNICODE), Look(fleet.NOW, ASCII)
SNAPSHOT = fleet.full_fleet()
BY_ID = {worker.id: worker for worker in SNAPSHOT.workers}
BY_NAME = {worker.name: worker for worker in SNAPSHOT.workers}


def text(lines):
    return "\n".join(plain(line).rstrip() for line in lines)


# ---------------------------------------------------------------- signs


def all_glyphs(glyphs):
    yield from glyphs.states.values()
    yield from glyphs.verdicts.values()
    yield from glyphs.directions.values()
    yield from glyphs.buckets.values()
    yield from (
        *glyphs.tree,
        glyphs.cursor,
        *glyphs.agrees,
        glyphs.ellipsis,
        glyphs.dot,
        glyphs.rule,
        glyphs.stalled,
    )


def test_every_state_has_a_sign_of_its_own():
    for glyphs in (UNICODE, ASCII):
        assert set(glyphs.states) == set(State)
        assert len({*glyphs.states.values(), glyphs.stalled}) == len(State) + 1


def test_signs_are_one_cell_wide_everywhere_but_for_the_two_that_are_documented():
    wide = {c for glyph in all_glyphs(UNICODE) for c in glyph if unicodedata.east_asian_width(c) in "AWF"}
    assert wide == {"≠", "├", "└", "│", "─"}
    assert all(cell_len(c) == 1 for glyph in all_glyphs(UNICODE) for c in glyph)


def test_every_sign_has_an_ascii_twin():
    assert all(glyph.isascii() for glyph in all_glyphs(ASCII))


def test_the_state_column_holds_every_state():
    assert {width((sign(worker, UNICODE),)) <= STATE_WIDTH for worker in SNAPSHOT.workers} == {True}


def test_one_that_stalled_says_so_and_what_it_did_last():
    stalled = replace(
        next(w for w in SNAPSHOT.workers if w.state is State.RUNNING),
        stalled=fleet.NOW - 300,
        line="$ make all",
    )
    mark = sign(stalled, UNICODE)
    assert (mark.text, width((mark,)) <= STATE_WIDTH) == ("▹ running, stalled", True)
    assert "stalled: no output, no CPU, no I/O for 5m; last: $ make all" in text(
        summary(stalled, None, 100, LOOK)
    )


def test_the_timeline_has_the_states_between_what_happened():
    now = fleet.NOW
    history = (
        StatePeriod("running", now - 90, "turn open", now - 30),
        StatePeriod("waiting-approval", now - 30, "wants to push"),
    )
    moments = (Moment(now - 90, "turn", "started"), Moment(now - 60, "message", "On it."))
    lines = text(
        timeline(replace(SNAPSHOT.workers[0], history=history, moments=moments), 80, LOOK)
    ).splitlines()
    assert [line.split()[1:] for line in lines] == [
        ["!", "waiting", "approval", "wants", "to", "push", "30s"],
        ["agent:", "On", "it."],
        ["▸", "running", "turn", "open", "1m"],
        ["turn:", "started"],
    ]


def test_who_needs_somebody_shows_on_its_parents_row():
    running = next(w for w in SNAPSHOT.workers if w.state is State.RUNNING)
    parent = replace(running, sandbox=Sandbox(), line="waits", below=())
    waiting = replace(parent, below=("waiting-approval Pasteur", "failed-provider Lagrange"))
    assert text([note(waiting)]) == "! waiting-approval Pasteur +1  waits"
    assert text([note(parent)]) == "waits"


def test_an_exit_says_how():
    gone = BY_NAME["old-run"]
    killed = replace(gone, pane=replace(gone.pane, dead_status=None, dead_signal=9))
    assert [sign(w, UNICODE).text for w in (gone, killed, replace(gone, pane=None))] == [
        "✕ exited 137",
        "✕ exited sig 9",
        "✕ exited",
    ]


def test_colours_are_the_themes_alone():
    sheet = files("agentdash.tui").joinpath("agentdash.tcss").read_text()
    values = re.findall(r"(?:color|background|border[\w-]*|text-style)[\w-]*:\s*([^;]+);", sheet)
    assert len(values) > 20
    assert not [
        value
        for value in values
        if re.search(r"#[0-9a-fA-F]{3}|rgb|hsl|ansi_|\b(?:red|green|blue|white|black|grey)\b", value)
    ]


# ---------------------------------------------------------------- rows


def test_a_child_keeps_its_name_where_the_path_is_too_long():
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
@pytest.mark.parametrize("look", [LOOK, PLAIN], ids=["unicode", "ascii"])
def test_rows_of_every_width_fill_their_columns_exactly(cells, look):
    columns = COLUMNS.layout(cells, look.glyphs)
    rows = tree(SNAPSHOT.workers, SNAPSHOT.workers, look.glyphs.tree)
    for row in rows:
        line = columns.line((row, BY_ID[row.id]), look)
        assert cells - columns.rest_cells <= width(line) <= cells
    assert width(columns.titles()) == cells + 1  # the gutter


def test_a_row_of_a_wide_list():
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
        text(card((rows[BY_NAME[n].id], BY_NAME[n]), 42, PLAIN))
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
def test_used(tokens, shown):
    assert token_usage(tokens) == shown


def test_nobody_there_says_where_it_looked_and_what_is_missing():
    shown = text(empty_state(fleet.empty_fleet(), False, 60, LOOK))
    assert "No workers yet." in shown
    assert "✗ codex      no Codex home at /home/dev/.codex" in shown
    assert "✗ tmux       no tmux server on /tmp/tmux-1000/default" in shown
    assert "✓ processes" in shown
    assert "filter" in text(empty_state(SNAPSHOT, True, 60, LOOK))
    assert "Looking" in text(empty_state(None, False, 60, LOOK))


# ---------------------------------------------------------------- header and footer


def headline(cells, snapshot=SNAPSHOT, **more):
    return plain(header(snapshot, snapshot.counts(), LOOK, cells, **more)).rstrip()


def test_the_header_says_as_much_as_fits():
    assert headline(150) == (
        " agentdash   ! 6 need you   ▸ 3 running   ✓ 3 ready   ✕ 2 gone   ◦ 1 unknown   ≠ 3 mismatches"
        "        codex 0s ago ⋅ processes ok ⋅ tmux ok   20:14:07"
    )
    assert headline(80) == " ! 6 need you  ▸ 3  ✓ 3  ✕ 2  ◦ 1  ≠ 3 mismatches                      20:14:07"
    assert headline(45) == " ! 6  ▸ 3  ✓ 3  ✕ 2  ◦ 1  ≠ 3       20:14:07"
    assert headline(28) == " ! 6 ▸ 3 ✓ 3 ✕ 2 ◦ 1 ≠ 3"
    assert all(width(header(SNAPSHOT, SNAPSHOT.counts(), LOOK, cells)) <= cells for cells in range(1, 200))


def test_one_is_singular_and_unknown_is_shown_only_where_there_is_one():
    one = replace(SNAPSHOT, workers=(BY_NAME["deploy"],))
    assert "! 1 needs you   ▸ 0 running   ✓ 0 ready   ✕ 0 gone   ≠ 1 mismatch " in headline(150, one)


def test_a_banner_is_always_there():
    assert all("DEMO" in headline(cells, banner="DEMO") for cells in (45, 80, 120, 200))


def test_failing_sources_say_what_is_wrong_and_good_ones_give_way():
    broken = replace(SNAPSHOT, sources=fleet.sources(tmux="no server on /tmp/tmux-1000/default"))
    assert "codex 0s ago ⋅ processes ok ⋅ tmux: no server on /tmp/tmux-1000/default" in headline(180, broken)
    assert "tmux: no server on⋯" in headline(120, broken)
    assert "processes" not in headline(120, broken)
    assert plain(sources(SNAPSHOT, LOOK, failing_only=True)) == ""


def test_hints_are_cut_whole_and_help_stays():
    ids = ("attention", "why", "open", "help")
    assert plain(hints(ids, 80, UNICODE)) == " a attention  w why  enter open  ? help"
    assert plain(hints(ids, 30, UNICODE)) == " a attention  w why  ⋯  ? help"
    assert plain(hints(ids, 12, ASCII)) == " ..  ? help"
    assert all(width(hints(ids, cells, UNICODE)) <= cells for cells in range(1, 60))


# ---------------------------------------------------------------- the panel


def test_the_three_layers_side_by_side():
    assert text(layers(BY_NAME["Pasteur"].sandbox, 80, LOOK)) == (
        "≠ mismatch    configured            applied               got 20:14:06\n"
        "files         all                   -                     no sandbox\n"
        "network       on                    -                     host's\n"
        "network flag  unset                 -                     ≠ 1\n"
        "CODEX_SANDBOX unset                 -                     ≠ seatbelt\n"
        "seccomp       none                  -                     none\n"
        "approval      never                 -                     -\n"
        "applied       asked to run outside of the sandbox: ended"
    )


def test_the_three_layers_one_below_the_other_where_it_is_narrow():
    assert text(layers(BY_NAME["api-worker"].sandbox, 42, LOOK)) == (
        "= match       configured    got 20:13:07\n"
        "files         workspace     in a sandbox\n"
        "network       off           own namespace\n"
        "network flag  1             1\n"
        "CODEX_SANDBOX -             unset\n"
        "seccomp       -             filter\n"
        "approval      on-request    -\n"
        "applied       codex-linux-sandbox: files\n"
        "              workspace, network off;\n"
        "              asked to run outside of ...\n"
        "writable      /home/dev/shop  /tmp\n"
        "              $TMPDIR"
    )


def test_what_was_applied_stands_between():
    shown = text(layers(BY_NAME["api-worker"].sandbox, 80, LOOK)).splitlines()
    assert shown[1].split("  ")[0] == "files"
    assert shown[1].count("workspace") == 2


def test_a_family_and_its_sandboxes():
    pasteur = BY_NAME["Pasteur"]
    shown = text(
        inheritance(
            pasteur, [w for w in fleet.full_fleet().workers if w.depth or w.children], None, 100, LOOK
        )
    ).splitlines()
    names = [line.split()[0] for line in shown[1:5]]
    assert names == ["main", "Lagrange", "Pasteur", "Pasteur"]
    assert "≠ flag 1, seatbelt, host's net, no sandbox" in shown[3]
    assert "ws net-" in shown[4]  # told less than its parent
    assert any("flag=; sandbox=  (against)" in line for line in shown)
    assert shown[-1].startswith("not known: the kernel's facts")


def test_what_a_sandbox_would_deny_who_is_started_in_it():
    rows = (
        StatePath("$XDG_DATA_HOME/opencode", "sessions database", "always"),
        StatePath("$PWD/.cache", "nothing much"),
    )
    installed = Installed({"opencode": rows, "aider": rows[1:]}, {"HOME": "/home/dev"})
    worker = BY_NAME["api-worker"]
    shown = text(inheritance(worker, [worker], installed, 100, LOOK))
    assert "opencode  /home/dev/.local/share/opencode (sessions database, needed)" in shown
    assert "aider" not in shown
    assert "would deny" not in text(inheritance(BY_NAME["Pasteur"], [], installed, 100, LOOK))


def test_a_network_that_is_open_against_the_policy_is_marked():
    assert "≠ host's" in text(layers(BY_NAME["deploy"].sandbox, 80, LOOK))


def test_no_difference_is_marked_that_the_judge_did_not_find():
    same = replace(BY_NAME["Pasteur"].sandbox, verdict="unverified")
    assert "≠" not in text(layers(same, 80, LOOK))


def test_nothing_configured_and_nothing_got_is_said_by_dashes():
    shown = text(layers(Sandbox(), 80, LOOK)).splitlines()
    assert shown[0].split() == ["?", "unverified", "configured", "applied", "got"]
    assert all(set(line[14:].split()) <= {"-"} for line in shown[1:])


def test_a_mediated_network_promises_no_flag():
    shown = text(layers(Sandbox("match", fleet.MEDIATED, None, Got(network_flag="unset")), 80, LOOK))
    assert "network       mediated" in shown
    assert "network flag  unset                 -                     unset" in shown


def test_a_finding_in_full_quotes_both_sides_and_names_the_remedy():
    shown = text(finding_details((fleet.DENIED,), 100, LOOK))
    for part in (
        fleet.DENIED.message,
        fleet.DENIED.configured,
        fleet.DENIED.got,
        fleet.DENIED.remedy,
        "stricter: work will fail",
        "1x",
    ):
        assert part in shown


def test_findings_of_the_fleet_are_grouped_and_newest_first():
    found = group_findings(SNAPSHOT.workers)
    assert [(each.finding.kind, [w.name for w in each.workers], each.times) for each in found] == [
        ("stale-network-flag", ["Lagrange", "Pasteur"], 18),
        ("foreign-sandbox-flag", ["Pasteur"], 9),
        ("denied-filesystem", ["fix tests"], 1),
        ("missing-network-flag", ["deploy"], 2),
    ]
    assert plain(finding_line(found[0], 118, LOOK)) == (
        "20:14:06 ≠ Lagrange, Pasteur       stale-network-flag        The flag says that the network is off; the kernel sa⋯ 18x"
    )


def test_the_worst_remedy_comes_first():
    both = replace(fleet.LOOSER, remedy="the worst first"), fleet.DENIED
    worker = replace(BY_NAME["deploy"], sandbox=replace(BY_NAME["deploy"].sandbox, findings=both[::-1]))
    assert remedies(worker) == ["the worst first", fleet.DENIED.remedy]


def test_the_timeline_shows_outcomes_newest_first():
    assert text(timeline(BY_NAME["Pasteur"], 60, LOOK)) == (
        "20:13:58  $ pytest -q tests/checkout              running 9s\n"
        "20:13:41  $ env | grep CODEX                         ok 0.0s\n"
        "20:13:27  trouble: stream disconnected before completion:⋯\n"
        "20:13:23  $ curl -m 3 https://registry.example.⋯ exit 6 3.0s\n"
        "20:13:09  apply_patch src/checkout/tot⋯ refused by user 0.2s\n"
        "20:12:57  $ npm run dev                    in the background\n"
        "20:12:53  agent: I'll run the tests first, then look at wh⋯\n"
        "20:12:52  turn: started\n"
        "19:59:07  policy: full access, network on, approval never\n"
        "10 Mar    you: Find out why the checkout tests fail, and m⋯"
    )


def test_calls_tell_what_was_asked_for_and_what_was_denied():
    shown = text(calls(BY_NAME["api-worker"], 90, LOOK))
    assert "requested escalation (escalated): the tests download a fixture" in shown
    assert "denied: curl: (6) Could not resolve host" in shown


def test_a_pane_is_shown_from_the_bottom():
    shown = text(pane_view(BY_NAME["fix tests"].pane, 20, LOOK)).split("\n")
    assert shown[0] == "pane %7 in work:7:agents, 80x24, drawn 3s ago"
    assert shown[-1] == "  > _"
    assert len(shown) == 20
    assert "No tmux pane" in text(pane_view(None, 20, LOOK))
    assert "is empty" in text(pane_view(fleet.pane(1, "\n\n"), 20, LOOK))


def test_why_shows_what_disagrees_too():
    shown = text(why(BY_NAME["fix tests"], 100, LOOK))
    assert "✓ screen      20:11:02  opencode.denied" in shown
    assert "✗ screen      20:14:05  redrawn" in shown
    assert "(against)" in shown
    assert fleet.DENIED.remedy in shown
    assert "pid 4100: holds the writer lock" in text(why(BY_NAME["main"], 100, LOOK))


def test_the_evidence_tab_says_where_to_read_on():
    shown = text(evidence_tab(BY_NAME["Pasteur"], 100, LOOK))
    for part in (
        BY_NAME["Pasteur"].id,
        BY_NAME["Pasteur"].file,
        "3 × unknown world_state2 skipped",
        "pid 4242: CODEX_THREAD_ID",
    ):
        assert part in shown


def test_somebody_below_who_needs_somebody_is_named():
    assert "! below it: waiting-approval Pasteur the Younger" in text(
        summary(BY_NAME["main"], None, 80, LOOK)
    )
    assert "child of main" in text(summary(BY_NAME["Pasteur"], "main", 80, LOOK))


@pytest.mark.parametrize("cells", [20, 42, 55, 88, 198])
def test_nothing_in_the_panel_is_wider_than_the_panel(cells):
    assert SNAPSHOT.workers
    for worker in SNAPSHOT.workers:
        for part in (
            summary(worker, "main", cells, LOOK),
            timeline(worker, cells, LOOK),
            calls(worker, cells, LOOK),
            why(worker, cells, LOOK),
        ):
            lines = list(part)
            assert lines
            assert all(width(line) <= max(cells, 44) for line in lines)
