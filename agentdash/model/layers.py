"""The layers of a sandbox as a table: rows, columns, values of a policy, and the cells that differ."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

import msgspec

from agentdash.model.policy import Network, Policy
from agentdash.model.requested import Requested, RequestField

OWN_NETWORK: Final = "own namespace"
HOST_NETWORK: Final = "host's"
IN_SANDBOX: Final = "in a sandbox"
NO_SANDBOX: Final = "no sandbox"
"""Observed values of `network` and `files`, as the layers table shows them."""
SECCOMP_MODES: Final = {0: "none", 1: "strict", 2: "filter"}
"""Values of `Seccomp:` in `/proc/PID/status`, likewise."""


class LayerField(StrEnum):
    """A fact that layers state: a row of the layers table."""

    FILES = "files"
    """Which files may be written, or whether there is a sandbox at all."""
    NETWORK = "network"
    NETWORK_FLAG = "network_flag"
    """`CODEX_SANDBOX_NETWORK_DISABLED` in the environment of a command."""
    SANDBOX_FLAG = "sandbox_flag"
    """`CODEX_SANDBOX` in the environment of a command."""
    SECCOMP = "seccomp"
    APPROVAL = "approval"
    REVIEWER = "reviewer"
    """What answers approval requests (`approvals_reviewer`, 0.145+)."""
    TMUX = "tmux"
    """Where what a tmux server runs for a command ends up."""


Layer = Literal["requested", "configured", "applied", "observed"]
"""A column of the layers table."""

Reference = Literal["requested", "configured", "earlier", "allowed", "parent", "before"]
"""What a cell is compared with: what was asked for, the policy configured now, an earlier one that was in
force then, an escalation that was allowed, the parent thread, or (for a changed policy) the policy before."""


class DifferingField(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cell that differs, with both values and their times."""

    name: LayerField
    expected: str
    """The value that it is compared with: `on`, `unset`, `workspace`."""
    actual: str
    """The value that was found: `own namespace`, `1`, `in a sandbox`."""
    layer: Layer = "observed"
    """The layer in which the actual value was found."""
    reference: Reference = "configured"
    """Where the expected value comes from."""
    expected_at: float | None = None
    """Since when the expected value was in force (unix seconds), or None if the file states no time."""
    actual_at: float | None = None
    """When the actual value was found (unix seconds)."""


_REQUEST_FIELDS: Final = {
    LayerField.FILES: RequestField.FILESYSTEM,
    LayerField.NETWORK: RequestField.NETWORK,
    LayerField.APPROVAL: RequestField.APPROVAL,
    LayerField.REVIEWER: RequestField.REVIEWER,
}
"""The part of a request that each row of the layers table shows."""


def configured_values(policy: Policy) -> dict[LayerField, str]:
    """Return what a policy promises of each fact; facts that it promises nothing about are left out.

    Codex sets the network flag for every command under a policy with the network off, and for no other (0.20
    to 0.169). It sets `CODEX_SANDBOX` in macOS's sandbox alone, so that only full access promises that it is
    unset.
    """
    values = policy_values(policy)
    if policy.network is not Network.UNKNOWN:
        values[LayerField.NETWORK_FLAG] = "1" if policy.network is Network.OFF else "unset"
    if policy.is_full_access:
        values[LayerField.SANDBOX_FLAG] = "unset"
        values[LayerField.SECCOMP] = SECCOMP_MODES[0]
    if policy.approval:
        values[LayerField.APPROVAL] = policy.approval
    return values


def requested_values(requested: Requested) -> dict[LayerField, str]:
    """Return what was asked for; facts that nothing asked about are left out."""
    policy = requested.policy
    values = policy_values(policy) | {
        LayerField.APPROVAL: policy.approval or "",
        LayerField.REVIEWER: policy.reviewer or "",
    }
    mark = " (config as of now)" if requested.is_config_as_of_now else ""
    return {
        name: f"{value}{mark}" for name, value in values.items() if requested.origin(_REQUEST_FIELDS[name])
    }


def policy_values(policy: Policy) -> dict[LayerField, str]:
    """Return the files and the network of a policy."""
    if not policy.is_recorded:
        return dict.fromkeys((LayerField.FILES, LayerField.NETWORK), "not recorded")
    external = ", external" if policy.enforced_by == "external" else ""
    return {LayerField.FILES: policy.filesystem.value + external, LayerField.NETWORK: policy.network.value}
