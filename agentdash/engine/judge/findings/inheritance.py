"""Checks of a child's policy, and of the network of its commands, against those of its parent.

A child inherits its parent's policy of the turn that spawns it (0.107+); a role may set its own. Approval
policies may differ without a finding: 0.1xx gave children `never`, whatever the parent's was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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
        direction = _drift(above.policy, period.policy, parent.cwd, thread.cwd) if above else None
        if above is not None and direction is not None:
            yield _policy_drift(thread, above, period, direction)
    yield from _network_less_than_parent(thread, parent)


def _stated(periods: tuple[PolicyPeriod, ...]) -> list[PolicyPeriod]:
    """Return the policies that the log states: a grant is for its thread alone (0.171)."""
    return [replace(period, policy=period.stated) for period in periods if not period.is_by_grant]


# ---------------------------------------------------------------- comparing policies


def _drift(parent: Policy, child: Policy, parent_cwd: str | None, child_cwd: str | None) -> Direction | None:
    """Return whether a child may do less or more than its parent, apart from their directories."""
    policies = (parent, child)
    if any(p.filesystem is Filesystem.UNKNOWN or p.network is Network.UNKNOWN for p in policies):
        return None
    has_own_directory = child_cwd != parent_cwd
    gained = set(parent.grants_less_than(child)) - ({child_cwd} if has_own_directory else set())
    lost = set(child.grants_less_than(parent)) - ({parent_cwd} if has_own_directory else set())
    freedom = _NETWORKS_BY_FREEDOM.index
    if gained or freedom(child.network) > freedom(parent.network):
        return "wider"
    return "narrower" if lost or child.network is not parent.network else None


def _policy_drift(thread: Thread, was: PolicyPeriod, now: PolicyPeriod, direction: Direction) -> Finding:
    """Return the finding about a child with another policy than its parent."""
    extent = "more" if direction == "wider" else "less"
    role = f" Its role, {thread.role}, may set a policy of its own." if thread.role else ""
    before, after = was.policy, now.policy
    lost, gained = after.grants_less_than(before), before.grants_less_than(after)
    cells, got = [], policy_in_words(after)
    if before.filesystem is not after.filesystem:
        cells.append((LayerField.FILES, before.filesystem.value, after.filesystem.value))
    elif lost or gained:
        files = f"{after.filesystem}, {f'not {lost[0]}' if lost else f'also {gained[0]}'}"
        cells.append((LayerField.FILES, before.filesystem.value, files))
        got = got.replace(f"files {after.filesystem}", f"files {files}")
    if before.network is not after.network:
        cells.append((LayerField.NETWORK, before.network.value, after.network.value))
    return make_finding(
        FindingKind.CHILD_POLICY_DRIFT,
        f"Children inherit their parent's policy; this one grants {extent} than its parent's.{role}",
        configured=policy_in_words(before),
        got=got,
        since=now.since,
        evidence=map(policy_evidence, (was, now)),
        direction=direction,
        severity="danger" if direction == "wider" else None,
        fields=[DifferingField(*cell, "configured", "parent", was.since, now.since) for cell in cells],
    )


# ---------------------------------------------------------------- comparing observations


def _network_less_than_parent(thread: Thread, parent: ParentPolicy) -> Iterator[Finding]:
    """Yield a finding where a child's commands lack the granted network that its parent's have."""
    parents = _under_a_network(parent.observations, parent.policies)
    cut = [each for each in _under_a_network(thread.observations, thread.policies) if _is_cut(each)]
    if not parents or not cut or any(map(_is_cut, parents)):
        return
    free, first = parents[0], min(cut, key=lambda each: each.first)
    is_flag = first.own_network is None
    lack = "carry the flag that marks it as off" if is_flag else "do not"
    name, expected, actual = LayerField.NETWORK, HOST_NETWORK, OWN_NETWORK
    if is_flag:
        name, expected = LayerField.NETWORK_FLAG, free.network_flag or UNSET
        actual = first.network_flag or UNSET
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
