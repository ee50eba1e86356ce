"""Findings: differences between the layers of a sandbox, and denials that stopped a worker."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, NamedTuple, Protocol, get_args

import msgspec

from agentdash.model.denials import Remedy
from agentdash.model.evidence import Evidence
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, DifferingField, LayerField
from agentdash.model.policy import Filesystem, Network

Verdict = Literal["match", "mismatch", "unverified"]
Direction = Literal["narrower", "wider", "label"]
Severity = Literal["info", "warning", "danger"]

SEVERITIES: Final[tuple[Severity, ...]] = ("danger", "warning", "info")
"""The severities, worst first. `info` makes no mismatch."""


DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)
"""`narrower`: it got less than was configured; `wider`: more; `label`: a flag and the kernel disagree."""


class FindingKind(StrEnum):
    """Every kind of finding; `MEANINGS` has what each means."""

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
    TMUX_ESCAPE = "tmux-escape"
    SANDBOXED_TMUX_SERVER = "sandboxed-tmux-server"
    SANDBOX_SILENTLY_OFF = "sandbox-silently-off"
    SANDBOX_OFF_FOR_COMMAND = "sandbox-off-for-command"
    CHILD_MODE_ESCALATED = "child-mode-escalated"
    CHILD_GOT_LESS = "child-got-less"
    CHILD_POLICY_DRIFT = "child-policy-drift"
    REQUESTED_NOT_CONFIGURED = "requested-not-configured"
    RESUME_DROPPED_POLICY = "resume-dropped-policy"
    ROLE_POLICY_IGNORED = "role-policy-ignored"
    AUTO_APPROVED_OUTSIDE = "auto-approved-outside"
    POLICY_CHANGED = "policy-changed"
    REVIEWER_DRIFT = "reviewer-drift"
    DENIED_UNDER_FULL_ACCESS = "denied-under-full-access"
    SANDBOX_CANNOT_START = "sandbox-cannot-start"
    DENIED_FILESYSTEM = "denied-filesystem"
    DENIED_NETWORK = "denied-network"


DENIAL_KINDS: Final[frozenset[str]] = frozenset(
    (
        FindingKind.DENIED_FILESYSTEM,
        FindingKind.DENIED_NETWORK,
        FindingKind.DENIED_UNDER_FULL_ACCESS,
        FindingKind.SANDBOX_CANNOT_START,
    )
)
"""Kinds that don't compare layers, and so name no fields."""


class KindInfo(NamedTuple):
    """What is the same for all findings of one kind."""

    severity: Severity
    """The usual one. `network-open` and `filesystem-wider` are `info` where an allowed retry would look the
    same; `child-policy-drift` is `danger` where the child may do more than its parent."""
    directions: tuple[Direction, ...]
    """The possible ones, the usual one first."""
    words: str
    """What such a finding is, in the 16 cells of a column; its message is the sentence."""


FINDING_KINDS: Final[dict[FindingKind, KindInfo]] = {
    FindingKind.NETWORK_CUT: KindInfo("danger", ("narrower",), "no network"),
    FindingKind.NETWORK_OPEN: KindInfo("danger", ("wider",), "network open"),
    FindingKind.STALE_NETWORK_FLAG: KindInfo("warning", ("narrower", "label"), "old network flag"),
    FindingKind.MISSING_NETWORK_FLAG: KindInfo("warning", ("wider",), "flag missing"),
    FindingKind.FOREIGN_SANDBOX_FLAG: KindInfo("warning", ("narrower", "label"), "foreign flag"),
    FindingKind.FILESYSTEM_NARROWER: KindInfo("danger", ("narrower",), "may write less"),
    FindingKind.FILESYSTEM_WIDER: KindInfo("danger", ("wider",), "may write more"),
    FindingKind.ESCALATED_NOT_HOST: KindInfo("warning", ("narrower",), "still sandboxed"),
    FindingKind.ESCALATED_FLAG_LEFT: KindInfo("warning", ("label",), "flag left"),
    FindingKind.NESTED_SANDBOX: KindInfo("warning", ("narrower",), "nested sandbox"),
    FindingKind.TMUX_ESCAPE: KindInfo("danger", ("wider",), "left via tmux"),
    FindingKind.SANDBOXED_TMUX_SERVER: KindInfo("warning", ("narrower",), "sandboxed tmux"),
    FindingKind.SANDBOX_SILENTLY_OFF: KindInfo("danger", ("wider",), "not applied"),
    FindingKind.SANDBOX_OFF_FOR_COMMAND: KindInfo("warning", ("wider",), "command outside"),
    FindingKind.CHILD_MODE_ESCALATED: KindInfo("warning", ("wider",), "wider mode"),
    FindingKind.CHILD_GOT_LESS: KindInfo("warning", ("narrower",), "less than parent"),
    FindingKind.CHILD_POLICY_DRIFT: KindInfo("warning", ("narrower", "wider"), "unlike parent"),
    FindingKind.REQUESTED_NOT_CONFIGURED: KindInfo("warning", ("wider", "narrower", "label"), "not as asked"),
    FindingKind.RESUME_DROPPED_POLICY: KindInfo("warning", ("wider", "narrower"), "lost on resume"),
    FindingKind.ROLE_POLICY_IGNORED: KindInfo("warning", ("wider", "narrower"), "role ignored"),
    FindingKind.AUTO_APPROVED_OUTSIDE: KindInfo("warning", ("wider",), "auto-approved"),
    FindingKind.POLICY_CHANGED: KindInfo("info", ("narrower", "wider"), "policy changed"),
    FindingKind.REVIEWER_DRIFT: KindInfo("info", ("label",), "other reviewer"),
    FindingKind.DENIED_UNDER_FULL_ACCESS: KindInfo("warning", ("narrower",), "denied anyway"),
    FindingKind.SANDBOX_CANNOT_START: KindInfo("warning", ("narrower",), "cannot start"),
    FindingKind.DENIED_FILESYSTEM: KindInfo("warning", ("narrower",), "write denied"),
    FindingKind.DENIED_NETWORK: KindInfo("warning", ("narrower",), "network denied"),
}
"""Every kind, in the order of the documentation."""
MEANINGS: Final[dict[FindingKind, str]] = {
    FindingKind.NETWORK_CUT: "the policy grants the network, and the command has none",
    FindingKind.NETWORK_OPEN: "the policy turns the network off, and the command is in the host's",
    FindingKind.STALE_NETWORK_FLAG: "the policy grants the network, and the command's flag marks it as off",
    FindingKind.MISSING_NETWORK_FLAG: "the policy turns the network off, and the command lacks the flag",
    FindingKind.FOREIGN_SANDBOX_FLAG: "`CODEX_SANDBOX` where Codex would not set it: it is inherited",
    FindingKind.FILESYSTEM_NARROWER: "launcher or mounts deny writing to what the policy makes writable",
    FindingKind.FILESYSTEM_WIDER: "no sandbox where one should be, or one that lets more be written",
    FindingKind.ESCALATED_NOT_HOST: "a command that was allowed to leave the sandbox is still inside",
    FindingKind.ESCALATED_FLAG_LEFT: "a command has left the sandbox as allowed, with the flag of no network",
    FindingKind.NESTED_SANDBOX: "a sandbox around Codex itself, or around a command of full access",
    FindingKind.TMUX_ESCAPE: "a sandboxed command had a tmux server outside run something, in no sandbox",
    FindingKind.SANDBOXED_TMUX_SERVER: "the tmux server of a pane was started in a sandbox: so are its panes",
    FindingKind.SANDBOX_SILENTLY_OFF: "Claude, Gemini, Qwen: the sandbox is switched on, and there is none",
    FindingKind.SANDBOX_OFF_FOR_COMMAND: "Claude Code: a command ran outside the sandbox, by request or rule",
    FindingKind.CHILD_MODE_ESCALATED: "Claude Code: a sub-agent has a wider permission mode than its session",
    FindingKind.CHILD_GOT_LESS: "both may use the network; the parent's commands have it, the child's not",
    FindingKind.CHILD_POLICY_DRIFT: "a child's policy grants less, or more, than its parent's at that time",
    FindingKind.REQUESTED_NOT_CONFIGURED: "what was asked for is not what the agent was told that it has",
    FindingKind.RESUME_DROPPED_POLICY: "a resumed thread has another policy than before, without a request",
    FindingKind.ROLE_POLICY_IGNORED: "a sub-agent has another policy than the file of its role asks for",
    FindingKind.AUTO_APPROVED_OUTSIDE: "an automatic reviewer let a command leave a read-only sandbox",
    FindingKind.POLICY_CHANGED: "the policy is another than before",
    FindingKind.REVIEWER_DRIFT: "another reviewer answers approvals than before, or than the parent's",
    FindingKind.DENIED_UNDER_FULL_ACCESS: "refused under full access, as only a sandbox refuses",
    FindingKind.SANDBOX_CANNOT_START: "the sandbox itself failed to start: every command that needs it will",
    FindingKind.DENIED_FILESYSTEM: "a denied write that the worker did not get past",
    FindingKind.DENIED_NETWORK: "a denied connection that the worker did not get past",
}
"""What a finding of each kind means, in one line."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A difference between layers, or a denial: one per cause, however many commands show it."""

    kind: FindingKind
    direction: Direction
    severity: Severity
    configured: str
    """The configured side, quoted, with where it was read."""
    got: str
    """The observed side, likewise."""
    message: str
    """One or two sentences for people."""
    since: float
    last: float
    count: int
    """Observations that show it."""
    evidence: tuple[Evidence, ...] = ()
    remedy: Remedy | None = None
    """The narrowest change that would help, as text to copy."""
    calls: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    fields: tuple[DifferingField, ...] = ()
    """The cells of the layers that differ; empty for a denial."""


# ------------------------------------------------------------
# The layers of a sandbox in plain words: one wording for the screens, the texts and the exports


FIELD_LABELS: Final[Mapping[LayerField, str]] = {
    LayerField.FILES: "files",
    LayerField.NETWORK: "network",
    LayerField.NETWORK_FLAG: "network flag",
    LayerField.SANDBOX_FLAG: "CODEX_SANDBOX",
    LayerField.SECCOMP: "seccomp",
    LayerField.APPROVAL: "approval",
    LayerField.REVIEWER: "reviewer",
    LayerField.TMUX: "tmux",
}
"""The rows of the layers table, in their order."""
_VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    LayerField.FILES: {
        Filesystem.READ_ONLY: "read only",
        Filesystem.UNRESTRICTED: "all writable",
        Filesystem.CUSTOM: "custom rules",
        Filesystem.UNKNOWN: "not understood",
    },
    LayerField.NETWORK: {
        OWN_NETWORK: "isolated",
        HOST_NETWORK: "host network",
        Network.MEDIATED: "via proxy",
        Network.UNKNOWN: "not understood",
    },
    LayerField.NETWORK_FLAG: {"1": "1 (network off)"},
    LayerField.SECCOMP: {"filter": "on", "strict": "on, strict"},
}
"""Values that are displayed in other words than they are stored in."""
_EXPECTED: Final[Mapping[str, str]] = {
    "configured": "configured",
    "earlier": "configured then",
    "allowed": "as allowed",
    "parent": "parent",
    "before": "before",
    "screen": "on its screen",
}
_ACTUAL: Final[Mapping[str, str]] = {"parent": "child", "before": "after"}
"""What stands beside the expected value of a reference; else it is the title of the layer."""


class Difference(Protocol):
    """A cell that differs: `DifferingField`, or its report in a document."""

    @property
    def name(self) -> str:
        """A value of `LayerField`."""

    @property
    def expected(self) -> str:
        """The value that it is compared with."""

    @property
    def actual(self) -> str:
        """The value that was found."""

    @property
    def layer(self) -> str:
        """The layer of the actual value."""

    @property
    def reference(self) -> str:
        """Where the expected value comes from."""


def value_in_words(name: str, value: str) -> str:
    """Return a value of the layers table in plain words; what follows a comma is kept."""
    word, comma, rest = value.partition(",")
    return _VALUES.get(name, {}).get(word, word) + comma + rest


class Side(NamedTuple):
    """One of the two sides of a finding."""

    label: str
    """`configured`, `parent`, `before`; `observed`, `child`, `after`."""
    text: str


def expected_label(field: Difference) -> str:
    """Return the origin of the expected value: `configured`, `parent`, `before`."""
    return _EXPECTED.get(field.reference, field.reference)


def actual_label(field: Difference) -> str:
    """Return the origin of the actual value: `observed`, `applied`, `child`, `after`."""
    return _ACTUAL.get(field.reference) or field.layer


def difference(field: Difference) -> tuple[Side, Side]:
    """Return both values of a cell that differs."""
    return (
        Side(expected_label(field), value_in_words(field.name, field.expected)),
        Side(actual_label(field), value_in_words(field.name, field.actual)),
    )


def sides(finding: Finding) -> tuple[Side, Side]:
    """Return both sides of a finding as they were read, labelled with where each comes from."""
    field = next(iter(finding.fields), None)
    labels = "configured", "observed"  # also where the launcher differs: the quote is of the command
    if finding.kind in DENIAL_KINDS:
        labels = "configured", "denied"
    elif field is not None:
        labels = expected_label(field), "observed" if field.layer == "applied" else actual_label(field)
    return Side(labels[0], finding.configured), Side(labels[1], finding.got)
