"""Checks of a policy against the one before it and against the parent thread's.

A child inherits its parent's policy of the turn that spawns it (0.107+); a role may set its own. Approval
policies may differ without a finding: 0.1xx gave children `never`, whatever the parent's was.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.engine.judge.findings.wording import make_finding, policy_evidence, policy_in_words
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Direction, Finding, FindingKind
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, DifferingField, LayerField
from agentdash.model.observation import UNSET, SandboxObservation
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.thread import PolicyPeriod, Thread

_NETWORKS_BY_FREEDOM: Final = (Network.OFF, Network.MEDIATED, Network.ON)
_Earlier = Literal["parent", "before"]


class ParentPolicy(msgspec.Struct, frozen=True):
    """What a child is compared with: its parent's policies and the observations of its parent's commands."""

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
    return ParentPolicy(parent.policies, parent.observations, parent.cwd)


def inheritance_findings(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """Yield how a child differs from its parent: in its policies, and in the network of its commands."""
    for period in _stated(thread.policies):
        above = parent.policy_at(period.since)
        if above is None:
            continue
        if direction := _drift(above.policy, period.policy, parent.cwd, thread.cwd):
            extent = "more" if direction == "wider" else "less"
            role = f" Its role, {thread.role}, may set a policy of its own." if thread.role else ""
            message = (
                f"Children inherit their parent's policy; this one grants {extent} than its parent's.{role}"
            )
            found = _finding(FindingKind.CHILD_POLICY_DRIFT, message, above, period, "parent", direction)
            yield replace(found, severity="danger") if direction == "wider" else found
        yield from _reviewer_drift(above, period, "parent")
    yield from _network_less_than_parent(thread, parent)


def policy_changes(thread: Thread) -> Iterator[Finding]:
    """Yield one finding for all changes of a thread's own policy, and one for each change of its reviewer."""
    pairs = list(pairwise(period for period in _stated(thread.policies) if _is_known(period.policy)))
    changes = [(was, now) for was, now in pairs if _differs(was.policy, now.policy)]
    if changes:
        was, now = changes[-1]
        before, after = was.policy.brief(), now.policy.brief()
        change = f"from {before} to {after}"
        if before == after:
            fields = [f"{f.name}: {f.expected} to {f.actual}" for f in _policy_fields(was, now, "before")]
            change = f"({', '.join(fields) or 'paths protected inside the writable ones'})"
        is_online = now.policy.network is Network.ON and was.policy.network is not Network.ON
        is_wider = bool(was.policy.grants_less_than(now.policy)) or is_online
        message = f"Its policy changed {change}: commands are held against the one in force then."
        direction: Direction = "wider" if is_wider else "narrower"
        finding = _finding(FindingKind.POLICY_CHANGED, message, was, now, "before", direction)
        yield replace(finding, since=changes[0][1].since, count=len(changes))
    for was, now in pairs:
        yield from _reviewer_drift(was, now, "before")


def _stated(periods: tuple[PolicyPeriod, ...]) -> list[PolicyPeriod]:
    """Return the policies that the log states: a grant is for its thread alone (0.171)."""
    return [replace(period, policy=period.stated) for period in periods if not period.is_by_grant]


# ---------------------------------------------------------------- comparing policies


def _is_known(policy: Policy) -> bool:
    return policy.filesystem is not Filesystem.UNKNOWN and policy.network is not Network.UNKNOWN


def _differs(was: Policy, now: Policy) -> bool:
    """Return whether two policies differ in what both of them state."""
    same: dict[str, Any] = {"reviewer": now.reviewer, "profile": now.profile}
    if set(was.rules) == set(now.rules):
        same["rules"] = now.rules  # the strictest of those that fit a path decides, whatever the order
    if None in (was.approval, now.approval):
        same["approval"] = now.approval
    return replace(was, **same) != now


def _drift(parent: Policy, child: Policy, parent_cwd: str | None, child_cwd: str | None) -> Direction | None:
    """Return whether a child may do less or more than its parent, apart from their directories."""
    if not (_is_known(parent) and _is_known(child)):
        return None
    has_own_directory = child_cwd != parent_cwd
    gained = set(parent.grants_less_than(child)) - ({child_cwd} if has_own_directory else set())
    lost = set(child.grants_less_than(parent)) - ({parent_cwd} if has_own_directory else set())
    freedom = _NETWORKS_BY_FREEDOM.index
    if gained or freedom(child.network) > freedom(parent.network):
        return "wider"
    return "narrower" if lost or child.network is not parent.network else None


def _reviewer_drift(was: PolicyPeriod, now: PolicyPeriod, reference: _Earlier) -> Iterator[Finding]:
    """Yield the finding where others answer approvals than before, or than those of the parent."""
    before, after = was.policy.reviewer, now.policy.reviewer
    if not before or not after or before == after:
        return
    earlier = "its parent's" if reference == "parent" else "before"
    message = f"Approvals are answered by {after}, {earlier} were by {before}."
    finding = _finding(FindingKind.REVIEWER_DRIFT, message, was, now, reference)
    field = DifferingField(LayerField.REVIEWER, before, after, "configured", reference, was.since, now.since)
    yield replace(finding, configured=f"reviewer {before}", got=f"reviewer {after}", fields=(field,))


def _finding(
    kind: FindingKind,
    message: str,
    was: PolicyPeriod,
    now: PolicyPeriod,
    reference: _Earlier,
    direction: Direction | None = None,
) -> Finding:
    """Return a finding about two policies."""
    fields = list(_policy_fields(was, now, reference))
    got = policy_in_words(now.policy)
    paths = next((field.actual for field in fields if field.name is LayerField.FILES), "")
    if "," in paths:  # the same kind of policy, for other paths
        got = got.replace(f"files {now.policy.filesystem}", f"files {paths}")
    return make_finding(
        kind,
        message,
        configured=policy_in_words(was.policy),
        got=got,
        since=now.since,
        evidence=map(policy_evidence, (was, now)),
        direction=direction,
        fields=fields,
    )


def _policy_fields(was: PolicyPeriod, now: PolicyPeriod, reference: _Earlier) -> Iterator[DifferingField]:
    """Yield the configured cells in which two policies differ."""
    before, after = was.policy, now.policy
    lost, gained = after.grants_less_than(before), before.grants_less_than(after)
    files = str(after.filesystem)
    if before.filesystem is after.filesystem and (lost or gained):
        files = f"{files}, {f'not {lost[0]}' if lost else f'also {gained[0]}'}"
    cells = [
        (LayerField.FILES, str(before.filesystem), files),
        (LayerField.NETWORK, str(before.network), str(after.network)),
    ]
    if reference == "before":
        approvals = (before.approval or "not stated", after.approval or "not stated")
        cells.append((LayerField.APPROVAL, *approvals))
    for name, expected, actual in cells:
        if expected != actual:
            yield DifferingField(name, expected, actual, "configured", reference, was.since, now.since)


# ---------------------------------------------------------------- comparing observations


def _network_less_than_parent(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """Yield a finding where a child's commands lack the granted network that its parent's have."""
    parents = _under_a_network(parent.observations, parent.policies)
    cut = [each for each in _under_a_network(thread.observations, thread.policies) if _is_cut(each)]
    if not parents or not cut or any(map(_is_cut, parents)):
        return
    free, first = parents[0], min(cut, key=lambda each: each.first)
    name, expected, actual, lack = LayerField.NETWORK, HOST_NETWORK, OWN_NETWORK, "do not"
    if first.own_network is None:
        name, lack = LayerField.NETWORK_FLAG, "carry the flag that marks it as off"
        expected, actual = free.network_flag or UNSET, first.network_flag or UNSET
    yield make_finding(
        FindingKind.CHILD_GOT_LESS,
        f"Parent and child were granted the network: the parent's commands have it, the child's {lack}.",
        configured=policy_in_words(thread.policies[first.policy].policy),
        got=f"{first.quote}; its parent: {free.quote}",
        since=first.first,
        last=max(each.last for each in cut),
        count=sum(each.count for each in cut),
        evidence=(
            Evidence(free.source, free.first, "parent-got", free.quote),
            Evidence(first.source, first.first, "child-got", first.quote),
        ),
        calls=first.calls,
        pids=first.pids,
        fields=[DifferingField(name, expected, actual, "observed", "parent", free.last, first.last)],
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


def _is_cut(observation: SandboxObservation) -> bool:
    """Return whether a command has no network, by the kernel or else by the flag."""
    is_own = observation.own_network
    return observation.network_flag == "1" if is_own is None else is_own
