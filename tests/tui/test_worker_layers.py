"""The three layers of a sandbox side by side."""

from msgspec.structs import replace

from agentdash.model.layers import DifferingField, LayerField
from agentdash.model.worker import Got, Sandbox
from agentdash.tui.worker.layers import Cell, LayerRow, layer_rows, layers

from . import sample_fleet
from .rendering import LOOK, text
from .sample_fleet import BY_NAME

MISMATCHED = BY_NAME["Pasteur"].sandbox


def test_layers_in_three_columns():
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


def test_layers_of_a_narrow_panel():
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


def test_applied_policy_has_the_middle_column():
    shown = text(layers(BY_NAME["api-worker"].sandbox, 80, LOOK)).splitlines()
    assert shown[1].split("  ")[0] == "files"
    assert shown[1].count("workspace") == 2


def test_open_network_against_the_policy_is_marked():
    assert "≠ host's" in text(layers(BY_NAME["deploy"].sandbox, 80, LOOK))


def test_only_cells_of_findings_are_marked():
    rows = layer_rows(MISMATCHED)
    assert {row.label for row in rows if row.observed.differs} == {"network flag", "CODEX_SANDBOX"}
    assert not any(row.applied.differs or row.configured.differs for row in rows)
    unmarked = text(layers(replace(MISMATCHED, findings=()), 80, LOOK))
    assert unmarked.count("≠") == 1  # the verdict in the head


def test_reference_of_a_cell_is_shown_unless_it_is_configured():
    drift = DifferingField(
        LayerField.NETWORK, expected="on", actual="off", layer="configured", reference="parent"
    )
    earlier = DifferingField(LayerField.NETWORK_FLAG, expected="1", actual="unset", reference="earlier")
    finding = replace(sample_fleet.LOOSER, fields=(drift, earlier))
    rows = {row.label: row for row in layer_rows(replace(MISMATCHED, findings=(finding,)))}
    assert rows["network"].configured == Cell("off (parent: on)", differs=True)
    assert rows["network flag"].observed == Cell("unset (then: 1)", differs=True)


def test_newest_difference_of_a_cell_is_shown():
    old = DifferingField(LayerField.NETWORK_FLAG, expected="unset", actual="1", actual_at=1.0)
    new = DifferingField(LayerField.NETWORK_FLAG, expected="unset", actual="yes", actual_at=2.0)
    finding = replace(sample_fleet.LOOSER, fields=(new, old))
    rows = {row.label: row for row in layer_rows(replace(MISMATCHED, findings=(finding,)))}
    assert rows["network flag"].observed.text == "yes"


def test_tmux_row_is_shown_only_where_it_differs():
    tmux = DifferingField(LayerField.TMUX, expected="in the sandbox", actual="outside %9")
    escaped = replace(MISMATCHED, findings=(replace(sample_fleet.LOOSER, fields=(tmux,)),))
    row = LayerRow("tmux", Cell("in the sandbox"), Cell(), Cell("outside %9", differs=True))
    assert layer_rows(escaped)[-1] == row
    assert "tmux" not in {row.label for row in layer_rows(MISMATCHED)}


def test_observation_under_an_earlier_policy_is_headed_so():
    got = replace(MISMATCHED.got, under_earlier_policy=True)
    head = text(layers(replace(MISMATCHED, got=got), 120, LOOK)).splitlines()[0]
    assert head.endswith("got 20:14:06 (earlier)")


def test_missing_layers_are_dashes():
    shown = text(layers(Sandbox(), 80, LOOK)).splitlines()
    assert shown[0].split() == ["?", "unverified", "configured", "applied", "got"]
    assert all(set(line[14:].split()) <= {"-"} for line in shown[1:])


def test_mediated_network_configures_no_flag():
    shown = text(layers(Sandbox("match", sample_fleet.MEDIATED, None, Got(network_flag="unset")), 80, LOOK))
    assert "network       mediated" in shown
    assert "network flag  unset                 -                     unset" in shown
