"""The three layers of a sandbox side by side."""

from msgspec.structs import replace

from agentdash.model.worker import Got, Sandbox
from agentdash.tui.worker.layers import layers

from . import sample_fleet
from .rendering import LOOK, text
from .sample_fleet import BY_NAME


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


def test_unverified_layers_have_no_marks():
    same = replace(BY_NAME["Pasteur"].sandbox, verdict="unverified")
    assert "≠" not in text(layers(same, 80, LOOK))


def test_missing_layers_are_dashes():
    shown = text(layers(Sandbox(), 80, LOOK)).splitlines()
    assert shown[0].split() == ["?", "unverified", "configured", "applied", "got"]
    assert all(set(line[14:].split()) <= {"-"} for line in shown[1:])


def test_mediated_network_configures_no_flag():
    shown = text(layers(Sandbox("match", sample_fleet.MEDIATED, None, Got(network_flag="unset")), 80, LOOK))
    assert "network       mediated" in shown
    assert "network flag  unset                 -                     unset" in shown
