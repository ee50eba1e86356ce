"""The findings strip."""

from agentdash.tui.fleet.findings import group_findings
from agentdash.tui.fleet.findings import one_line as finding_line
from agentdash.tui.primitives.spans import plain

from .rendering import LOOK
from .sample_fleet import SNAPSHOT


def test_findings_are_grouped_newest_first():
    found = group_findings(SNAPSHOT.workers)
    assert [(each.finding.kind, [w.name for w in each.workers], each.times) for each in found] == [
        ("stale-network-flag", ["Lagrange", "Pasteur"], 18),
        ("foreign-sandbox-flag", ["Pasteur"], 9),
        ("denied-filesystem", ["fix tests"], 1),
        ("missing-network-flag", ["deploy"], 2),
    ]
    assert plain(finding_line(found[0], 118, LOOK)) == (
        "20:14:06 ⚑ Lagrange, Pasteur       stale-network-flag        "
        "The flag says that the network is off; the kernel sa⋯ 18x"
    )
