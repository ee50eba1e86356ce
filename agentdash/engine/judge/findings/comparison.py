"""An observation of a command beside the policy in force, and the finding that a check makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from agentdash.engine.judge.findings.wording import kernel_in_words, period_in_words, policy_in_words
from agentdash.model.denials import PathFacts, Remedy
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import FINDING_KINDS, Direction, Finding, FindingKind, Severity
from agentdash.model.layers import DifferingField, Layer, LayerField, Reference
from agentdash.model.observation import SandboxObservation
from agentdash.model.policy import Network, Policy
from agentdash.model.thread import PolicyPeriod

_DISABLED_VALUES: Final = ("1", "true", "yes")
"""Values of the network flag that mark the network as off; Codex itself sets `1` only."""
_APPROVALS_WITH_RETRY: Final = ("on-failure", "untrusted")
"""Approval policies under which Codex offers to run a denied command again outside: no file records it."""


class Comparison(msgspec.Struct, frozen=True):
    """An observation, and the policy that was in force when it was made."""

    observation: SandboxObservation
    period: PolicyPeriod | None
    """None where the file states no policy (files of 0.20)."""
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
        """Whether the network is out of reach, by the kernel or else by the launcher; None: not known."""
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
        """Return a finding about this observation.

        Args:
            kind: the kind; direction and severity are its usual ones unless given.
            message: one or two sentences for people.
            fields: the cells that differ.
            direction: where the kind has several.
            severity: where this case is graver or milder than usual.
            remedy: the narrowest change that would help.
        """
        observation, info = self.observation, FINDING_KINDS[kind]
        kernel = ", ".join(kernel_in_words(observation))
        pid = f" (pid {observation.pids[-1]})" if observation.pids else ""
        return Finding(
            kind=kind,
            direction=direction or info.directions[0],
            severity=severity or info.severity,
            configured=policy_in_words(self.policy if self.period else None),
            got="; ".join(filter(None, (observation.quote, kernel))) + pid,
            message=message,
            since=observation.first,
            last=observation.last,
            count=observation.count,
            evidence=tuple(_evidence(self, kernel)),
            remedy=remedy,
            calls=observation.calls,
            pids=observation.pids,
            fields=fields,
        )


def _evidence(comparison: Comparison, kernel: str) -> Iterable[Evidence]:
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
        yield Evidence(
            source=EvidenceSource.ROLLOUT,
            at=at,
            rule="escalation",
            text=f"the call was allowed {allowed}",
        )
    if observation.applied:
        policy = f": {policy_in_words(observation.applied.policy)}" if observation.applied.policy else ""
        by = "no launcher" if observation.applied.by == "nothing" else observation.applied.by
        yield Evidence(
            source=EvidenceSource.PROCESS,
            at=at,
            rule="applied",
            text=f"{by} stands between Codex and the command{policy}",
        )
    yield Evidence(source=observation.source, at=at, rule="flags-seen", text=observation.quote)
    if kernel:
        live = observation.source is EvidenceSource.ENVIRONMENT
        yield Evidence(
            source=EvidenceSource.KERNEL if live else observation.source,
            at=at,
            rule="kernel-facts",
            text=kernel,
        )
