"""Checks of the network: the policy in force against the kernel and the network flag of a command."""

from __future__ import annotations

from collections.abc import Iterator

from agentdash.engine.judge.findings.comparison import Comparison
from agentdash.engine.judge.findings.remedy_forms import exclude_flags
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, DifferingField, LayerField
from agentdash.model.observation import UNSET
from agentdash.model.policy import Network


def network_cut(seen: Comparison) -> Finding | None:
    """Return a finding where the policy grants the network and the command has none."""
    mediated = seen.policy.network is Network.MEDIATED and seen.policy.enforced_by == "agent"
    if mediated and seen.observation.own_network and seen.applied is not None:
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
    mediated = seen.policy.network is Network.MEDIATED and seen.policy.enforced_by == "agent"
    if mediated and seen.observation.sandboxed and seen.observation.own_network is False and seen.is_bound:
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
        "The policy turns the network off, but the kernel shows the command in the host's network,"
        " with nothing"
        " that keeps it out." + unrecorded_permission(seen),
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
        "The policy turns the network off, but the command does not carry the flag that goes with"
        " it: it may run"
        " outside of the sandbox.",
        fields=(_flag_field(seen, expected="1"),),
    )


def unrecorded_permission(seen: Comparison) -> str:
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
