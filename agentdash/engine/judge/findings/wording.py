"""Policies and kernel facts as short phrases, for messages and evidence."""

from __future__ import annotations

from typing import Final

from agentdash.model.findings import FindingKind
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


def launcher_name(applied: Applied) -> str:
    """Return the program that Codex starts commands with; words where there is none."""
    return "none" if applied.by == "nothing" else applied.by


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
