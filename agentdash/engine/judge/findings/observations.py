"""One observation of a command, compared with the policy that was in force when it was made.

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
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from agentdash.engine.judge.findings.remedies import OUTSIDE, UNSET_FLAG, exclude_flags
from agentdash.engine.judge.findings.wording import (
    kernel_in_words,
    launcher_in_words,
    make_finding,
    paths_in_words,
    period_in_words,
    policy_in_words,
)
from agentdash.model.denials import PathFacts, Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Finding, FindingKind, Severity
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
from agentdash.model.policy import Network, Policy
from agentdash.model.thread import PolicyPeriod, Thread

_DISABLED_VALUES: Final = ("1", "true", "yes")
"""Values of the network flag that mark the network as off; Codex itself sets `1` only."""
_APPROVALS_WITH_RETRY: Final = ("on-failure", "untrusted")
"""Approval policies under which Codex offers to run a denied command again outside: no file records it."""
_SEATBELT: Final = "seatbelt"
"""The one value that Codex gives `CODEX_SANDBOX`: on macOS, for commands that it sandboxes."""
_ASK_A_PERSON: Final = Remedy(
    '{ "sandbox": { "allowUnsandboxedCommands": false } }',
    where="settings.json of Claude Code, beside the other keys of `sandbox`",
)


class Comparison(msgspec.Struct, frozen=True):
    """An observation, and the policy that was in force when it was made."""

    observation: SandboxObservation
    period: PolicyPeriod | None
    """None if the file states no policy (files of 0.20)."""
    platform: str | None
    """`sys.platform` where the command ran, as far as that is known."""
    is_current: bool
    """Whether that policy is the one configured now."""
    places: PathFacts
    """Where the configuration is that a remedy changes."""

    @property
    def policy(self) -> Policy:
        """The policy in force at the time; everything in it is unknown if none is stated."""
        return self.period.policy if self.period else Policy()

    @property
    def applied(self) -> Policy:
        """The policy in the launcher's arguments; everything in it is unknown if they have none."""
        return (self.observation.applied.policy if self.observation.applied else None) or Policy()

    @property
    def flag_disables_network(self) -> bool:
        """Whether the network flag marks the network as off."""
        return self.observation.network_flag in _DISABLED_VALUES

    @property
    def network_cut(self) -> bool | None:
        """Whether the network is out of reach, by the kernel or else by the launcher; None if unknown."""
        observation = self.observation
        if observation.mediated:
            return False
        if observation.own_network:
            return True
        # a seccomp filter without a namespace could still refuse sockets (Codex through 0.114)
        is_unfiltered = observation.sandboxed is False or observation.seccomp == 0
        if observation.own_network is False and (is_unfiltered or self.applied.network is Network.ON):
            return False
        return True if self.applied.network is Network.OFF else None

    @property
    def is_bound(self) -> bool:
        """Whether the policy binds this command: its call is known, and nothing more was granted.

        One that a rule may have let out is bound if the kernel shows that it was not.
        """
        observation = self.observation
        is_inside = observation.granted == "rule" and bool(observation.sandboxed)
        return observation.called and (observation.granted is None or is_inside)

    @property
    def lost_roots(self) -> tuple[str, ...]:
        """Roots that are writable under the policy, and not for the command."""
        stated = self.period.stated if self.period else self.policy  # a grant may have ended
        lost = self.applied.grants_less_than(stated) or self.observation.unwritable
        return tuple(root for root in lost if not self.places.has_link(root))

    @property
    def may_be_retry(self) -> bool:
        """Whether an allowed retry outside the sandbox would look the same."""
        return self.policy.approval in _APPROVALS_WITH_RETRY

    @property
    def unrecorded_permission(self) -> str:
        """What else could have let the command out of its sandbox without a record, as a sentence."""
        if self.may_be_retry:
            approval = self.policy.approval
            return f" Under approval {approval} this may be a retry that was allowed: no file records it."
        return " A rule in rules/*.rules that allowed it then would look the same."

    def differs(
        self,
        name: LayerField,
        expected: str,
        actual: str,
        layer: Layer = "observed",
        reference: Reference | None = None,
    ) -> DifferingField:
        """Return a cell of this observation that differs from the policy in force."""
        reference = reference or ("configured" if self.is_current else "earlier")
        since = self.period.since if self.period else None
        return DifferingField(name, expected, actual, layer, reference, since, self.observation.last)

    def flag_differs(self, expected: str, reference: Reference | None = None) -> DifferingField:
        """Return the cell of the network flag."""
        actual = self.observation.network_flag or UNSET
        return self.differs(LayerField.NETWORK_FLAG, expected, actual, reference=reference)

    def finding(
        self,
        kind: FindingKind,
        message: str,
        *fields: DifferingField,
        is_label: bool = False,
        severity: Severity | None = None,
        remedy: Remedy | None = None,
    ) -> Finding:
        """Return a finding about this observation.

        Args:
            is_label: whether only a flag is wrong, by the kernel; else the direction is the usual one.
            severity: the usual one unless given.
        """
        observation = self.observation
        kernel = ", ".join(kernel_in_words(observation))
        pid = f" (pid {observation.pids[-1]})" if observation.pids else ""
        return make_finding(
            kind,
            message,
            direction="label" if is_label else None,
            severity=severity,
            configured=policy_in_words(self.policy if self.period else None),
            got="; ".join(filter(None, (observation.quote, kernel))) + pid,
            since=observation.first,
            last=observation.last,
            count=observation.count,
            evidence=self._evidence(kernel),
            remedy=remedy,
            calls=observation.calls,
            pids=observation.pids,
            fields=fields,
        )

    def _evidence(self, kernel: str) -> Iterator[Evidence]:
        observation, at = self.observation, self.observation.first
        since = self.period.since if self.period else at
        policy = period_in_words(self.period) if self.period else "the file states no policy"
        yield Evidence(EvidenceSource.ROLLOUT, since, "policy-in-force", policy)
        if observation.rule:
            rule = f"{observation.rule} may let it run outside the sandbox"
            yield Evidence(EvidenceSource.CONFIG, at, "command-rule", rule)
        elif observation.granted:
            is_outside = observation.granted == "outside"
            allowed = "to run outside the sandbox" if is_outside else "additional permissions"
            yield Evidence(EvidenceSource.ROLLOUT, at, "escalation", f"the call was allowed {allowed}")
        if observation.applied:
            yield Evidence(EvidenceSource.PROCESS, at, "applied", launcher_in_words(observation.applied))
        yield Evidence(observation.source, at, "flags-seen", observation.quote)
        if kernel:
            is_live = observation.source is EvidenceSource.ENVIRONMENT
            source = EvidenceSource.KERNEL if is_live else observation.source
            yield Evidence(source, at, "kernel-facts", kernel)


def check_observation(
    observation: SandboxObservation, thread: Thread, platform: str | None, places: PathFacts
) -> list[Finding]:
    """Return the findings of one observation; `platform` is that on which live processes were seen."""
    is_live = observation.source is EvidenceSource.ENVIRONMENT
    seen = Comparison(
        observation=observation,
        period=thread.policies[observation.policy] if observation.policy >= 0 else None,
        platform=platform if is_live and platform else thread.platform,
        is_current=observation.policy == len(thread.policies) - 1,
        places=places,
    )
    return [*_check_network(seen), *_check_files(seen), *_check_marks(seen)]


def observation_evidence(observation: SandboxObservation, *, agrees: bool) -> Evidence:
    """Return an observation as evidence for the verdict, or against it."""
    effects = {"refused": "its sandbox refused it", "reached": "a host answered"}
    words = [effects[observation.effect]] if observation.effect else []
    words += [observation.quote, *kernel_in_words(observation)]
    words += [launcher_in_words(observation.applied)] if observation.applied else []
    words += ["allowed to leave the sandbox"] if observation.granted == "outside" else []
    words += [f"{observation.rule} may let it run outside the sandbox"] if observation.rule else []
    words += [f"what it writes to {paths_in_words(observation.lost)} is lost"] if observation.lost else []
    times = f"{observation.count}x: " if observation.count > 1 else ""
    text = times + "; ".join(filter(None, words))
    return Evidence(observation.source, observation.first, "command-seen", text, agrees)


# ---------------------------------------------------------------- the network, by the kernel and the flag


def _check_network(seen: Comparison) -> Iterator[Finding]:
    policy, observation, fields = seen.policy, seen.observation, _network_fields(seen)
    proxied = "The network is to be reached through the CLI's proxy"
    if policy.network is Network.ON and seen.network_cut:
        how = "was started with the network turned off"
        how = "runs in a network namespace of its own" if observation.own_network else how
        message = f"The policy grants the network, but the command {how}: it has none."
        yield seen.finding(FindingKind.NETWORK_CUT, message, *fields)
    elif policy.network is Network.ON and seen.flag_disables_network:
        is_proven = seen.network_cut is False
        yield seen.finding(
            FindingKind.STALE_NETWORK_FLAG,
            f"The flag says that the network is off; the {'kernel' if is_proven else 'policy'} says that it"
            " is on. Tools that trust the flag will skip network work.",
            seen.flag_differs(UNSET),
            is_label=is_proven,
            remedy=exclude_flags(seen.places),
        )
    elif policy.network is Network.OFF and seen.is_bound:
        yield from _check_refused_network(seen)
    elif policy.network is Network.MEDIATED and policy.enforced_by == "agent":
        if observation.own_network and seen.applied.network is Network.OFF:
            message = f"{proxied}, but the command was started without one in a network namespace of its own."
            yield seen.finding(FindingKind.NETWORK_CUT, message, *fields)
        elif observation.own_network is False and observation.sandboxed and seen.is_bound:
            message = f"{proxied} alone, but the kernel shows the command in the host's network."
            yield seen.finding(FindingKind.NETWORK_OPEN, message, *fields)


def _check_refused_network(seen: Comparison) -> Iterator[Finding]:
    off = "The policy turns the network off, but"
    if seen.network_cut is False and not seen.observation.mediated:
        yield seen.finding(
            FindingKind.NETWORK_OPEN,
            f"{off} the kernel shows the command in the host's network, with nothing that keeps it out."
            + seen.unrecorded_permission,
            *_network_fields(seen),
            severity="info" if seen.may_be_retry else None,
        )
    elif seen.observation.effect == "reached":
        is_explained = seen.may_be_retry or seen.places.codex_home is None  # rules that are not known
        yield seen.finding(
            FindingKind.NETWORK_OPEN,
            f"{off} the command reached a host.{seen.unrecorded_permission}",
            seen.differs(LayerField.NETWORK, seen.policy.network.value, Network.ON.value),
            severity="info" if is_explained else None,
        )
    elif seen.network_cut is None and seen.observation.network_flag == UNSET:
        yield seen.finding(
            FindingKind.MISSING_NETWORK_FLAG,
            f"{off} the command does not carry the flag that goes with it: it may run outside the sandbox.",
            seen.flag_differs("1"),
        )


def _network_fields(seen: Comparison) -> Iterator[DifferingField]:
    """Yield the launcher's network if it is not the policy's, and the network that the kernel shows."""
    configured, applied = seen.policy.network, seen.applied.network
    if applied not in (configured, Network.UNKNOWN):
        yield seen.differs(LayerField.NETWORK, configured.value, applied.value, layer="applied")
    if seen.observation.own_network is not None:
        actual = OWN_NETWORK if seen.observation.own_network else HOST_NETWORK
        yield seen.differs(LayerField.NETWORK, configured.value, actual)


# ---------------------------------------------------------------- files, by launcher, mounts and kernel


def _check_files(seen: Comparison) -> Iterator[Finding]:
    policy, observation = seen.policy, seen.observation
    if lost := seen.lost_roots:
        message = f"The policy lets {paths_in_words(lost)} be written, the command's sandbox does not."
        is_launcher = bool(seen.applied.grants_less_than(policy))
        field = _files_field(seen, f"not {lost[0]}", is_launcher=is_launcher)
        yield seen.finding(FindingKind.FILESYSTEM_NARROWER, message, field)
    if not policy.restricts_files:
        return
    if policy.enforced_by == "agent" and is_outside(observation):
        yield _off_for_command(seen)
    if not seen.is_bound or (observation.sandboxed is False and policy.enforced_by == "agent"):
        return
    # the launcher names the target of a link
    is_linked = any(map(seen.places.has_link, policy.writable_roots))
    gained = () if is_linked else policy.grants_less_than(seen.applied)
    if observation.sandboxed is False:
        message = (
            "The policy restricts what may be written, but the kernel shows no sandbox around the command."
            + seen.unrecorded_permission
        )
        field = seen.differs(LayerField.FILES, policy.filesystem.value, NO_SANDBOX)
    elif paths := gained or observation.exposed:
        message = (
            f"The policy keeps {paths_in_words(paths)} from being written, the command's sandbox does not."
        )
        field = _files_field(seen, f"also {paths[0]}", is_launcher=bool(gained))
    else:
        return
    severity: Severity | None = "info" if seen.may_be_retry else None
    yield seen.finding(FindingKind.FILESYSTEM_WIDER, message, field, severity=severity)


def _files_field(seen: Comparison, difference: str, *, is_launcher: bool) -> DifferingField:
    """Return the cell of the launcher's policy, or of the command's mounts, with the first path that differs
    for two policies of one kind."""
    configured, applied = seen.policy.filesystem, seen.applied.filesystem
    if not is_launcher:
        return seen.differs(LayerField.FILES, configured.value, difference)
    actual = applied.value if applied is not configured else f"{applied.value}, {difference}"
    return seen.differs(LayerField.FILES, configured.value, actual, layer="applied")


def is_outside(observation: SandboxObservation) -> bool:
    """Return whether a command ran outside the sandbox, by its CLI's record or by the kernel."""
    return observation.recorded is False or (observation.sandboxed is False and observation.called)


def _off_for_command(seen: Comparison) -> Finding:
    """Return the finding of a CLI that decides for each command whether it runs in the sandbox that was
    described to the agent (Claude Code)."""
    observation = seen.observation
    is_asked = observation.granted == "outside"
    if is_asked and observation.approved:
        why = "it asked for that, and a person allowed it"
    elif is_asked:
        why = "it asked for that (`dangerouslyDisableSandbox`), and no person was asked"
    else:
        why = "it did not ask for that; commands that `sandbox.excludedCommands` names do so"
    layer: Layer = "applied" if observation.recorded is False else "observed"
    return seen.finding(
        FindingKind.SANDBOX_OFF_FOR_COMMAND,
        f"The command ran outside the sandbox: {why}.",
        seen.differs(LayerField.FILES, seen.policy.filesystem.value, NO_SANDBOX, layer),
        severity="info" if is_asked and observation.approved else None,
        remedy=_ASK_A_PERSON if is_asked else None,
    )


# ---------------------------------------------------------------- marks of sandboxes


def _check_marks(seen: Comparison) -> Iterator[Finding]:
    policy, observation = seen.policy, seen.observation
    if observation.sandbox_flag not in (None, UNSET):
        yield from _check_sandbox_flag(seen, observation.sandbox_flag or "")
    if observation.granted == "outside" and observation.sandboxed:
        hidden = " Paths that the policy hides keep a sandbox around it all the same."
        yield seen.finding(
            FindingKind.ESCALATED_NOT_HOST,
            "The command was allowed to run outside the sandbox; the kernel shows it inside one."
            + (hidden if policy.has_deny else ""),
            seen.differs(LayerField.FILES, NO_SANDBOX, IN_SANDBOX, reference="allowed"),
        )
    is_host = observation.granted == "outside" and observation.sandboxed is False
    if is_host and seen.flag_disables_network and policy.network is not Network.ON:
        yield seen.finding(
            FindingKind.ESCALATED_FLAG_LEFT,
            "The command was allowed to run outside the sandbox, and does: the flag that marks the network"
            " as off is left over. Tools that trust it will skip network work.",
            seen.flag_differs(UNSET, "allowed"),
            remedy=UNSET_FLAG,
        )
    is_explained = seen.network_cut or seen.lost_roots
    if observation.nested or (policy.is_full_access and observation.sandboxed and not is_explained):
        yield _nested(seen)


def _check_sandbox_flag(seen: Comparison, value: str) -> Iterator[Finding]:
    """Yield the finding where Codex would not have set `CODEX_SANDBOX`."""
    may_start_one = seen.period is None or seen.policy.has_agent_sandbox
    is_sandboxed = may_start_one and seen.observation.granted != "outside"
    if value == _SEATBELT and is_sandboxed and seen.platform != "linux":
        return  # as expected on macOS; an unknown platform is not held against it
    reason = "Codex sets this on macOS alone" if is_sandboxed else "this policy starts no sandbox"
    expected = _SEATBELT if is_sandboxed and seen.platform == "darwin" else UNSET
    yield seen.finding(
        FindingKind.FOREIGN_SANDBOX_FLAG,
        f"The command carries {SANDBOX_FLAG}={value}, but {reason}: it is inherited.",
        seen.differs(LayerField.SANDBOX_FLAG, expected, value),
        is_label=seen.observation.seccomp == 0,
        remedy=exclude_flags(seen.places),
    )


def _nested(seen: Comparison) -> Finding:
    is_nested, is_full_access = seen.observation.nested, seen.policy.is_full_access
    where = (
        "Its Codex was itself started" if is_nested else "The policy starts no sandbox, and the command runs"
    )
    expected = NO_SANDBOX if is_full_access else seen.policy.filesystem.value
    actual = IN_SANDBOX if is_full_access else "in another sandbox"
    fields = [seen.differs(LayerField.FILES, expected, actual)]
    if is_full_access and seen.observation.seccomp:
        mode = SECCOMP_MODES.get(seen.observation.seccomp, str(seen.observation.seccomp))
        fields.append(seen.differs(LayerField.SECCOMP, SECCOMP_MODES[0], mode))
    return seen.finding(
        FindingKind.NESTED_SANDBOX,
        f"{where} inside a sandbox: whatever the policy grants, commands get no more than that lets through.",
        *fields,
        remedy=OUTSIDE,
    )
