"""Configured against got: what differs, in which direction, and what would mend it.

| policy's network | `CODEX_SANDBOX_NETWORK_DISABLED` of a command | |
|---|---|---|
| off | `1` | match |
| off | unset | `missing-network-flag` (not for the user's own `!cmd`) |
| on | unset | match |
| on | `1` | `stale-network-flag`; `network-cut` where the kernel shows a network of its own |

`CODEX_SANDBOX` is set by Codex on macOS alone, to `seatbelt`, and only for commands that it sandboxes: anywhere else its presence is a
`foreign-sandbox-flag`. The flags are labels: where the kernel was seen, it outranks them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.facts.fleet import UNSET, PolicyPeriod, Sighting, Thread
from agentdash.facts.policy import Network, Policy
from agentdash.facts.worker import Direction, Evidence, Finding, Got, Judged, Sandbox, Severity, State, Verdict
from agentdash.judge.printed import SANDBOX_FLAG
from agentdash.judge.remedy import EXCLUDE_FLAGS, writable_root

_DISABLED: Final = ("1", "true", "yes")
"""Values that say the network is disabled; Codex itself sets `1` only, others are the user's."""


class Seen(msgspec.Struct, frozen=True):
    """A sighting beside the policy it was made under."""

    sighting: Sighting
    period: PolicyPeriod | None
    """None where the file states no policy (bare files of 0.20)."""
    platform: str | None
    """Where the command ran (`sys.platform`), as far as that is known."""

    @property
    def policy(self) -> Policy:
        """The policy in force at the time."""
        return self.period.policy if self.period else Policy()

    @property
    def disabled(self) -> bool:
        """Whether the flag says that the network is off."""
        return (self.sighting.network_flag or "") in _DISABLED


def judge_sandbox(thread: Thread, judged: Judged, platform: str | None) -> Sandbox:
    """The three layers of a thread, compared.

    Args:
        thread: the thread.
        judged: its state; a denial that stopped it is a finding, one that it got past is not.
        platform: `sys.platform` of the machine its live processes were seen on.
    """
    policy = thread.policy
    if thread.helper:
        return Sandbox("unverified", policy, None, _got(thread))
    found: list[Finding] = []
    for sighting in thread.sightings:
        if sighting.by_user:
            continue
        period = thread.policies[sighting.policy] if sighting.policy >= 0 else None
        seen = Seen(sighting, period, platform if sighting.source == "environment" and platform else thread.platform)
        found += [f for check in _CHECKS if (f := check(seen)) is not None]
    findings = _merged(found)
    verdict: Verdict = "mismatch" if findings else "match" if thread.sightings and policy is not None else "unverified"
    if (blocked := _blocked(thread, judged)) is not None:
        findings = (*findings, blocked)
    return Sandbox(verdict, policy, _applied(thread), _got(thread), findings)


# ---------------------------------------------------------------- the checks


def _network_cut(seen: Seen) -> Finding | None:
    if seen.policy.network is not Network.ON or not seen.sighting.own_network:
        return None
    return _finding(
        seen,
        kind="network-cut",
        direction="stricter",
        severity="danger",
        message="The policy grants the network, but the command runs in a network namespace of its own: it has none.",
    )


def _stale_network_flag(seen: Seen) -> Finding | None:
    if seen.policy.network is not Network.ON or not seen.disabled or seen.sighting.own_network:
        return None
    proven = seen.sighting.own_network is False
    return _finding(
        seen,
        kind="stale-network-flag",
        direction="label" if proven else "stricter",
        severity="warning",
        message="The flag says that the network is off; "
        + ("the kernel says that it is on. " if proven else "the policy says that it is on. ")
        + "Tools that trust the flag will skip network work.",
        remedy=EXCLUDE_FLAGS,
    )


def _missing_network_flag(seen: Seen) -> Finding | None:
    if seen.policy.network is not Network.OFF or seen.sighting.network_flag != UNSET or seen.sighting.escalated:
        return None
    if seen.sighting.own_network:
        return None  # the network is off, whatever the environment says
    proven = seen.sighting.own_network is False and seen.sighting.seccomp == 0
    return _finding(
        seen,
        kind="missing-network-flag",
        direction="looser",
        severity="danger" if proven else "warning",
        message="The policy turns the network off, but the command does not carry the flag that goes with it"
        + (", and the kernel shows no sandbox around it." if proven else ": it may run outside of the sandbox."),
    )


def _foreign_sandbox_flag(seen: Seen) -> Finding | None:
    value = seen.sighting.sandbox_flag
    if value in (None, UNSET):
        return None
    sandboxed = seen.policy.enforced_by == "codex" and not seen.sighting.escalated
    if value == "seatbelt" and sandboxed and seen.platform != "linux":
        return None  # as it should be on macOS; and where the platform is not known, nothing is held against it
    reason = "Codex sets this on macOS alone" if sandboxed else "this policy starts no sandbox"
    return _finding(
        seen,
        kind="foreign-sandbox-flag",
        direction="label" if seen.sighting.seccomp == 0 else "stricter",
        severity="warning",
        message=f"The command carries {SANDBOX_FLAG}={value}, but {reason}: it is inherited.",
        remedy=EXCLUDE_FLAGS,
    )


_CHECKS: Final[tuple[Callable[[Seen], Finding | None], ...]] = (
    _network_cut,
    _stale_network_flag,
    _missing_network_flag,
    _foreign_sandbox_flag,
)


def _blocked(thread: Thread, judged: Judged) -> Finding | None:
    """The denial that a thread did not get past, as a finding: no difference between the layers, but what stands in the way."""
    call = next((c for c in reversed(thread.calls) if c.denial and c.denial.certain), None)
    if judged.state is not State.BLOCKED_SANDBOX or call is None or call.denial is None:
        return None
    denial, at = call.denial, call.ended_at or call.at
    return Finding(
        kind=f"denied-{denial.what}",
        direction="stricter",
        severity="warning",
        configured=_in_words(thread.policy) if thread.policy else "not stated",
        got=denial.quote,
        message=f"The last thing it tried was denied{f': {denial.path} may not be written' if denial.path else ''}.",
        since=at,
        last=at,
        count=1,
        evidence=(Evidence("output", at, f"denied-{denial.what}", f"`{call.text}` -> {denial.quote}"),),
        remedy=writable_root(denial.path, thread.policy) if denial.what == "filesystem" and denial.path else None,
        calls=(call.id,),
    )


# ---------------------------------------------------------------- shared pieces


def _finding(seen: Seen, *, kind: str, direction: Direction, severity: Severity, message: str, remedy: str | None = None) -> Finding:
    sighting, period = seen.sighting, seen.period
    stated = f"{period.origin}, line {period.line}: {_in_words(seen.policy)}" if period else "the file states no policy"
    evidence = (
        Evidence("rollout", period.since if period else sighting.first, "policy-in-force", stated),
        Evidence(sighting.source, sighting.first, "flags-seen", sighting.quote),
    )
    return Finding(
        kind=kind,
        direction=direction,
        severity=severity,
        configured=_in_words(seen.policy) if period else "not stated",
        got=sighting.quote + (f" (pid {sighting.pids[-1]})" if sighting.pids else ""),
        message=message,
        since=sighting.first,
        last=sighting.last,
        count=sighting.count,
        evidence=evidence,
        remedy=remedy,
        calls=sighting.calls,
        pids=sighting.pids,
    )


def _merged(found: list[Finding]) -> tuple[Finding, ...]:
    """One finding per cause: what several sightings show is said once, and counted."""
    by_cause: dict[tuple[str, str], Finding] = {}
    for finding in found:
        cause = (finding.kind, finding.configured)
        if (known := by_cause.get(cause)) is None:
            by_cause[cause] = finding
            continue
        first, latest = (known, finding) if known.since <= finding.since else (finding, known)
        stronger = latest if latest.direction == "label" else first
        by_cause[cause] = msgspec.structs.replace(
            stronger,
            since=first.since,
            last=max(known.last, finding.last),
            count=known.count + finding.count,
            evidence=tuple(dict.fromkeys((*known.evidence, *finding.evidence))),
            calls=tuple(dict.fromkeys((*known.calls, *finding.calls))),
            pids=tuple(dict.fromkeys((*known.pids, *finding.pids))),
        )
    return tuple(sorted(by_cause.values(), key=lambda f: f.since))


def _in_words(policy: Policy) -> str:
    return f"files {policy.filesystem}, network {policy.network}, approval {policy.approval or 'not stated'}"


def _got(thread: Thread) -> Got:
    """What the newest commands were seen to have, each fact from the newest sighting that has it."""
    newest = sorted((s for s in thread.sightings if not s.by_user), key=lambda s: s.last, reverse=True)
    if not newest:
        return Got()
    own = next((s.own_network for s in newest if s.own_network is not None), None)
    return Got(
        network_flag=next((s.network_flag for s in newest if s.network_flag is not None), None),
        sandbox_flag=next((s.sandbox_flag for s in newest if s.sandbox_flag is not None), None),
        seccomp=next((s.seccomp for s in newest if s.seccomp is not None), None),
        network_namespace=None if own is None else "own" if own else "host",
        at=newest[0].last,
        source=newest[0].source,
    )


def _applied(thread: Thread) -> str | None:
    """What Codex did with the newest call that asked for more than the policy grants."""
    call = next((c for c in (*reversed(thread.open_calls), *reversed(thread.calls)) if c.escalation), None)
    if call is None or call.escalation is None:
        return None
    wish = "outside of the sandbox" if call.escalation.kind == "escalated" else "with additional permissions"
    return f"asked to run {wish}: {call.outcome or 'open'}"
