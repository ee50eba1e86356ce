"""Commands that left a read-only sandbox because an automatic reviewer allowed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentdash.engine.judge.findings.wording import at_line, period_in_words, policy_in_words
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Finding, FindingKind
from agentdash.model.layers import DifferingField, LayerField
from agentdash.model.policy import Filesystem
from agentdash.model.thread import Call, PolicyPeriod, Thread

_AUTO_REVIEWERS: Final = ("auto_review", "guardian_subagent")
"""`approvals_reviewer` values of an automatic reviewer (0.145+, and its name before)."""


def auto_approved(thread: Thread) -> Iterator[Finding]:
    """Yield a finding where commands left a read-only sandbox while an automatic reviewer answers approvals
    (openai/codex#36570)."""
    let_out = list(_let_out(thread))
    if not let_out:
        return
    call, period = let_out[0]
    info = FINDING_KINDS[FindingKind.AUTO_APPROVED_OUTSIDE]
    yield Finding(
        kind=FindingKind.AUTO_APPROVED_OUTSIDE,
        direction=info.directions[0],
        severity=info.severity,
        configured=policy_in_words(period.policy),
        got=f"ran outside of the sandbox: {call.text}",
        message="A command left the read-only sandbox, and approvals are answered by an automatic reviewer,"
        " not by the user.",
        since=call.at,
        last=max(each.at for each, _ in let_out),
        count=len(let_out),
        evidence=_evidence(call, period),
        calls=tuple(each.id for each, _ in let_out),
        fields=(
            DifferingField(
                name=LayerField.REVIEWER,
                expected="user",
                actual=period.policy.reviewer or "",
                layer="configured",
                expected_at=period.since,
                actual_at=call.at,
            ),
        ),
    )


def _let_out(thread: Thread) -> Iterator[tuple[Call, PolicyPeriod]]:
    """Yield the calls that left a read-only sandbox by an automatic reviewer, with the policy in force."""
    for call in (*thread.calls, *thread.open_calls):
        index = thread.policy_index_of(call)
        if index < 0 or call.escalation is None or call.escalation.kind != "escalated":
            continue
        period = thread.policies[index]
        is_auto = period.policy.reviewer in _AUTO_REVIEWERS
        has_run = call.outcome == "running" or (call.outcome == "ended" and call.exit_code is not None)
        if is_auto and has_run and period.policy.filesystem is Filesystem.READ_ONLY:
            yield call, period


def _evidence(call: Call, period: PolicyPeriod) -> tuple[Evidence, ...]:
    policy = f"{period_in_words(period)}, reviewer {period.policy.reviewer}"
    escalation = at_line(call.line, call.text)
    return (
        Evidence(source=EvidenceSource.ROLLOUT, at=period.since, rule="policy-in-force", text=policy),
        Evidence(source=EvidenceSource.ROLLOUT, at=call.at, rule="escalation", text=escalation),
    )
