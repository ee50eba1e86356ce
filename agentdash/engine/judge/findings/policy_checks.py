"""What commands of one thread were seen to have, against the policy in force when they ran.

| policy's network | `CODEX_SANDBOX_NETWORK_DISABLED` of a command | |
|---|---|---|
| off | `1` | match; `escalated-flag-left` where an allowed escalation really runs on the host |
| off | unset | `missing-network-flag`; `network-open` where the kernel shows that the network is there (not for the user's own `!cmd`) |
| on | unset | match |
| on | `1` | `stale-network-flag`; `network-cut` where the kernel shows a network of its own |

`CODEX_SANDBOX` is set by Codex on macOS alone, to `seatbelt`, and only for commands that it sandboxes: anywhere else its presence is a
`foreign-sandbox-flag`. The flags are labels: where the kernel was seen, it outranks them.

Files: what the launcher's arguments and the command's mounts let be written, against what the policy lets be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output import SANDBOX_FLAG
from agentdash.engine.judge.findings.remedies import EXCLUDE_FLAGS, OUTSIDE
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Direction, Finding, FindingKind, Severity
from agentdash.model.fleet import UNSET, PolicyPeriod, SandboxObservation
from agentdash.model.policy import Filesystem, Network, Policy

_DISABLED: Final = ("1", "true", "yes")
"""Values that say the network is disabled; Codex itself sets `1` only, others are the user's."""
_RETRIES: Final = ("on-failure", "untrusted")
"""Approval policies under which Codex itself asks to run a denied command again outside, which no file tells."""


class Seen(msgspec.Struct, frozen=True):
    """A sighting beside the policy it was made under."""

    observation: SandboxObservation
    period: PolicyPeriod | None
    """None where the file states no policy (bare files of 0.20)."""
    platform: str | None
    """Where the command ran (`sys.platform`), as far as that is known."""

    @property
    def policy(self) -> Policy:
        """The policy in force at the time."""
        return self.period.policy if self.period else Policy()

    @property
    def applied(self) -> Policy | None:
        """The policy that stands in the launcher's arguments."""
        return self.observation.applied.policy if self.observation.applied else None

    @property
    def disabled(self) -> bool:
        """Whether the flag says that the network is off."""
        return (self.observation.network_flag or "") in _DISABLED

    @property
    def cut(self) -> bool | None:
        """Whether the network is out of reach, by the kernel or else by what was applied; None: not known."""
        observation = self.observation
        if observation.mediated:
            return False
        if observation.own_network:
            return True
        applied = self.applied.network if self.applied else Network.UNKNOWN
        if observation.own_network is False and (
            observation.sandboxed is False or observation.seccomp == 0 or applied is Network.ON
        ):
            return False  # a filter without a namespace could still refuse sockets (through 0.114)
        return True if applied is Network.OFF else None

    @property
    def held(self) -> bool:
        """Whether the policy binds this command: it is the model's, and nothing more was allowed."""
        return self.observation.called and self.observation.granted is None


def compare(seen: Seen) -> list[Finding]:
    """The differences that one sighting shows."""
    return [finding for check in _CHECKS if (finding := check(seen)) is not None]


# ---------------------------------------------------------------- network


def _network_cut(seen: Seen) -> Finding | None:
    if seen.policy.network is not Network.ON or not seen.cut:
        return None
    how = (
        "runs in a network namespace of its own"
        if seen.observation.own_network
        else "was started with the network turned off"
    )
    return _finding(
        seen,
        kind=FindingKind.NETWORK_CUT,
        direction="stricter",
        severity="danger",
        message=f"The policy grants the network, but the command {how}: it has none.",
    )


def _network_open(seen: Seen) -> Finding | None:
    if (
        seen.policy.network is not Network.OFF
        or seen.cut is not False
        or not seen.held
        or seen.observation.mediated
    ):
        return None
    return _finding(
        seen,
        kind=FindingKind.NETWORK_OPEN,
        direction="looser",
        severity=_unless_retried(seen),
        message="The policy turns the network off, but the kernel shows the command in the host's network, with nothing that keeps it out."
        + _maybe_allowed(seen),
    )


def _stale_network_flag(seen: Seen) -> Finding | None:
    if seen.policy.network is not Network.ON or not seen.disabled or seen.cut:
        return None
    proven = seen.cut is False
    return _finding(
        seen,
        kind=FindingKind.STALE_NETWORK_FLAG,
        direction="label" if proven else "stricter",
        severity="warning",
        message="The flag says that the network is off; "
        + ("the kernel says that it is on. " if proven else "the policy says that it is on. ")
        + "Tools that trust the flag will skip network work.",
        remedy=EXCLUDE_FLAGS,
    )


def _missing_network_flag(seen: Seen) -> Finding | None:
    if (
        seen.policy.network is not Network.OFF
        or seen.observation.network_flag != UNSET
        or not seen.held
        or seen.cut is not None
    ):
        return None  # where the kernel was seen, it has been asked already
    return _finding(
        seen,
        kind=FindingKind.MISSING_NETWORK_FLAG,
        direction="looser",
        severity="warning",
        message="The policy turns the network off, but the command does not carry the flag that goes with it:"
        " it may run outside of the sandbox.",
    )


# ---------------------------------------------------------------- files


def _filesystem_narrower(seen: Seen) -> Finding | None:
    lost = _lost(seen)
    if not lost:
        return None
    return _finding(
        seen,
        kind=FindingKind.FILESYSTEM_NARROWER,
        direction="stricter",
        severity="danger",
        message=f"The policy lets {_listed(lost)} be written, the command's sandbox does not.",
    )


def _lost(seen: Seen) -> tuple[str, ...]:
    """What the policy lets be written and the command cannot write."""
    lost = seen.applied.grants_less_than(seen.policy) if seen.applied is not None else ()
    return lost or seen.observation.unwritable


def _filesystem_wider(seen: Seen) -> Finding | None:
    policy, observation = seen.policy, seen.observation
    if (
        policy.enforced_by != "codex"
        or policy.filesystem in (Filesystem.UNRESTRICTED, Filesystem.UNKNOWN)
        or not seen.held
    ):
        return None
    if observation.sandboxed is False:
        gained: tuple[str, ...] = ("/",)
    else:
        gained = policy.grants_less_than(seen.applied) if seen.applied is not None else ()
        gained = gained or observation.exposed
    if not gained:
        return None
    none = observation.sandboxed is False
    return _finding(
        seen,
        kind=FindingKind.FILESYSTEM_WIDER,
        direction="looser",
        severity=_unless_retried(seen),
        message=(
            "The policy restricts what may be written, but the kernel shows no sandbox around the command."
            + _maybe_allowed(seen)
        )
        if none
        else f"The policy keeps {_listed(gained)} from being written, the command's sandbox does not.",
    )


# ---------------------------------------------------------------- flags, escalations, sandboxes around


def _foreign_sandbox_flag(seen: Seen) -> Finding | None:
    value = seen.observation.sandbox_flag
    if value in (None, UNSET):
        return None
    sandboxed = seen.policy.enforced_by == "codex" and seen.observation.granted != "outside"
    if value == "seatbelt" and sandboxed and seen.platform != "linux":
        return (
            None  # as it should be on macOS; and where the platform is not known, nothing is held against it
        )
    reason = "Codex sets this on macOS alone" if sandboxed else "this policy starts no sandbox"
    return _finding(
        seen,
        kind=FindingKind.FOREIGN_SANDBOX_FLAG,
        direction="label" if seen.observation.seccomp == 0 else "stricter",
        severity="warning",
        message=f"The command carries {SANDBOX_FLAG}={value}, but {reason}: it is inherited.",
        remedy=EXCLUDE_FLAGS,
    )


def _escalated_not_host(seen: Seen) -> Finding | None:
    if seen.observation.granted != "outside" or not seen.observation.sandboxed:
        return None
    why = (
        " Paths that the policy hides keep a sandbox around it all the same." if seen.policy.has_deny else ""
    )
    return _finding(
        seen,
        kind=FindingKind.ESCALATED_NOT_HOST,
        direction="stricter",
        severity="warning",
        message=f"The command was allowed to run outside of the sandbox; the kernel shows it inside of one.{why}",
    )


def _escalated_flag_left(seen: Seen) -> Finding | None:
    observation = seen.observation
    if (
        observation.granted != "outside"
        or observation.sandboxed is not False
        or not seen.disabled
        or seen.policy.network is Network.ON
    ):
        return None
    return _finding(
        seen,
        kind=FindingKind.ESCALATED_FLAG_LEFT,
        direction="label",
        severity="warning",
        message="The command was allowed to run outside of the sandbox, and does: the flag that says the network is off is left over."
        " Tools that trust it will skip network work.",
        remedy="env -u CODEX_SANDBOX_NETWORK_DISABLED COMMAND",
    )


def _nested_sandbox(seen: Seen) -> Finding | None:
    unasked = (
        seen.policy.enforced_by == "nobody"
        and seen.observation.sandboxed
        and not seen.cut
        and not _lost(seen)
    )
    if not seen.observation.nested and not unasked:
        return None
    where = (
        "Its Codex was itself started"
        if seen.observation.nested
        else "The policy starts no sandbox, and the command runs"
    )
    return _finding(
        seen,
        kind=FindingKind.NESTED_SANDBOX,
        direction="stricter",
        severity="warning",
        message=f"{where} inside of a sandbox: whatever the policy grants, commands get no more than that lets through.",
        remedy=OUTSIDE,
    )


_CHECKS: Final[tuple[Callable[[Seen], Finding | None], ...]] = (
    _network_cut,
    _network_open,
    _stale_network_flag,
    _missing_network_flag,
    _filesystem_narrower,
    _filesystem_wider,
    _foreign_sandbox_flag,
    _escalated_not_host,
    _escalated_flag_left,
    _nested_sandbox,
)


# ---------------------------------------------------------------- shared pieces


def in_words(policy: Policy) -> str:
    """A policy in one line."""
    return f"files {policy.filesystem}, network {policy.network}, approval {policy.approval or 'not stated'}"


def kernel_words(observation: SandboxObservation) -> list[str]:
    """What the kernel was seen to say of a command, in words."""
    seccomp = {0: "no seccomp", 1: "seccomp strict", 2: "seccomp filter"}.get(
        observation.seccomp if observation.seccomp is not None else -1
    )
    network = (
        None
        if observation.own_network is None
        else "network namespace of its own"
        if observation.own_network
        else "the host's network"
    )
    sandboxed = (
        None if observation.sandboxed is None else "sandboxed" if observation.sandboxed else "not sandboxed"
    )
    return [
        words
        for words in (sandboxed, seccomp, network, "Codex's proxy" if observation.mediated else None)
        if words
    ]


def _finding(
    seen: Seen,
    *,
    kind: FindingKind,
    direction: Direction,
    severity: Severity,
    message: str,
    remedy: str | None = None,
) -> Finding:
    observation, period = seen.observation, seen.period
    stated = (
        f"{period.origin}, line {period.line}: {in_words(seen.policy)}"
        if period
        else "the file states no policy"
    )
    kernel = ", ".join(kernel_words(observation))
    return Finding(
        kind=kind,
        direction=direction,
        severity=severity,
        configured=in_words(seen.policy) if period else "not stated",
        got="; ".join(filter(None, (observation.quote, kernel)))
        + (f" (pid {observation.pids[-1]})" if observation.pids else ""),
        message=message,
        since=observation.first,
        last=observation.last,
        count=observation.count,
        evidence=tuple(_evidence(seen, stated, kernel)),
        remedy=remedy,
        calls=observation.calls,
        pids=observation.pids,
    )


def _evidence(seen: Seen, stated: str, kernel: str) -> Iterable[Evidence]:
    observation, at = seen.observation, seen.observation.first
    yield Evidence("rollout", seen.period.since if seen.period else at, "policy-in-force", stated)
    if observation.granted:
        allowed = (
            "to run outside of the sandbox" if observation.granted == "outside" else "additional permissions"
        )
        yield Evidence("rollout", at, "escalation", f"the call was allowed {allowed}")
    if observation.applied:
        policy = f": {in_words(observation.applied.policy)}" if observation.applied.policy else ""
        by = "no launcher" if observation.applied.by == "nothing" else observation.applied.by
        yield Evidence("process", at, "applied", f"{by} stands between Codex and the command{policy}")
    yield Evidence(observation.source, at, "flags-seen", observation.quote)
    if kernel:
        yield Evidence(
            "kernel" if observation.source == "environment" else observation.source,
            at,
            "kernel-facts",
            kernel,
        )


def _listed(paths: tuple[str, ...]) -> str:
    shown = ", ".join(paths[:3])
    return f"{shown} and {len(paths) - 3} more" if len(paths) > 3 else shown


def _unless_retried(seen: Seen) -> Severity:
    return "info" if seen.policy.approval in _RETRIES else "danger"


def _maybe_allowed(seen: Seen) -> str:
    """What else could have let it out, and leaves no mark."""
    if seen.policy.approval in _RETRIES:
        return f" Under approval {seen.policy.approval} this may be a retry that somebody allowed: no file tells."
    return " A rule in rules/*.rules that allows it would look the same."
