"""What changed in a thread's policy, and what a child has beside its parent.

A child inherits its parent's policy of the turn that spawns it (0.107+); a role may set its own. Approval may differ without a finding:
0.1xx gave children `never`, whoever their parent asked.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agentdash.engine.judge.findings.policy_checks import in_words
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Direction, Finding, FindingKind, Severity
from agentdash.model.fleet import PolicyPeriod, SandboxObservation, Thread
from agentdash.model.policy import Filesystem, Network, Policy

_FREEDOM = (Network.OFF, Network.MEDIATED, Network.ON)
_CUT_FLAG = "1"


class ParentPolicy(msgspec.Struct, frozen=True):
    """What a parent was told and what its commands were seen to have."""

    id: str
    policies: tuple[PolicyPeriod, ...]
    observations: tuple[SandboxObservation, ...]
    cwd: str | None = None

    def policy_at(self, at: float) -> PolicyPeriod | None:
        """The parent's policy in force at a time; its first where that began later."""
        before = [period for period in self.policies if period.since <= at]
        return before[-1] if before else self.policies[0] if self.policies else None


def parent_policy(parent: Thread | None) -> ParentPolicy | None:
    """What a child may be compared with."""
    return (
        ParentPolicy(parent.id, parent.policies, parent.observations, parent.cwd)
        if parent and parent.policies
        else None
    )


def inherited(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """How a child differs from its parent: in what it was told, and in what it got."""
    for period in thread.policies:
        above = parent.policy_at(period.since)
        if above is None:
            continue
        if direction := _drift(above.policy, period.policy, parent.cwd, thread.cwd):
            yield _drifted(period, above, direction, thread.role)
        if (
            period.policy.reviewer
            and above.policy.reviewer
            and period.policy.reviewer != above.policy.reviewer
        ):
            yield _reviewers(period, above, "its parent's")
    yield from _got_less(thread, parent)


def policy_changes(thread: Thread) -> Iterator[Finding]:
    """Changes of a thread's own policy, told once with the newest, and of who reviews its approvals."""
    pairs = list(zip(thread.policies, thread.policies[1:], strict=False))
    changes = [(was, now) for was, now in pairs if _essence(was.policy) != _essence(now.policy)]
    if changes:
        yield _changed(changes)
    for was, now in pairs:
        if was.policy.reviewer and now.policy.reviewer and was.policy.reviewer != now.policy.reviewer:
            yield _reviewers(now, was, "before")


# ---------------------------------------------------------------- comparing


def _essence(policy: Policy) -> Policy:
    return msgspec.structs.replace(policy, reviewer=None, profile=None)


def _drift(parent: Policy, child: Policy, parent_cwd: str | None, child_cwd: str | None) -> Direction | None:
    """Whether a child may less or more than its parent. Each has its own directory to work in, if these differ."""
    if Filesystem.UNKNOWN in (parent.filesystem, child.filesystem) or Network.UNKNOWN in (
        parent.network,
        child.network,
    ):
        return None
    own = {child_cwd} if child_cwd != parent_cwd else set()
    gained = set(parent.grants_less_than(child)) - own
    lost = set(child.grants_less_than(parent)) - ({parent_cwd} if own else set())
    if gained or _FREEDOM.index(child.network) > _FREEDOM.index(parent.network):
        return "looser"
    return "stricter" if lost or child.network is not parent.network else None


def _drifted(period: PolicyPeriod, above: PolicyPeriod, direction: Direction, role: str | None) -> Finding:
    more = "more" if direction == "looser" else "less"
    reason = f" Its role, {role}, may set a policy of its own." if role else ""
    return _between(
        period,
        above,
        kind=FindingKind.CHILD_POLICY_DRIFT,
        direction=direction,
        severity="danger" if direction == "looser" else "warning",
        message=f"Children inherit their parent's policy; this one was told {more} than its parent.{reason}",
    )


def _reviewers(now: PolicyPeriod, was: PolicyPeriod, whose: str) -> Finding:
    return _between(
        now,
        was,
        kind=FindingKind.REVIEWER_DRIFT,
        direction="label",
        severity="info",
        message=f"Approvals are answered by {now.policy.reviewer}, {whose} were by {was.policy.reviewer}.",
    )


def _changed(changes: list[tuple[PolicyPeriod, PolicyPeriod]]) -> Finding:
    was, now = changes[-1]
    looser = (
        bool(was.policy.grants_less_than(now.policy))
        or now.policy.network is Network.ON is not was.policy.network
    )
    finding = _between(
        now,
        was,
        kind=FindingKind.POLICY_CHANGED,
        direction="looser" if looser else "stricter",
        severity="info",
        message=f"Its policy changed from {was.policy.brief()} to {now.policy.brief()}: commands are held against the one in force then.",
    )
    return msgspec.structs.replace(finding, since=changes[0][1].since, count=len(changes))


def _got_less(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """A child whose commands lack the network that its parent's have, though both were granted it."""
    period = thread.policies[-1] if thread.policies else None
    above = parent.policy_at(period.since) if period else None
    if (
        period is None
        or above is None
        or Network.ON is not period.policy.network
        or above.policy.network is not Network.ON
    ):
        return
    parents = [s for s in parent.observations if not s.by_user]
    free = next((s for s in parents if not _is_cut(s)), None)
    if free is None or any(_is_cut(s) for s in parents):
        return
    if cut := [s for s in thread.observations if _is_cut(s) and not s.by_user]:
        first = min(cut, key=lambda s: s.first)
        quotes = (
            Evidence(free.source, free.first, "parent-got", free.quote),
            Evidence(first.source, first.first, "child-got", first.quote),
        )
        yield Finding(
            kind=FindingKind.CHILD_GOT_LESS,
            direction="stricter",
            severity="warning",
            configured=in_words(period.policy),
            got=f"{first.quote}; its parent: {free.quote}",
            message="Parent and child were granted the network: the parent's commands have it, the child's are told that they have not.",
            since=first.first,
            last=max(s.last for s in cut),
            count=sum(s.count for s in cut),
            evidence=quotes,
            calls=first.calls,
            pids=first.pids,
        )


def _is_cut(observation: SandboxObservation) -> bool:
    """By the kernel; where it was not asked, by the flag."""
    return (
        observation.network_flag == _CUT_FLAG if observation.own_network is None else observation.own_network
    )


def _between(
    now: PolicyPeriod,
    was: PolicyPeriod,
    *,
    kind: FindingKind,
    direction: Direction,
    severity: Severity,
    message: str,
) -> Finding:
    """A finding about two policies."""
    evidence = tuple(
        Evidence(
            "rollout",
            period.since,
            "policy-in-force",
            f"{period.origin}, line {period.line}: {in_words(period.policy)}",
        )
        for period in (was, now)
    )
    return Finding(
        kind=kind,
        direction=direction,
        severity=severity,
        configured=in_words(was.policy),
        got=in_words(now.policy),
        message=message,
        since=now.since,
        last=now.since,
        count=1,
        evidence=evidence,
    )
