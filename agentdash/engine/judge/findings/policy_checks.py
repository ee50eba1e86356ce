"""Checks of one observation against the policy that was in force when it was made.

| policy's network | `CODEX_SANDBOX_NETWORK_DISABLED` of a command | finding |
|---|---|---|
| off | `1` | none; `escalated-flag-left` where an allowed escalation really runs on the host |
| off | unset | `missing-network-flag`; `network-open` where the kernel shows the host's (not for `!cmd`) |
| on | unset | none |
| on | `1` | `stale-network-flag`; `network-cut` where the kernel shows a network namespace of its own |

Codex sets `CODEX_SANDBOX` on macOS alone, to `seatbelt`, and only for commands that it sandboxes: anywhere
else its presence is a `foreign-sandbox-flag`. The flags are labels: kernel facts, where known, outrank them.

Files: what the launcher's arguments and the command's mounts make writable, against what the policy makes
writable.

`sandbox-off-for-command`, of a CLI that decides for each command whether it runs in its sandbox (Claude
Code): the sandbox that was described to the agent did not hold a command. It asked for that
(`dangerouslyDisableSandbox`), or a setting excludes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from agentdash.engine.judge.findings.remedies import OUTSIDE, UNSET_FLAG
from agentdash.engine.judge.findings.remedy_forms import exclude_flags
from agentdash.engine.judge.findings.wording import (
    kernel_in_words,
    make_finding,
    paths_in_words,
    period_in_words,
    policy_in_words,
)
from agentdash.model.denials import PathFacts, Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Direction, Finding, FindingKind, Severity
from agentdash.model.layers import (
    HOST_NETWORK,
    IN_SANDBOX,
    NO_SANDBOX,
    OWN_NETWORK,
    SECCOMP_MODES,
    DifferingField,
    Layer,
    LayerField,
    Reference,
)
from agentdash.model.observation import SANDBOX_FLAG, UNSET, SandboxObservation
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.thread import PolicyPeriod

_DISABLED_VALUES: Final = ("1", "true", "yes")
"""Values of the network flag that mark the network as off; Codex itself sets `1` only."""
_APPROVALS_WITH_RETRY: Final = ("on-failure", "untrusted")
"""Approval policies under which Codex offers to run a denied command again outside: no file records it."""


class Comparison(msgspec.Struct, frozen=True):
    """An observation, and the policy that was in force when it was made."""

    observation: SandboxObservation
    period: PolicyPeriod | None
    """None if the file states no policy (files of 0.20)."""
    platform: str | None
    """`sys.platform` where the command ran, as far as that is known."""
    is_current: bool = True
    """Whether that policy is the one configured now."""
    places: PathFacts = PathFacts()
    """Where the configuration is that a remedy changes."""

    @property
    def policy(self) -> Policy:
        """The policy in force at the time; everything in it is unknown where none is stated."""
        return self.period.policy if self.period else Policy()

    @property
    def applied(self) -> Policy | None:
        """The policy in the launcher's arguments."""
        return self.observation.applied.policy if self.observation.applied else None

    @property
    def flag_disables_network(self) -> bool:
        """Whether the network flag marks the network as off."""
        return (self.observation.network_flag or "") in _DISABLED_VALUES

    @property
    def network_cut(self) -> bool | None:
        """Whether the network is out of reach, by the kernel or else by the launcher; None if unknown."""
        observation = self.observation
        if observation.mediated:
            return False
        if observation.own_network:
            return True
        applied = self.applied.network if self.applied else Network.UNKNOWN
        # a seccomp filter without a namespace could still refuse sockets (Codex through 0.114)
        unfiltered = observation.sandboxed is False or observation.seccomp == 0 or applied is Network.ON
        if observation.own_network is False and unfiltered:
            return False
        return True if applied is Network.OFF else None

    @property
    def is_behind_proxy(self) -> bool:
        """Whether the policy lets the network be reached through the CLI's proxy alone."""
        return self.policy.network is Network.MEDIATED and self.policy.enforced_by == "agent"

    @property
    def is_bound(self) -> bool:
        """Whether the policy binds this command: its call is known, and nothing more was granted.

        One that a rule may have let out is bound where the kernel shows that it was not.
        """
        observation = self.observation
        is_inside = observation.granted == "rule" and bool(observation.sandboxed)
        return observation.called and (observation.granted is None or is_inside)

    @property
    def lost_roots(self) -> tuple[str, ...]:
        """Roots that are writable under the policy, and not for the command."""
        stated = self.period.stated if self.period else self.policy  # a grant may have ended
        lost = self.applied.grants_less_than(stated) if self.applied is not None else ()
        return tuple(r for r in lost or self.observation.unwritable if not self.places.has_link(r))

    @property
    def gained_roots(self) -> tuple[str, ...]:
        """Roots that the launcher makes writable, and the policy does not."""
        if self.applied is None or any(map(self.places.has_link, self.policy.writable_roots)):
            return ()  # the launcher names the target of a link
        return self.policy.grants_less_than(self.applied)

    @property
    def may_be_retry(self) -> bool:
        """Whether an allowed retry outside of the sandbox would look the same."""
        return self.policy.approval in _APPROVALS_WITH_RETRY

    def differs(
        self,
        name: LayerField,
        *,
        expected: str,
        actual: str,
        layer: Layer = "observed",
        reference: Reference | None = None,
    ) -> DifferingField:
        """Return a cell of this observation that differs from the policy in force."""
        return DifferingField(
            name=name,
            expected=expected,
            actual=actual,
            layer=layer,
            reference=reference or ("configured" if self.is_current else "earlier"),
            expected_at=self.period.since if self.period else None,
            actual_at=self.observation.last,
        )

    def finding(
        self,
        kind: FindingKind,
        message: str,
        *,
        fields: tuple[DifferingField, ...],
        direction: Direction | None = None,
        severity: Severity | None = None,
        remedy: Remedy | None = None,
    ) -> Finding:
        """Return a finding about this observation; direction and severity are the usual ones unless given."""
        observation = self.observation
        kernel = ", ".join(kernel_in_words(observation))
        pid = f" (pid {observation.pids[-1]})" if observation.pids else ""
        return make_finding(
            kind,
            message,
            direction=direction,
            severity=severity,
            configured=policy_in_words(self.policy if self.period else None),
            got="; ".join(filter(None, (observation.quote, kernel))) + pid,
            since=observation.first,
            last=observation.last,
            count=observation.count,
            evidence=_comparison_evidence(self, kernel),
            remedy=remedy,
            calls=observation.calls,
            pids=observation.pids,
            fields=fields,
        )


def _comparison_evidence(comparison: Comparison, kernel: str) -> Iterable[Evidence]:
    observation, period = comparison.observation, comparison.period
    at = observation.first
    yield Evidence(
        source=EvidenceSource.ROLLOUT,
        at=period.since if period else at,
        rule="policy-in-force",
        text=period_in_words(period) if period else "the file states no policy",
    )
    if observation.rule:
        yield Evidence(
            source=EvidenceSource.CONFIG,
            at=at,
            rule="command-rule",
            text=f"{observation.rule} may let it run outside of the sandbox",
        )
    elif observation.granted:
        outside = observation.granted == "outside"
        allowed = "to run outside of the sandbox" if outside else "additional permissions"
        yield Evidence(EvidenceSource.ROLLOUT, at, "escalation", f"the call was allowed {allowed}")
    if observation.applied:
        policy = f": {policy_in_words(observation.applied.policy)}" if observation.applied.policy else ""
        by = "no launcher" if observation.applied.by == "nothing" else observation.applied.by
        yield Evidence(
            source=EvidenceSource.PROCESS,
            at=at,
            rule="applied",
            text=f"{by} stands between Codex and the command{policy}",
        )
    yield Evidence(observation.source, at, "flags-seen", observation.quote)
    if kernel:
        live = observation.source is EvidenceSource.ENVIRONMENT
        yield Evidence(EvidenceSource.KERNEL if live else observation.source, at, "kernel-facts", kernel)


# ---------------------------------------------------------------- the network, by the kernel and the flag


def network_cut(seen: Comparison) -> Finding | None:
    """Return a finding where the policy grants the network and the command has none."""
    if seen.is_behind_proxy and seen.observation.own_network and seen.applied is not None:
        if seen.applied.network is not Network.OFF:
            return None
        return seen.finding(
            FindingKind.NETWORK_CUT,
            "The network is to be reached through the CLI's proxy, but the command was started without one"
            " in a network namespace of its own: it has none.",
            fields=tuple(_network_fields(seen)),
        )
    if seen.policy.network is not Network.ON or not seen.network_cut:
        return None
    own = seen.observation.own_network
    how = "runs in a network namespace of its own" if own else "was started with the network turned off"
    return seen.finding(
        FindingKind.NETWORK_CUT,
        f"The policy grants the network, but the command {how}: it has none.",
        fields=tuple(_network_fields(seen)),
    )


def network_open(seen: Comparison) -> Finding | None:
    """Return a finding where the policy turns the network off and the kernel shows the host's."""
    if (
        seen.is_behind_proxy
        and seen.observation.sandboxed
        and seen.observation.own_network is False
        and seen.is_bound
    ):
        return seen.finding(
            FindingKind.NETWORK_OPEN,
            "The network is to be reached through the CLI's proxy alone, but the kernel shows the command in"
            " the host's network.",
            fields=tuple(_network_fields(seen)),
        )
    if seen.policy.network is not Network.OFF or seen.network_cut is not False:
        return None
    if not seen.is_bound or seen.observation.mediated:
        return None
    return seen.finding(
        FindingKind.NETWORK_OPEN,
        "The policy turns the network off, but the kernel shows the command in the host's network, with"
        " nothing that keeps it out." + _unrecorded_permission(seen),
        fields=tuple(_network_fields(seen)),
        severity="info" if seen.may_be_retry else None,
    )


def stale_network_flag(seen: Comparison) -> Finding | None:
    """Return a finding where the policy grants the network and the flag marks it as off."""
    if seen.policy.network is not Network.ON or not seen.flag_disables_network or seen.network_cut:
        return None
    proven = seen.network_cut is False
    authority = "the kernel says that it is on. " if proven else "the policy says that it is on. "
    return seen.finding(
        FindingKind.STALE_NETWORK_FLAG,
        f"The flag says that the network is off; {authority}Tools that trust the flag will skip"
        " network work.",
        fields=(_flag_field(seen, expected=UNSET),),
        direction="label" if proven else None,
        remedy=exclude_flags(seen.places),
    )


def missing_network_flag(seen: Comparison) -> Finding | None:
    """Return a finding where the flag is unset though the network is off, and no kernel fact decides."""
    if seen.policy.network is not Network.OFF or seen.observation.network_flag != UNSET:
        return None
    if not seen.is_bound or seen.network_cut is not None:
        return None
    return seen.finding(
        FindingKind.MISSING_NETWORK_FLAG,
        "The policy turns the network off, but the command does not carry the flag that goes with it: it may"
        " run outside of the sandbox.",
        fields=(_flag_field(seen, expected="1"),),
    )


def _unrecorded_permission(seen: Comparison) -> str:
    """Return what else could have let a command out of its sandbox without a record."""
    if seen.may_be_retry:
        approval = seen.policy.approval
        return f" Under approval {approval} this may be a retry that was allowed: no file records it."
    return " A rule in rules/*.rules that allowed it then would look the same."


def _flag_field(seen: Comparison, *, expected: str) -> DifferingField:
    actual = seen.observation.network_flag or UNSET
    return seen.differs(LayerField.NETWORK_FLAG, expected=expected, actual=actual)


def _network_fields(seen: Comparison) -> Iterator[DifferingField]:
    """Yield the launcher's network where it is not the policy's, and the network that the kernel shows."""
    configured, applied = seen.policy.network, seen.applied
    if applied is not None and applied.network not in (configured, Network.UNKNOWN):
        yield seen.differs(
            LayerField.NETWORK, expected=configured.value, actual=applied.network.value, layer="applied"
        )
    if seen.observation.own_network is not None:
        actual = OWN_NETWORK if seen.observation.own_network else HOST_NETWORK
        yield seen.differs(LayerField.NETWORK, expected=configured.value, actual=actual)


# ---------------------------------------------------------------- files, by launcher, mounts and kernel


def filesystem_narrower(seen: Comparison) -> Finding | None:
    """Return a finding where the command's sandbox denies writing to a root of the policy."""
    lost = seen.lost_roots
    if not lost:
        return None
    by_launcher = seen.applied is not None and bool(seen.applied.grants_less_than(seen.policy))
    return seen.finding(
        FindingKind.FILESYSTEM_NARROWER,
        f"The policy lets {paths_in_words(lost)} be written, the command's sandbox does not.",
        fields=(_files_field(seen, f"not {lost[0]}", by_launcher=by_launcher),),
    )


def filesystem_wider(seen: Comparison) -> Finding | None:
    """Return a finding where more may be written than under the policy, or no sandbox is there at all."""
    policy, observation = seen.policy, seen.observation
    if not policy.restricts_files or not seen.is_bound:
        return None
    if observation.sandboxed is False and policy.enforced_by == "agent":
        return None  # `sandbox_off_for_command`
    if observation.sandboxed is False:
        message = (
            "The policy restricts what may be written, but the kernel shows no sandbox around the command."
            + _unrecorded_permission(seen)
        )
        field = seen.differs(LayerField.FILES, expected=policy.filesystem.value, actual=NO_SANDBOX)
    else:
        by_launcher = seen.gained_roots
        gained = by_launcher or observation.exposed
        if not gained:
            return None
        message = (
            f"The policy keeps {paths_in_words(gained)} from being written, the command's sandbox does not."
        )
        field = _files_field(seen, f"also {gained[0]}", by_launcher=bool(by_launcher))
    return seen.finding(
        FindingKind.FILESYSTEM_WIDER,
        message,
        fields=(field,),
        severity="info" if seen.may_be_retry else None,
    )


def _files_field(seen: Comparison, difference: str, *, by_launcher: bool) -> DifferingField:
    """Return the cell of the launcher's policy, or of the command's mounts.

    Args:
        difference: the first path that differs, where the kinds of both policies are the same.
    """
    configured = seen.policy.filesystem
    applied = seen.applied.filesystem if seen.applied is not None else Filesystem.UNKNOWN
    if not by_launcher:
        return seen.differs(LayerField.FILES, expected=configured.value, actual=difference)
    actual = applied.value if applied is not configured else f"{applied.value}, {difference}"
    return seen.differs(LayerField.FILES, expected=configured.value, actual=actual, layer="applied")


_SEATBELT: Final = "seatbelt"
"""The one value that Codex gives `CODEX_SANDBOX`: on macOS, for commands that it sandboxes."""


# ---------------------------------------------------------------- marks of sandboxes


def foreign_sandbox_flag(seen: Comparison) -> Finding | None:
    """Return a finding where `CODEX_SANDBOX` is set and Codex would not have set it."""
    value = seen.observation.sandbox_flag
    if value is None or value == UNSET:
        return None
    may_start_one = seen.period is None or seen.policy.has_agent_sandbox
    sandboxed = may_start_one and seen.observation.granted != "outside"
    if value == _SEATBELT and sandboxed and seen.platform != "linux":
        return None  # as expected on macOS; where the platform is not known, it is not counted against it
    reason = "Codex sets this on macOS alone" if sandboxed else "this policy starts no sandbox"
    expected = _SEATBELT if sandboxed and seen.platform == "darwin" else UNSET
    return seen.finding(
        FindingKind.FOREIGN_SANDBOX_FLAG,
        f"The command carries {SANDBOX_FLAG}={value}, but {reason}: it is inherited.",
        fields=(seen.differs(LayerField.SANDBOX_FLAG, expected=expected, actual=value),),
        direction="label" if seen.observation.seccomp == 0 else None,
        remedy=exclude_flags(seen.places),
    )


def escalated_not_host(seen: Comparison) -> Finding | None:
    """Return a finding where a command was allowed to leave the sandbox and is still in one."""
    if seen.observation.granted != "outside" or not seen.observation.sandboxed:
        return None
    hidden = " Paths that the policy hides keep a sandbox around it all the same."
    return seen.finding(
        FindingKind.ESCALATED_NOT_HOST,
        "The command was allowed to run outside of the sandbox; the kernel shows it inside of one."
        + (hidden if seen.policy.has_deny else ""),
        fields=(seen.differs(LayerField.FILES, expected=NO_SANDBOX, actual=IN_SANDBOX, reference="allowed"),),
    )


def escalated_flag_left(seen: Comparison) -> Finding | None:
    """Return a finding where a command has left the sandbox as allowed and still carries the network flag."""
    observation = seen.observation
    if observation.granted != "outside" or observation.sandboxed is not False:
        return None
    if not seen.flag_disables_network or seen.policy.network is Network.ON:
        return None
    return seen.finding(
        FindingKind.ESCALATED_FLAG_LEFT,
        "The command was allowed to run outside of the sandbox, and does: the flag that marks the network as"
        " off is left over. Tools that trust it will skip network work.",
        fields=(
            seen.differs(
                LayerField.NETWORK_FLAG,
                expected=UNSET,
                actual=observation.network_flag or UNSET,
                reference="allowed",
            ),
        ),
        remedy=UNSET_FLAG,
    )


def nested_sandbox(seen: Comparison) -> Finding | None:
    """Return a finding where Codex itself runs in a sandbox, or a command of full access does."""
    nested, observation = seen.observation.nested, seen.observation
    explained = seen.network_cut or seen.lost_roots
    unasked = seen.policy.is_full_access and observation.sandboxed and not explained
    if not nested and not unasked:
        return None
    where = "Its Codex was itself started" if nested else "The policy starts no sandbox, and the command runs"
    return seen.finding(
        FindingKind.NESTED_SANDBOX,
        f"{where} inside of a sandbox: whatever the policy grants, commands get no more than that"
        " lets through.",
        fields=tuple(_nested_fields(seen)),
        remedy=OUTSIDE,
    )


def _nested_fields(seen: Comparison) -> Iterator[DifferingField]:
    full_access = seen.policy.is_full_access
    yield seen.differs(
        LayerField.FILES,
        expected=NO_SANDBOX if full_access else seen.policy.filesystem.value,
        actual=IN_SANDBOX if full_access else "in another sandbox",
    )
    if full_access and seen.observation.seccomp:
        mode = SECCOMP_MODES.get(seen.observation.seccomp, str(seen.observation.seccomp))
        yield seen.differs(LayerField.SECCOMP, expected=SECCOMP_MODES[0], actual=mode)


# ---------------------------------------------------------------- a CLI that decides for each command


def sandbox_off_for_command(seen: Comparison) -> Finding | None:
    """Return a finding where a command ran outside of the sandbox that was described to the agent."""
    policy, observation = seen.policy, seen.observation
    if policy.enforced_by != "agent" or not policy.restricts_files or not is_outside(observation):
        return None
    asked = observation.granted == "outside"
    if asked and observation.approved:
        why = "it asked for that, and a person allowed it"
    elif asked:
        why = "it asked for that (`dangerouslyDisableSandbox`), and no person was asked"
    else:
        why = "it did not ask for that; commands that `sandbox.excludedCommands` names do so"
    return seen.finding(
        FindingKind.SANDBOX_OFF_FOR_COMMAND,
        f"The command ran outside of the sandbox: {why}.",
        fields=(
            seen.differs(
                LayerField.FILES,
                expected=policy.filesystem.value,
                actual=NO_SANDBOX,
                layer="applied" if observation.recorded is False else "observed",
            ),
        ),
        severity="info" if asked and observation.approved else None,
        remedy=_forbid_flag() if asked else None,
    )


def is_outside(observation: SandboxObservation) -> bool:
    """Return whether a command ran outside of the sandbox, by its CLI's record or by the kernel."""
    return observation.recorded is False or (observation.sandboxed is False and observation.called)


def _forbid_flag() -> Remedy:
    return Remedy(
        text='{ "sandbox": { "allowUnsandboxedCommands": false } }',
        where="settings.json of Claude Code, beside the other keys of `sandbox`",
    )


_CHECKS: Final = (
    network_cut,
    network_open,
    stale_network_flag,
    missing_network_flag,
    filesystem_narrower,
    filesystem_wider,
    sandbox_off_for_command,
    foreign_sandbox_flag,
    escalated_not_host,
    escalated_flag_left,
    nested_sandbox,
)


def check_observation(seen: Comparison) -> list[Finding]:
    """Return the findings of one observation, in the order of the checks."""
    return [finding for check in _CHECKS if (finding := check(seen)) is not None]
