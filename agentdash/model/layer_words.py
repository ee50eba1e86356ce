"""The layers of a sandbox in plain words: one wording for the screens, the texts and the exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, get_args

from agentdash.model.findings import DENIAL_KINDS, Finding
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, Layer, LayerField
from agentdash.model.policy import Filesystem, Network

FIELD_LABELS: Final[Mapping[LayerField, str]] = {
    LayerField.FILES: "files",
    LayerField.NETWORK: "network",
    LayerField.NETWORK_FLAG: "network flag",
    LayerField.SANDBOX_FLAG: "CODEX_SANDBOX",
    LayerField.SECCOMP: "call filter",
    LayerField.APPROVAL: "approval",
    LayerField.REVIEWER: "reviewer",
    LayerField.TMUX: "tmux",
}
"""The rows of the layers table, in their order."""
LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)
"""The columns of the layers table, in their order; their names are their titles."""
_VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    LayerField.FILES: {
        Filesystem.READ_ONLY: "read only",
        Filesystem.UNRESTRICTED: "all writable",
        Filesystem.CUSTOM: "custom rules",
        Filesystem.UNKNOWN: "not understood",
    },
    LayerField.NETWORK: {
        OWN_NETWORK: "not the host's: its own",
        HOST_NETWORK: "the host's",
        Network.MEDIATED: "through a proxy",
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
