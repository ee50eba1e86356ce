"""Findings: differences between the layers of a sandbox."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from agentdash.model.evidence import Evidence

Verdict = Literal["match", "mismatch", "unverified"]
Direction = Literal["stricter", "looser", "label"]
Severity = Literal["info", "warning", "danger"]


class FindingKind(StrEnum):
    """Every kind of finding, once."""

    NETWORK_CUT = "network-cut"
    NETWORK_OPEN = "network-open"
    STALE_NETWORK_FLAG = "stale-network-flag"
    MISSING_NETWORK_FLAG = "missing-network-flag"
    FOREIGN_SANDBOX_FLAG = "foreign-sandbox-flag"
    FILESYSTEM_NARROWER = "filesystem-narrower"
    FILESYSTEM_WIDER = "filesystem-wider"
    ESCALATED_NOT_HOST = "escalated-not-host"
    ESCALATED_FLAG_LEFT = "escalated-flag-left"
    NESTED_SANDBOX = "nested-sandbox"
    CHILD_POLICY_DRIFT = "child-policy-drift"
    CHILD_GOT_LESS = "child-got-less"
    REVIEWER_DRIFT = "reviewer-drift"
    POLICY_CHANGED = "policy-changed"
    TMUX_ESCAPE = "tmux-escape"
    SANDBOXED_TMUX_SERVER = "sandboxed-tmux-server"
    SANDBOX_CANNOT_START = "sandbox-cannot-start"
    DENIED_FILESYSTEM = "denied-filesystem"
    DENIED_NETWORK = "denied-network"
    DENIED_UNDER_FULL_ACCESS = "denied-under-full-access"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A difference between what was configured and what was got: one per cause, however many commands show it."""

    kind: FindingKind
    direction: Direction
    severity: Severity
    configured: str
    """The configured side, quoted, with where it was read."""
    got: str
    """The other side, likewise."""
    message: str
    """One or two sentences for a human."""
    since: float
    last: float
    count: int
    evidence: tuple[Evidence, ...] = ()
    remedy: str | None = None
    """The narrowest change that would help, as text to copy."""
    calls: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
