"""The fields of findings, over the demo: where their values come from, and how both sides are named."""

from collections import Counter

from agentdash.model.findings import DENIAL_KINDS, FindingKind, sides
from agentdash.model.layers import LayerField, configured_values, policy_values, requested_values
from tests import demo_day

PROMISES_OF_NO_POLICY = {"no sandbox", "in the sandbox", "server in no sandbox", "seatbelt", "unset"}
"""Expected values that no configured policy states."""


def test_every_kind_that_is_a_difference_names_a_field():
    kinds = {}
    for worker in demo_day.workers():
        for finding in worker.sandbox.findings:
            kinds.setdefault(finding.kind, set()).add(bool(finding.fields))
    assert kinds.keys() == set(FindingKind)
    for kind, has_fields in kinds.items():
        assert has_fields == {kind not in DENIAL_KINDS}, kind


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
                of = worker.parent if field.reference == "parent" else worker.id
                layer = "requested" if field.reference == "requested" else "configured"
                if field.reference == "parent" and field.layer == "observed":
                    layer = "observed"
                stated = (layer, field.name, field.expected) in had[of]
                assert stated or field.expected in PROMISES_OF_NO_POLICY, (worker.name, field)
                checked[field.reference] += 1
    assert set(checked) >= {"requested", "configured", "allowed", "parent", "before"}


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
