"""Compare the sandbox that a worker CLI states on its screen with the one that it has stated in its log.

A label is wrong only if no policy of the thread was ever as it says: it may be of an earlier turn. One that
can change without a line in the log (`/status` of a TUI) is compared once a later turn has stated a policy.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentdash.engine.judge.findings.wording import period_in_words, policy_in_words
from agentdash.model.events import LabelRead
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Finding, FindingKind
from agentdash.model.layers import DifferingField, LayerField
from agentdash.model.pane import ScreenLabel
from agentdash.model.policy import Network, Policy
from agentdash.model.thread import PolicyPeriod, Thread


def label_findings(thread: Thread, read: LabelRead | None) -> Iterator[Finding]:
    """Yield a finding where the screen of a thread states another sandbox than the thread has."""
    if read is None or not thread.policies:
        return
    if not read.label.is_fixed and not any(at > read.at for at in thread.policy_lines):
        return
    differences = [_difference(read.label, period.policy) for period in thread.policies]
    index = max(thread.policy_index_at(read.at), 0)
    found = differences[index]
    if found is None or None in differences:
        return
    yield _finding(read, thread.policies[index], *found)


def _difference(label: ScreenLabel, policy: Policy) -> tuple[LayerField, str, str] | None:
    """Return the part in which a policy is not what a label states, with both values."""
    if "unknown" not in (label.filesystem, policy.filesystem) and label.filesystem is not policy.filesystem:
        return LayerField.FILES, label.filesystem, policy.filesystem
    if Network.UNKNOWN not in (label.network, policy.network) and label.network is not policy.network:
        return LayerField.NETWORK, label.network, policy.network
    missing = [root for root in label.roots if policy.may_write(root) is False]
    if missing:
        return LayerField.FILES, f"{label.filesystem}, {missing[0]}", f"{policy.filesystem}, not {missing[0]}"
    return None


def _finding(read: LabelRead, period: PolicyPeriod, field: LayerField, stated: str, got: str) -> Finding:
    info = FINDING_KINDS[FindingKind.LABEL_WRONG]
    return Finding(
        kind=FindingKind.LABEL_WRONG,
        direction=info.directions[0],
        severity=info.severity,
        configured=f"{policy_in_words(period.policy)} ({period.place})",
        got=f"the screen states: {read.label.text}",
        message=f"The screen states {field.value} {stated}, and the thread has {got}.",
        since=read.at,
        last=read.at,
        count=1,
        evidence=(
            Evidence(source=EvidenceSource.SCREEN, at=read.at, rule="screen-label", text=read.label.text),
            Evidence(
                source=EvidenceSource.ROLLOUT,
                at=period.since,
                rule="policy-in-force",
                text=period_in_words(period),
            ),
        ),
        fields=(
            DifferingField(
                name=field,
                expected=stated,
                actual=got,
                layer="configured",
                reference="screen",
                expected_at=read.at,
                actual_at=period.since,
            ),
        ),
    )
