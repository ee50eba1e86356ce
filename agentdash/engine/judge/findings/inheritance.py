"""Checks of a policy against the one before it and against the parent thread's.

A child inherits its parent's policy of the turn that spawns it (0.107+); a role may set its own. Approval
policies may differ without a finding: 0.1xx gave children `never`, whatever the parent's was.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec

from agentdash.engine.judge.findings.wording import (
    make_finding,
    policy_evidence,
    policy_in_words,
)
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Direction, Finding, FindingKind, Severity
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, DifferingField, LayerField
from agentdash.model.observation import UNSET, SandboxObservation
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.thread import PolicyPeriod, Thread

_NETWORKS_BY_FREEDOM: Final = (Network.OFF, Network.MEDIATED, Network.ON)
_CUT_FLAG: Final = "1"
_Earlier = Literal["parent", "before"]


class ParentPolicy(msgspec.Struct, frozen=True):
    """What a child is compared with: its parent's policies and the observations of its parent's commands."""

    id: str
    policies: tuple[PolicyPeriod, ...]
    observations: tuple[SandboxObservation, ...]
    cwd: str | None = None

    def policy_at(self, at: float) -> PolicyPeriod | None:
        """Return the parent's policy in force at a time (unix seconds); None before the first."""
        before = [period for period in _stated(self.policies) if period.since <= at]
        return before[-1] if before else None


def parent_policy(parent: Thread | None) -> ParentPolicy | None:
    """Return what a child of this thread is compared with; None without a stated policy."""
    if parent is None or not parent.policies:
        return None
    return ParentPolicy(
        id=parent.id, policies=parent.policies, observations=parent.observations, cwd=parent.cwd
    )


def inheritance_findings(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """Yield how a child differs from its parent: in its policies, and in the network of its commands."""
    for period in _stated(thread.policies):
        above = parent.policy_at(period.since)
        if above is None:
            continue
        if direction := _drift(above.policy, period.policy, parent.cwd, thread.cwd):
            yield _policy_drift(period, above, direction, thread.role)
        if _reviewer_differs(above.policy, period.policy):
            yield _reviewer_drift(period, above, "parent")
    yield from _network_less_than_parent(thread, parent)


def policy_changes(thread: Thread) -> Iterator[Finding]:
    """Yield one finding for all changes of a thread's own policy, and one for each change of its reviewer."""
    known = [period for period in _stated(thread.policies) if _is_known(period.policy)]
    pairs = list(pairwise(known))
    changes = [(was, now) for was, now in pairs if _differs(was.policy, now.policy)]
    if changes:
        yield _policy_changed(changes)
    for was, now in pairs:
        if _reviewer_differs(was.policy, now.policy):
            yield _reviewer_drift(now, was, "before")


def _stated(periods: tuple[PolicyPeriod, ...]) -> list[PolicyPeriod]:
    """Return the policies that the log states: a grant is for its thread alone (0.171)."""
    own = (period for period in periods if not period.is_by_grant)
    return [msgspec.structs.replace(period, policy=period.stated) for period in own]


# ---------------------------------------------------------------- comparing policies


def _is_known(policy: Policy) -> bool:
    return policy.filesystem is not Filesystem.UNKNOWN and policy.network is not Network.UNKNOWN


def _differs(was: Policy, now: Policy) -> bool:
    """Return whether two policies differ in what both of them state."""
    same: dict[str, Any] = {"reviewer": now.reviewer, "profile": now.profile}
    if set(was.rules) == set(now.rules):
        same["rules"] = now.rules  # the strictest of those that fit a path decides, whatever the order
    if None in (was.approval, now.approval):
        same |= {"approval": now.approval, "may_ask": now.may_ask}
    return msgspec.structs.replace(was, **same) != now


def _reviewer_differs(was: Policy, now: Policy) -> bool:
    return bool(was.reviewer and now.reviewer and was.reviewer != now.reviewer)


def _drift(parent: Policy, child: Policy, parent_cwd: str | None, child_cwd: str | None) -> Direction | None:
    """Return whether a child may do less or more than its parent, apart from their directories."""
    if not (_is_known(parent) and _is_known(child)):
        return None
    own = {child_cwd} if child_cwd != parent_cwd else set()
    gained = set(parent.grants_less_than(child)) - own
    lost = set(child.grants_less_than(parent)) - ({parent_cwd} if own else set())
    freedom = _NETWORKS_BY_FREEDOM.index
    if gained or freedom(child.network) > freedom(parent.network):
        return "wider"
    return "narrower" if lost or child.network is not parent.network else None


def _policy_drift(
    period: PolicyPeriod, above: PolicyPeriod, direction: Direction, role: str | None
) -> Finding:
    extent = "more" if direction == "wider" else "less"
    reason = f" Its role, {role}, may set a policy of its own." if role else ""
    return _finding(
        FindingKind.CHILD_POLICY_DRIFT,
        f"Children inherit their parent's policy; this one grants {extent} than its parent's.{reason}",
        now=period,
        was=above,
        reference="parent",
        direction=direction,
        severity="danger" if direction == "wider" else None,
    )


def _reviewer_drift(now: PolicyPeriod, was: PolicyPeriod, reference: _Earlier) -> Finding:
    earlier = "its parent's" if reference == "parent" else "before"
    before, after = was.policy.reviewer or "", now.policy.reviewer or ""
    finding = _finding(
        FindingKind.REVIEWER_DRIFT,
        f"Approvals are answered by {after}, {earlier} were by {before}.",
        now=now,
        was=was,
        reference=reference,
    )
    field = _field(LayerField.REVIEWER, before, after, now=now, was=was, reference=reference)
    return msgspec.structs.replace(
        finding, configured=f"reviewer {before}", got=f"reviewer {after}", fields=(field,)
    )


def _policy_changed(changes: list[tuple[PolicyPeriod, PolicyPeriod]]) -> Finding:
    was, now = changes[-1]
    gained = was.policy.grants_less_than(now.policy)
    online = now.policy.network is Network.ON and was.policy.network is not Network.ON
    finding = _finding(
        FindingKind.POLICY_CHANGED,
        f"Its policy changed {_change_in_words(was, now)}: commands are held against the one in force then.",
        now=now,
        was=was,
        reference="before",
        direction="wider" if gained or online else "narrower",
    )
    return msgspec.structs.replace(finding, since=changes[0][1].since, count=len(changes))


def _change_in_words(was: PolicyPeriod, now: PolicyPeriod) -> str:
    """Return from what to what; of two policies with the same short form the fields that differ, or else that
    only paths inside of the writable ones do."""
    if was.policy.brief() != now.policy.brief():
        return f"from {was.policy.brief()} to {now.policy.brief()}"
    fields = [f"{f.name}: {f.expected} to {f.actual}" for f in _policy_fields(now, was, "before")]
    return f"({', '.join(fields) or 'paths protected inside of the writable ones'})"


def _finding(
    kind: FindingKind,
    message: str,
    *,
    now: PolicyPeriod,
    was: PolicyPeriod,
    reference: _Earlier,
    direction: Direction | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Return a finding about two policies."""
    fields = tuple(_policy_fields(now, was, reference))
    evidence = tuple(policy_evidence(period) for period in (was, now))
    return make_finding(
        kind,
        message,
        direction=direction,
        severity=severity,
        configured=policy_in_words(was.policy),
        got=_policy_with_paths(now.policy, fields),
        since=now.since,
        evidence=evidence,
        fields=fields,
    )


def _policy_with_paths(policy: Policy, fields: tuple[DifferingField, ...]) -> str:
    """Return a policy on one line, with the path that differs where the kind of both policies is the same."""
    words = policy_in_words(policy)
    paths = next((field.actual for field in fields if field.name is LayerField.FILES), "")
    return words.replace(f"files {policy.filesystem}", f"files {paths}") if "," in paths else words


def _policy_fields(now: PolicyPeriod, was: PolicyPeriod, reference: _Earlier) -> Iterator[DifferingField]:
    """Yield the configured cells in which two policies differ."""
    for name, expected, actual in _differing_values(was.policy, now.policy, reference):
        yield _field(name, expected, actual, now=now, was=was, reference=reference)


def _differing_values(
    before: Policy, after: Policy, reference: _Earlier
) -> Iterator[tuple[LayerField, str, str]]:
    lost, gained = after.grants_less_than(before), before.grants_less_than(after)
    if before.filesystem is not after.filesystem:
        yield LayerField.FILES, before.filesystem.value, after.filesystem.value
    elif lost or gained:
        difference = f"not {lost[0]}" if lost else f"also {gained[0]}"
        yield LayerField.FILES, before.filesystem.value, f"{after.filesystem.value}, {difference}"
    if before.network is not after.network:
        yield LayerField.NETWORK, before.network.value, after.network.value
    if reference == "before" and before.approval != after.approval:
        yield LayerField.APPROVAL, before.approval or "not stated", after.approval or "not stated"


def _field(
    name: LayerField, expected: str, actual: str, *, now: PolicyPeriod, was: PolicyPeriod, reference: _Earlier
) -> DifferingField:
    return DifferingField(
        name=name,
        expected=expected,
        actual=actual,
        layer="configured",
        reference=reference,
        expected_at=was.since,
        actual_at=now.since,
    )


# ---------------------------------------------------------------- comparing observations


def _network_less_than_parent(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """Yield a finding where a child's commands lack the granted network that its parent's have."""
    parents = _under_a_network(parent.observations, parent.policies)
    cut = [s for s in _under_a_network(thread.observations, thread.policies) if _is_cut(s)]
    if not parents or not cut or any(map(_is_cut, parents)):
        return
    free, first = parents[0], min(cut, key=lambda s: s.first)
    period = thread.policies[first.policy]
    by_flag = first.own_network is None
    lack = "carry the flag that marks it as off" if by_flag else "do not"
    yield make_finding(
        FindingKind.CHILD_GOT_LESS,
        f"Parent and child were granted the network: the parent's commands have it, the child's {lack}.",
        configured=policy_in_words(period.policy),
        got=f"{first.quote}; its parent: {free.quote}",
        since=first.first,
        last=max(s.last for s in cut),
        count=sum(s.count for s in cut),
        evidence=(
            Evidence(free.source, free.first, "parent-got", free.quote),
            Evidence(first.source, first.first, "child-got", first.quote),
        ),
        calls=first.calls,
        pids=first.pids,
        fields=(_network_field(first, free),),
    )


def _under_a_network(
    observations: tuple[SandboxObservation, ...], policies: tuple[PolicyPeriod, ...]
) -> list[SandboxObservation]:
    """Return what the model's commands had while the policy in force granted the network."""
    return [
        each
        for each in observations
        if not each.by_user and each.policy >= 0 and policies[each.policy].policy.network is Network.ON
    ]


def _network_field(child: SandboxObservation, parent: SandboxObservation) -> DifferingField:
    """Return the cell that shows the cut: the kernel's, or without kernel facts the flag."""
    by_kernel = child.own_network is not None
    flag = parent.network_flag or UNSET
    return DifferingField(
        name=LayerField.NETWORK if by_kernel else LayerField.NETWORK_FLAG,
        expected=HOST_NETWORK if by_kernel else flag,
        actual=OWN_NETWORK if by_kernel else child.network_flag or UNSET,
        reference="parent",
        expected_at=parent.last,
        actual_at=child.last,
    )


def _is_cut(observation: SandboxObservation) -> bool:
    """Return whether a command has no network, by the kernel or else by the flag."""
    if observation.own_network is None:
        return observation.network_flag == _CUT_FLAG
    return observation.own_network
