"""What findings have in common: the defaults of their kinds, and policies and kernel facts in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentdash.model.denials import Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Direction, Finding, FindingKind, Severity
from agentdash.model.layers import DifferingField
from agentdash.model.observation import Applied, SandboxObservation
from agentdash.model.policy import Policy
from agentdash.model.thread import PolicyPeriod

_SECCOMP_MODES: Final = {0: "no seccomp", 1: "seccomp strict", 2: "seccomp filter"}
DENIAL_KINDS: Final = {
    "filesystem": FindingKind.DENIED_FILESYSTEM,
    "network": FindingKind.DENIED_NETWORK,
    "sandbox": FindingKind.SANDBOX_CANNOT_START,
}
"""The kind of a finding about a denial, by what was denied (`Denial.what`)."""
_LISTED_PATHS: Final = 3
"""Paths named in a message; further ones are counted."""


def make_finding(
    kind: FindingKind,
    message: str,
    *,
    configured: str,
    got: str,
    since: float,
    evidence: Iterable[Evidence],
    last: float | None = None,
    count: int = 1,
    direction: Direction | None = None,
    severity: Severity | None = None,
    remedy: Remedy | None = None,
    calls: Iterable[str] = (),
    pids: Iterable[int] = (),
    fields: Iterable[DifferingField] = (),
) -> Finding:
    """Return a finding with the usual direction and severity of its kind, unless others are given."""
    usual = FINDING_KINDS[kind]
    return Finding(
        kind=kind,
        direction=direction or usual.directions[0],
        severity=severity or usual.severity,
        configured=configured,
        got=got,
        message=message,
        since=since,
        last=since if last is None else last,
        count=count,
        evidence=tuple(evidence),
        remedy=remedy,
        calls=tuple(calls),
        pids=tuple(pids),
        fields=tuple(fields),
    )


def policy_evidence(period: PolicyPeriod) -> Evidence:
    """Return the line that states the policy in force."""
    return Evidence(EvidenceSource.ROLLOUT, period.since, "policy-in-force", period_in_words(period))


def policy_in_words(policy: Policy | None) -> str:
    """Return a policy on one line."""
    if policy is None:
        return "not stated"
    return f"files {policy.filesystem}, network {policy.network}, approval {policy.approval or 'not stated'}"


def period_in_words(period: PolicyPeriod) -> str:
    """Return a policy with the line of the rollout that states it."""
    return f"{period.place}: {policy_in_words(period.policy)}"


def at_line(line: int, text: str) -> str:
    """Return what a line of the log states; without its number where that is not known (0)."""
    return f"line {line}: {text}" if line else text


def launcher_in_words(applied: Applied) -> str:
    """Return the launcher above a command, with the policy in its arguments."""
    if applied.by == "nothing":
        return "no sandbox launcher above it"
    return f"{applied.by}: {policy_in_words(applied.policy)}" if applied.policy else applied.by


def kernel_in_words(observation: SandboxObservation) -> list[str]:
    """Return the kernel facts of a command; empty where none are known."""
    facts: list[str] = []
    if observation.sandboxed is not None:
        facts.append("sandboxed" if observation.sandboxed else "not sandboxed")
    if observation.seccomp in _SECCOMP_MODES:
        facts.append(_SECCOMP_MODES[observation.seccomp])
    if observation.own_network is not None:
        facts.append("network namespace of its own" if observation.own_network else "the host's network")
    if observation.mediated:
        facts.append("the CLI's proxy")
    return facts


def paths_in_words(paths: tuple[str, ...]) -> str:
    """Return the first paths, and how many more there are."""
    shown = ", ".join(paths[:_LISTED_PATHS])
    more = len(paths) - _LISTED_PATHS
    return f"{shown} and {more} more" if more > 0 else shown
