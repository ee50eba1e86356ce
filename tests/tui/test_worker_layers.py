"""The layers of a sandbox side by side: the marked cells are the findings' fields."""

from collections import Counter
from itertools import cycle, product
from typing import get_args

import pytest
from msgspec.structs import replace

from agentdash.model.findings import (
    FIELD_LABELS,
    FINDING_KINDS,
    Finding,
    FindingKind,
    difference,
    sides,
    value_in_words,
)
from agentdash.model.layers import (
    DifferingField,
    Layer,
    LayerField,
    Reference,
    configured_values,
    policy_values,
    requested_values,
)
from agentdash.model.worker import Got, Sandbox
from agentdash.tui.worker.layers import layer_rows, layers
from tests import demo_day

from . import sample_fleet
from .rendering import LOOK, text
from .sample_fleet import BY_NAME

MISMATCHED = BY_NAME["Pasteur"].sandbox
DENIALS = {
    FindingKind.DENIED_FILESYSTEM,
    FindingKind.DENIED_NETWORK,
    FindingKind.DENIED_UNDER_FULL_ACCESS,
    FindingKind.SANDBOX_CANNOT_START,
}
"""Kinds that are no difference between layers."""
PROMISES_OF_NO_POLICY = {"no sandbox", "in the sandbox", "server in no sandbox", "seatbelt", "unset"}
"""Expected values that no configured policy states."""


def marked(sandbox):
    """Return label and layer of the marked cells."""
    return {
        (row.label, layer) for row in layer_rows(sandbox) for layer, cell in row.cells.items() if cell.mark
    }


def named(sandbox):
    """Return label and layer of the cells that findings name."""
    return {(FIELD_LABELS[f.name], f.layer) for finding in sandbox.findings for f in finding.fields}


def shown(sandbox, cells=80):
    return text(layers(sandbox, cells, LOOK))


# ---------------------------------------------------------------- over the demo


def test_marked_cells_are_the_findings_fields_at_every_second_of_the_demo():
    checked = 0
    for worker in demo_day.workers():
        assert marked(worker.sandbox) == named(worker.sandbox), worker.name
        checked += bool(named(worker.sandbox))
    assert checked > 20


@pytest.mark.parametrize("layer", get_args(Layer))
def test_a_finding_of_any_kind_marks_its_fields_and_no_others(layer):
    sets = [*((name,) for name in LayerField), (LayerField.FILES, LayerField.NETWORK_FLAG)]
    for (kind, names), reference in zip(product(FindingKind, sets), cycle(get_args(Reference))):
        fields = tuple(
            DifferingField(name=name, expected="on", actual="1", layer=layer, reference=reference)
            for name in names
        )
        finding = replace(MISMATCHED.findings[0], kind=kind, fields=fields)
        sandbox = replace(MISMATCHED, findings=(finding,))
        assert marked(sandbox) == named(sandbox) == {(FIELD_LABELS[name], layer) for name in names}


def test_both_values_of_every_marked_cell_are_in_sight_in_the_demo():
    values = 0
    for worker in demo_day.workers():
        table = " ".join(shown(worker.sandbox, 160).split())
        for finding in worker.sandbox.findings:
            for field in finding.fields:
                for side in difference(field):
                    assert side.text in table, (worker.name, field)
                    values += 1
    assert values > 40


def test_every_kind_that_is_a_difference_names_a_field():
    kinds = {}
    for worker in demo_day.workers():
        for finding in worker.sandbox.findings:
            kinds.setdefault(finding.kind, []).append(bool(finding.fields))
    assert kinds.keys() == set(FindingKind)
    assert {kind for kind, have in kinds.items() if not any(have)} == DENIALS
    assert all(all(have) for kind, have in kinds.items() if kind not in DENIALS)


def test_fields_have_values_that_the_layers_have_or_had():
    """Actual values were in their layer at some second; expected ones in a policy of worker or parent."""
    had, policies, checked = {}, {}, Counter()
    for snapshot in demo_day.all_snapshots():
        for worker in snapshot.workers:
            policies[worker.id] = worker.policies
            got = had.setdefault(worker.id, set())
            got |= {("observed", *item) for item in worker.sandbox.got.values().items()}
            if worker.sandbox.applied_policy:
                got |= {("applied", *item) for item in policy_values(worker.sandbox.applied_policy).items()}
            if worker.sandbox.requested:
                got |= {("requested", *item) for item in requested_values(worker.sandbox.requested).items()}
            for period in worker.policies:
                values = configured_values(period.policy) | {LayerField.REVIEWER: period.policy.reviewer}
                got |= {("configured", *item) for item in values.items()}
    for worker in demo_day.workers():
        for finding in worker.sandbox.findings:
            for field in finding.fields:
                if field.name is LayerField.TMUX:
                    continue
                actual = field.actual.partition(", ")[0]
                stored = "unrestricted" if (actual, field.layer) == ("no sandbox", "configured") else actual
                is_had = (field.layer, field.name, stored) in had[worker.id]
                is_unstated = not any(known[:2] == (field.layer, field.name) for known in had[worker.id])
                assert is_had or is_unstated, (worker.name, field)
                checked["unstated"] += is_unstated
                if field.reference == "screen":
                    assert field.expected.rpartition(", ")[2] in finding.got
                    checked["screen"] += 1
                    continue
                of = worker.parent if field.reference == "parent" else worker.id
                layer = "requested" if field.reference == "requested" else "configured"
                if field.reference == "parent" and field.layer == "observed":
                    layer = "observed"
                stated = (layer, field.name, field.expected) in had[of]
                assert stated or field.expected in PROMISES_OF_NO_POLICY, (worker.name, field)
                checked[field.reference] += 1
    assert set(checked) >= {"requested", "configured", "allowed", "parent", "before", "screen"}


def test_sides_are_named_after_what_was_compared():
    labels = {
        finding.kind: tuple(side.label for side in sides(finding))
        for worker in demo_day.workers()
        for finding in worker.sandbox.findings
    }
    assert labels[FindingKind.CHILD_POLICY_DRIFT] == ("parent", "child")
    assert labels[FindingKind.CHILD_GOT_LESS] == ("parent", "child")
    assert labels[FindingKind.REVIEWER_DRIFT] in (("parent", "child"), ("before", "after"))
    assert labels[FindingKind.POLICY_CHANGED] == ("before", "after")
    assert labels[FindingKind.ESCALATED_NOT_HOST] == ("as allowed", "observed")
    assert labels[FindingKind.NETWORK_CUT] == ("configured", "observed")
    assert labels[FindingKind.DENIED_FILESYSTEM] == ("configured", "denied")


def test_sides_of_a_finding_are_not_the_same_words():
    for worker in demo_day.workers():
        for finding in worker.sandbox.findings:
            assert finding.configured != finding.got, (worker.name, finding.kind)


@pytest.mark.parametrize("kind", FindingKind)
def test_a_field_of_any_kind_marks_its_cell_alone(kind):
    field = DifferingField(LayerField.NETWORK, expected="on", actual="off", layer="applied")
    finding = Finding(
        kind=kind,
        direction=FINDING_KINDS[kind].directions[0],
        severity=FINDING_KINDS[kind].severity,
        configured="",
        got="",
        message="",
        since=1.0,
        last=1.0,
        count=1,
        fields=(field,),
    )
    assert marked(replace(MISMATCHED, findings=(finding,))) == {("network", "applied")}
    assert marked(replace(MISMATCHED, findings=(replace(finding, fields=()),))) == set()


# ---------------------------------------------------------------- as it looks


def test_layers_without_what_is_not_known():
    assert shown(MISMATCHED) == (
        "≠ mismatch    configured    observed 20:14:06\n"
        "network flag  unset         ≠ 1 (network off)\n"
        "CODEX_SANDBOX unset         ▾ seatbelt\n"
        "files         all writable  no sandbox\n"
        "network       on            the host's\n"
        "call filter   none          none\n"
        "approval      never"
    )


def test_cells_of_a_narrow_panel_are_wrapped_not_cut():
    assert shown(BY_NAME["api-worker"].sandbox, 42) == (
        "= match\n"
        "configured → applied → observed 20:13:07\n"
        "files         workspace → workspace\n"
        "              → in a sandbox\n"
        "network       off → off\n"
        "              → not the host's: its own\n"
        "network flag  1 (network off) → -\n"
        "              → 1 (network off)\n"
        "CODEX_SANDBOX - → - → unset\n"
        "call filter   - → - → on\n"
        "approval      on-request\n"
        "writable      /home/dev/shop  /tmp\n"
        "              $TMPDIR"
    )


def test_applied_policy_and_launcher_stand_in_one_column():
    lines = shown(BY_NAME["api-worker"].sandbox).splitlines()
    assert lines[0].index("applied") == lines[1].rindex("workspace")


def test_reference_of_a_cell_is_shown_unless_the_column_shows_it():
    drift = DifferingField(
        LayerField.NETWORK, expected="on", actual="off", layer="configured", reference="parent"
    )
    earlier = DifferingField(LayerField.NETWORK_FLAG, expected="1", actual="unset", reference="earlier")
    finding = replace(sample_fleet.LOOSER, fields=(drift, earlier))
    rows = {row.label: row.cells for row in layer_rows(replace(MISMATCHED, findings=(finding,)))}
    assert rows["network"]["configured"].text == "off; now on (parent: on)"
    flag = "unset; now 1 (network off) (configured then: 1 (network off))"
    assert rows["network flag"]["observed"].text == flag


def test_newest_difference_of_a_cell_is_shown():
    old = DifferingField(LayerField.NETWORK_FLAG, expected="unset", actual="yes", actual_at=1.0)
    new = DifferingField(LayerField.NETWORK_FLAG, expected="unset", actual="1", actual_at=2.0)
    finding = replace(sample_fleet.LOOSER, fields=(new, old))
    rows = {row.label: row.cells for row in layer_rows(replace(MISMATCHED, findings=(finding,)))}
    assert rows["network flag"]["observed"].text == "1 (network off)"


def test_worst_finding_of_a_cell_gives_its_mark():
    field = DifferingField(LayerField.NETWORK_FLAG, expected="unset", actual="1")
    findings = tuple(
        replace(sample_fleet.LOOSER, fields=(field,), severity=severity, direction=direction)
        for severity, direction in (("info", "label"), ("danger", "wider"), ("warning", "narrower"))
    )
    rows = {row.label: row.cells for row in layer_rows(replace(MISMATCHED, findings=findings))}
    assert rows["network flag"]["observed"].mark == ("wider", "danger")


def test_tmux_row_is_shown_only_where_it_differs():
    tmux = DifferingField(LayerField.TMUX, expected="in the sandbox", actual="outside %9")
    escaped = replace(MISMATCHED, findings=(replace(sample_fleet.LOOSER, fields=(tmux,)),))
    row = layer_rows(escaped)[0]
    assert (row.label, row.cells["configured"].text, row.cells["observed"].text) == (
        "tmux",
        "in the sandbox",
        "outside %9",
    )
    assert "tmux" not in {row.label for row in layer_rows(MISMATCHED)}


def test_observation_before_the_policy_is_dim_and_headed_so():
    old = replace(MISMATCHED, got=replace(MISMATCHED.got, under_earlier_policy=True), findings=())
    lines = layers(old, 120, LOOK)
    assert text(lines[:1]).endswith("observed before the change 20:14:06")
    assert {line[-1].tone for line in lines[1:6]} == {"muted"}


def test_nothing_known_is_one_line():
    assert shown(Sandbox()) == "  unverified  nothing is known of its sandbox"


def test_only_observed_has_one_column():
    lines = shown(Sandbox(got=Got(sandboxed=True, network_namespace="own", seccomp=2))).splitlines()
    assert lines == [
        "  unverified  observed",
        "files         in a sandbox",
        "network       not the host's: its own",
        "call filter   on",
    ]


def test_mediated_network_configures_no_flag():
    table = shown(Sandbox("match", sample_fleet.MEDIATED, None, Got(network_flag="unset")))
    assert "network       through a proxy" in table
    assert "network flag  unset            unset" in table


@pytest.mark.parametrize("cells", [20, 24, 30, 42, 56, 80, 160])
def test_no_value_is_cut_at_any_width(cells):
    for worker in (*BY_NAME.values(), *demo_day.snapshots()[60].workers):
        table = "".join(shown(worker.sandbox, cells).split())
        for row in layer_rows(worker.sandbox):
            assert "⋯" not in "".join(cell.text for cell in row.cells.values())
        assert "⋯" not in table


def test_values_have_one_wording():
    assert value_in_words(LayerField.NETWORK, "own namespace") == "not the host's: its own"
    assert value_in_words(LayerField.FILES, "read-only, not /tmp") == "read only, not /tmp"
    assert value_in_words(LayerField.NETWORK_FLAG, "yes") == "yes"
