"""The layers of a sandbox side by side: configured, applied to the newest command, observed of it.

The marked cells are those that the findings name; nothing is compared here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from agentdash.model.layers import (
    DifferingField,
    Layer,
    LayerField,
    Reference,
    configured_values,
    policy_values,
)
from agentdash.model.policy import Filesystem
from agentdash.model.worker import Sandbox
from agentdash.tui.format import pad, stamp
from agentdash.tui.primitives.spans import Line, Span, Tone, paragraph
from agentdash.tui.theme import VERDICT_TONES, Look

_LABELS: Final[Mapping[LayerField, str]] = {
    LayerField.FILES: "files",
    LayerField.NETWORK: "network",
    LayerField.NETWORK_FLAG: "network flag",
    LayerField.SANDBOX_FLAG: "CODEX_SANDBOX",
    LayerField.SECCOMP: "seccomp",
    LayerField.APPROVAL: "approval",
    LayerField.REVIEWER: "reviewer",
    LayerField.TMUX: "tmux",
}
_OPTIONAL_ROWS: Final = (LayerField.REVIEWER, LayerField.TMUX)
"""Rows that are shown only where a cell of them differs."""
_DISPLAYED_AS: Final[Mapping[str, str]] = {
    Filesystem.READ_ONLY.value: "read only",
    Filesystem.UNRESTRICTED.value: "all",
}
_REFERENCES: Final[Mapping[Reference, str]] = {
    "earlier": "then",
    "allowed": "outside",
    "parent": "parent",
    "before": "before",
}
"""Words before an expected value that the configured column does not show."""
_LABEL_WIDTH: Final = 14
"""Cells of the longest label, `CODEX_SANDBOX`, and a space."""
_THREE_COLUMNS_FROM: Final = 52
"""Cells from which on the three layers have room side by side."""
_MAX_COLUMN_WIDTH: Final = 30
_NOT_KNOWN: Final = "-"


class Cell(NamedTuple):
    """One value of one layer."""

    text: str = _NOT_KNOWN
    differs: bool = False


class LayerRow(NamedTuple):
    """One fact in the three layers."""

    label: str
    configured: Cell
    applied: Cell
    observed: Cell


def layer_rows(sandbox: Sandbox) -> list[LayerRow]:
    """Return the table, with the cells marked that differ by the findings."""
    fields = _newest_fields(sandbox.differing_fields)
    configured = configured_values(sandbox.configured) if sandbox.configured else {}
    applied = policy_values(sandbox.applied_policy) if sandbox.applied_policy else {}
    observed = sandbox.got.values()
    named = {name for name, _ in fields}
    for (name, _), field in fields.items():
        if name in _OPTIONAL_ROWS:  # no policy states these, so that the finding does
            configured[name] = field.expected
    return [
        LayerRow(
            label,
            _cell(configured, fields, name, "configured"),
            _cell(applied, fields, name, "applied"),
            _cell(observed, fields, name, "observed"),
        )
        for name, label in _LABELS.items()
        if name not in _OPTIONAL_ROWS or name in named
    ]


def _newest_fields(fields: Iterable[DifferingField]) -> dict[tuple[LayerField, Layer], DifferingField]:
    """Return the newest difference of each cell."""
    oldest_first = sorted(fields, key=lambda field: field.actual_at or 0.0)
    return {(field.name, field.layer): field for field in oldest_first}


def _cell(
    values: Mapping[LayerField, str],
    fields: Mapping[tuple[LayerField, Layer], DifferingField],
    name: LayerField,
    layer: Layer,
) -> Cell:
    """Return the value that differs, with what it was compared with where the table does not show that."""
    field = fields.get((name, layer))
    if field is None:
        return Cell(_displayed(values.get(name, _NOT_KNOWN)))
    reference = _REFERENCES.get(field.reference)
    beside = f" ({reference}: {_displayed(field.expected)})" if reference else ""
    return Cell(_displayed(field.actual) + beside, differs=True)


def _displayed(value: str) -> str:
    word, comma, rest = value.partition(",")
    return _DISPLAYED_AS.get(word, word) + comma + rest


def layers(sandbox: Sandbox, cells: int, look: Look) -> list[Line]:
    """Return the table as lines; where three columns have no room, the applied one is left out."""
    wide = cells >= _THREE_COLUMNS_FROM
    spaces, columns = (2, 3) if wide else (1, 2)
    width = min(_MAX_COLUMN_WIDTH, (cells - _LABEL_WIDTH - spaces) // columns)
    lines = [_heads(sandbox, width, look, wide=wide)]
    for row in layer_rows(sandbox):
        applied = (_span(row.applied, width, look, " "),) if wide else ()
        lines.append(
            (
                Span(pad(row.label, _LABEL_WIDTH), "muted"),
                _span(row.configured, width, look, " "),
                *applied,
                _span(row.observed, width, look, muted=sandbox.got.under_earlier_policy),
            )
        )
    return [*lines, *_words_below(sandbox, cells)]


def _span(cell: Cell, width: int, look: Look, end: str = "", *, muted: bool = False) -> Span:
    tone: Tone = "muted" if muted or cell.text == _NOT_KNOWN else ""
    text = cell.text
    if cell.differs:
        tone, text = "mismatch", f"{look.glyphs.verdicts['mismatch']} {text}"
    return Span(pad(text, width, look.glyphs.ellipsis) + end, tone)


def _words_below(sandbox: Sandbox, cells: int) -> list[Line]:
    lines: list[Line] = []
    if sandbox.applied:
        lines += paragraph(sandbox.applied, cells, head=(Span(pad("applied", _LABEL_WIDTH), "muted"),), cap=3)
    policy = sandbox.configured
    if policy and policy.filesystem in (Filesystem.WORKSPACE, Filesystem.CUSTOM):
        roots = "  ".join(policy.writable_roots) or "nothing"
        lines += paragraph(roots, cells, head=(Span(pad("writable", _LABEL_WIDTH), "muted"),), cap=2)
    return lines


def _heads(sandbox: Sandbox, width: int, look: Look, *, wide: bool) -> Line:
    """Return the column heads; an observation under an earlier policy is said to be one."""
    glyph, got = look.glyphs.verdicts[sandbox.verdict], sandbox.got
    observed = "got" if got.at is None else f"got {stamp(got.at, look.now)}"
    if got.under_earlier_policy:
        observed += " (earlier)"
    heads = ("configured", "applied") if wide else ("configured",)
    verdict = Span(pad(f"{glyph} {sandbox.verdict}", _LABEL_WIDTH), VERDICT_TONES[sandbox.verdict])
    return (
        verdict,
        *(Span(pad(head, width + 1), "title") for head in heads),
        Span(pad(observed, width, look.glyphs.ellipsis), "title"),
    )
