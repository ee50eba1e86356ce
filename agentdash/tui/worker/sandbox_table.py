"""The sandbox of a worker as a table: what was asked for, what is configured, what its commands had.

Nothing is compared here: what differs, and how, the findings say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from rich.cells import cell_len

from agentdash.model.findings import (
    FIELD_LABELS,
    SEVERITIES,
    Finding,
    actual_label,
    expected_label,
    value_in_words,
)
from agentdash.model.layers import (
    HOST_NETWORK,
    IN_SANDBOX,
    NO_SANDBOX,
    OWN_NETWORK,
    DifferingField,
    LayerField,
    configured_values,
    policy_values,
    requested_values,
)
from agentdash.model.policy import Filesystem, Network
from agentdash.model.worker import Sandbox
from agentdash.tui.format import pad, stamp, wrap
from agentdash.tui.primitives.spans import Line, Span, Tone, padded, paragraph
from agentdash.tui.theme import SEVERITY_TONES, Look

_LABEL_CELLS: Final = 15
"""The longest label, ` CODEX_SANDBOX`, and a space."""
_MAX_COLUMN_CELLS: Final = 34
_TABLE_FROM_CELLS: Final = 60
"""In a narrower panel each fact is a line with arrows."""
_GAP_CELLS: Final = 2
_AS_CONFIGURED: Final = "as configured"
_ALWAYS: Final = (LayerField.FILES, LayerField.NETWORK)
"""The rows that are shown also where nothing differs. Other facts are shown where a finding names them, or
where nothing else was observed."""
_COLUMNS: Final = ("asked", "configured", "actual")
_COLUMN_OF: Final[Mapping[str, str]] = {
    "requested": "asked",
    "configured": "configured",
    "applied": "actual",
    "observed": "actual",
}
"""The column of each layer."""
_SAYS_THE_SAME: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    (LayerField.FILES, IN_SANDBOX): (Filesystem.WORKSPACE, Filesystem.READ_ONLY, Filesystem.CUSTOM),
    (LayerField.FILES, NO_SANDBOX): (Filesystem.UNRESTRICTED,),
    (LayerField.NETWORK, OWN_NETWORK): (Network.OFF, Network.MEDIATED),
    (LayerField.NETWORK, HOST_NETWORK): (Network.ON,),
}
"""Values of policies that agree with an observed one, and say more."""
_AMOUNTS: Final[Mapping[str, str]] = {"wider": "more than ", "narrower": "less than ", "label": ""}


class SandboxRow(NamedTuple):
    """One fact."""

    label: str
    cells: Mapping[str, str]
    """The values by column, in words; those that are not known are left out."""
    remark: str = ""
    tone: Tone = ""


def _rows(sandbox: Sandbox, look: Look) -> list[SandboxRow]:
    """Return the rows that have a value, those that a finding names first."""
    named: dict[LayerField, list[tuple[DifferingField, Finding]]] = {}
    for finding in sorted(sandbox.findings, key=lambda each: SEVERITIES.index(each.severity)):
        for field in finding.fields:
            named.setdefault(field.name, []).append((field, finding))
    seen = sandbox.got.values()
    others = () if any(name in seen for name in _ALWAYS) else seen
    names = (*(name for name in FIELD_LABELS if name in named), *_ALWAYS, *others)
    rows = [_row(name, sandbox, named.get(name, []), look) for name in names]
    return list({row.label: row for row in rows if row.cells}.values())


def _row(
    name: LayerField, sandbox: Sandbox, named: Sequence[tuple[DifferingField, Finding]], look: Look
) -> SandboxRow:
    values = _values(name, sandbox)
    for field, _ in reversed(named):  # the worst last: its values are shown
        values[_COLUMN_OF[field.layer]] = field.actual
        if field.reference in _COLUMN_OF:
            values[_COLUMN_OF[field.reference]] = field.expected
    cells = {column: value_in_words(name, value) for column, value in values.items() if value}
    if not named:
        return SandboxRow(FIELD_LABELS[name], cells, _agreement(name, values, sandbox), "muted")
    remarks = dict.fromkeys(_remark(field, finding, cells, look) for field, finding in named)
    return SandboxRow(FIELD_LABELS[name], cells, "; ".join(remarks), SEVERITY_TONES[named[0][1].severity])


def _values(name: LayerField, sandbox: Sandbox) -> dict[str, str]:
    """Return what each column has now, as stored. What the kernel shows goes before what the launcher was
    told, unless that says the same in more detail."""
    requested, configured, applied = sandbox.requested, sandbox.configured, sandbox.applied_policy
    told = policy_values(applied).get(name, "") if applied else ""
    seen = sandbox.got.values().get(name, "")
    return {
        "asked": requested_values(requested).get(name, "") if requested else "",
        "configured": configured_values(configured).get(name, "") if configured else "",
        "actual": told if not seen or _agrees(name, seen, told) else seen,
    }


def _agrees(name: LayerField, seen: str, policy: str) -> bool:
    return seen == policy or policy in _SAYS_THE_SAME.get((name, seen), ())


def _agreement(name: LayerField, values: Mapping[str, str], sandbox: Sandbox) -> str:
    """Return what to say of a fact without a finding."""
    if not values["actual"]:
        return "not observed" if values["configured"] else ""
    if name not in sandbox.got.values():
        return "by the launcher's arguments"
    if sandbox.got.under_earlier_policy:
        return "observed before the policy changed"
    return _AS_CONFIGURED if _agrees(name, values["actual"], values["configured"]) else ""


def _remark(field: DifferingField, finding: Finding, cells: Mapping[str, str], look: Look) -> str:
    """Return how a value differs, `▴ more than configured`, with each of the two that no column shows."""
    expected, actual = (value_in_words(field.name, each) for each in (field.expected, field.actual))
    origin = {"requested": "asked for"}.get(field.reference, expected_label(field))
    text = f"{look.glyphs.directions[finding.direction]} {_AMOUNTS[finding.direction]}{origin}"
    if cells.get(_COLUMN_OF.get(field.reference, "")) != expected:
        text += f": {expected}"
    if cells.get(_COLUMN_OF[field.layer]) != actual:
        text += f" ({actual_label(field)} {actual})"
    return text


# ---------------------------------------------------------------- drawing


def sandbox_sentence(sandbox: Sandbox) -> str:
    """Return a sandbox in a sentence, if a table would say no more; else nothing."""
    policy = sandbox.configured
    if sandbox.verdict == "match" and policy:
        return f"as configured: {policy.brief()}"
    if sandbox.verdict == "unverified" and not sandbox.got.values():
        return f"not observed; configured: {policy.brief()}" if policy else "not known"
    return ""


def sandbox_table(sandbox: Sandbox, cells: int, look: Look) -> list[Line]:
    """Return the table as lines, then what stands in no column."""
    rows = _rows(sandbox, look)
    columns = [column for column in _COLUMNS if any(column in row.cells for row in rows)]
    if not columns:
        return [(*padded("Sandbox", _LABEL_CELLS, "title"), Span("Nothing is known of it.", "muted"))]
    if cells < _TABLE_FROM_CELLS:
        return [*_chains(rows, columns, cells, look), *_below(sandbox, cells)]
    room = cells - _LABEL_CELLS
    most = min(_MAX_COLUMN_CELLS, room // (len(columns) + 1) - _GAP_CELLS)
    widths = [
        min(most, max(cell_len(text) for text in (column, *(row.cells.get(column, "-") for row in rows))))
        for column in columns
    ]
    widths.append(room - sum(width + _GAP_CELLS for width in widths))
    at = sandbox.got.at
    seen = f"observed {stamp(at, look.now)}" if at is not None else ""
    lines = _table_row("Sandbox", [*columns, seen], widths, "title", "muted")
    for row in rows:
        texts = [*(row.cells.get(column, "-") for column in columns), row.remark]
        lines += _table_row(f" {row.label}", texts, widths, "", row.tone)
    return [*lines, *_below(sandbox, cells)]


def _chains(rows: Sequence[SandboxRow], columns: Sequence[str], cells: int, look: Look) -> Iterator[Line]:
    """Yield the table of a narrow panel: `files: workspace → no sandbox`."""
    arrow = f" {look.glyphs.arrow} "
    yield from paragraph(f"Sandbox: {arrow.join(columns)}", cells, "title")
    for row in rows:
        values = arrow.join(row.cells.get(column, "-") for column in columns)
        yield from paragraph(f"{row.label}: {values}", cells, indent=1)
        if row.remark not in ("", _AS_CONFIGURED):
            yield from paragraph(row.remark, cells, row.tone, indent=3)


def _table_row(label: str, texts: Sequence[str], widths: Sequence[int], tone: Tone, last: Tone) -> list[Line]:
    """Return a row with its texts wrapped into their columns, the last one in a tone of its own."""
    lines: list[Line] = []
    wrapped = (wrap(text, max(1, cells)) for text, cells in zip(texts, widths, strict=True))
    for number, (*parts, remark) in enumerate(zip_longest(*wrapped, fillvalue="")):
        line = list(padded("" if number else label, _LABEL_CELLS, "title"))
        for part, cells in zip(parts, widths, strict=False):
            line += padded(part, cells + _GAP_CELLS, tone)
        lines.append((*line, Span(remark, last)))
    return lines


def _below(sandbox: Sandbox, cells: int) -> list[Line]:
    """Return what is configured, and what started the newest command, beside the table."""
    policy = sandbox.configured
    facts = {"approval": policy.approval if policy else "", "launcher": sandbox.launcher}
    facts["escalation"] = sandbox.escalation
    if policy and policy.filesystem in (Filesystem.WORKSPACE, Filesystem.CUSTOM):
        facts = {"writable": "  ".join(policy.writable_roots) or "nothing", **facts}
    lines: list[Line] = []
    for label, text in facts.items():
        if text:
            head = (Span(pad(f" {label}", _LABEL_CELLS), "title"),)
            lines += paragraph(text, cells, head=head, cap=2)
    return lines
