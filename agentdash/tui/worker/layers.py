"""The layers of a sandbox side by side: configured, applied to the newest command, observed of it.

The marked cells are those that the findings name; nothing is compared here. Columns and rows without a value
are left out. Drawn as lines, not as a `DataTable`: the table is one paragraph of a text that scrolls, and its
cells wrap, which a `DataTable` of rows of different heights does only with a height measured beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from rich.cells import cell_len

from agentdash.model.findings import (
    FIELD_LABELS,
    LAYERS,
    SEVERITIES,
    Direction,
    Finding,
    Severity,
    expected_label,
    value_in_words,
)
from agentdash.model.layers import (
    IN_SANDBOX,
    NO_SANDBOX,
    DifferingField,
    Layer,
    LayerField,
    Reference,
    configured_values,
    policy_values,
    requested_values,
)
from agentdash.model.policy import Filesystem
from agentdash.model.worker import Sandbox
from agentdash.tui.format import pad, stamp, wrap
from agentdash.tui.primitives.spans import Line, Span, Tone, padded, paragraph, width
from agentdash.tui.theme import SEVERITY_TONES, VERDICT_TONES, Look

_LAUNCHER_LABEL: Final = "launcher"
_LABEL_CELLS: Final = 14
"""The longest label, `CODEX_SANDBOX`, and a space."""
_MIN_COLUMN_CELLS: Final = 12
"""Narrower columns would break within words: `configured`, `▾ workspace`."""
_UNKNOWN: Final = "-"
"""In a chain of values, for a layer between others that is not known."""
_GAP_CELLS: Final = 2
_COLUMNS: Final[Mapping[Reference, Layer]] = {"requested": "requested", "configured": "configured"}
"""The columns that show expected values; those of other references have none."""
_NO_BREAK: Final = "\u00a0"
"""Between a mark and its value, until they are wrapped."""
_PATH_WORDS: Final = ("also ", "not ")
"""How an observed value of `files` begins that names one path only."""


class CellMark(NamedTuple):
    """That a finding names a cell."""

    direction: Direction
    severity: Severity


class Cell(NamedTuple):
    """One value of one layer; empty where it is not known."""

    text: str = ""
    mark: CellMark | None = None


class LayerRow(NamedTuple):
    """One fact in all layers."""

    label: str
    cells: Mapping[Layer, Cell]


def layer_values(sandbox: Sandbox) -> dict[Layer, dict[LayerField, str]]:
    """Return the values that each layer has, as stored; layers that are not known are empty."""
    known: dict[Layer, dict[LayerField, str]] = {
        "requested": requested_values(sandbox.requested) if sandbox.requested else {},
        "configured": configured_values(sandbox.configured) if sandbox.configured else {},
        "applied": policy_values(sandbox.applied_policy) if sandbox.applied_policy else {},
        "observed": sandbox.got.values(),
    }
    return {layer: known.get(layer, {}) for layer in LAYERS}


def layer_rows(sandbox: Sandbox) -> list[LayerRow]:
    """Return the rows that have a value, with the cells marked that the findings name.

    Rows with a marked cell come first: a short panel shows no others.
    """
    values = layer_values(sandbox)
    named = _named_cells(sandbox.findings)
    for (name, _), fields in named.items():
        newest = fields[0][0]
        if newest.reference in _COLUMNS and newest.reference != newest.layer:
            # what no policy states, the finding does
            values[_COLUMNS[newest.reference]].setdefault(name, newest.expected)
    rows = [
        LayerRow(label, {layer: _cell(name, layer, values, named) for layer in values})
        for name, label in FIELD_LABELS.items()
    ]
    if sandbox.launcher and any(row.cells["applied"].text for row in rows):
        rows.append(LayerRow(_LAUNCHER_LABEL, {"applied": Cell(sandbox.launcher)}))
    rows.sort(key=lambda row: all(cell.mark is None for cell in row.cells.values()))
    return [row for row in rows if any(cell.text for cell in row.cells.values())]


_Named = Mapping[tuple[LayerField, Layer], Sequence[tuple[DifferingField, Finding]]]


def _named_cells(findings: Iterable[Finding]) -> _Named:
    """Return the fields of each cell that findings name, the newest first."""
    cells: dict[tuple[LayerField, Layer], list[tuple[DifferingField, Finding]]] = {}
    for finding in findings:
        for field in finding.fields:
            cells.setdefault((field.name, field.layer), []).append((field, finding))
    for named in cells.values():
        named.sort(key=lambda pair: pair[0].actual_at or 0.0, reverse=True)
    return cells


def _cell(
    name: LayerField, layer: Layer, values: Mapping[Layer, Mapping[LayerField, str]], cells: _Named
) -> Cell:
    """Return a cell; where it differs, with each value that it is compared with and no column shows."""
    now = values[layer].get(name)
    named = cells.get((name, layer))
    if not named:
        return Cell(value_in_words(name, now) if now is not None else "")
    newest = named[0][0]
    worst = min((finding for _, finding in named), key=lambda each: SEVERITIES.index(each.severity))
    text = _actual(newest, now)
    if beside := [words for field, _ in named if (words := _beside(field, values))]:
        text += f" ({'; '.join(dict.fromkeys(beside))})"
    return Cell(text, CellMark(worst.direction, worst.severity))


def _actual(field: DifferingField, now: str | None) -> str:
    """Return the value that differs, and the present one where that is another."""
    actual = value_in_words(field.name, field.actual)
    if now is None or now == field.actual or (field.actual == NO_SANDBOX and now == Filesystem.UNRESTRICTED):
        return actual
    if field.name is LayerField.FILES and (
        (now == IN_SANDBOX and field.actual.startswith(_PATH_WORDS)) or field.actual.startswith(f"{now},")
    ):
        return actual if now != IN_SANDBOX else f"{now}, {actual}"
    return f"{actual}; now {value_in_words(field.name, now)}"


def _beside(field: DifferingField, values: Mapping[Layer, Mapping[LayerField, str]]) -> str:
    """Return the expected value with its origin; empty where a column shows it."""
    column = _COLUMNS.get(field.reference)
    if column is not None and column != field.layer and values[column].get(field.name) == field.expected:
        return ""
    return f"{expected_label(field)}: {value_in_words(field.name, field.expected)}"


# ---------------------------------------------------------------- drawing


def layers(sandbox: Sandbox, cells: int, look: Look) -> list[Line]:
    """Return the table as lines, its cells wrapped into the width; then what stands in no cell."""
    rows = layer_rows(sandbox)
    shown = [layer for layer in LAYERS if any(row.cells.get(layer, Cell()).text for row in rows)]
    if not shown:
        nothing = "nothing is known of its sandbox"
        return paragraph(nothing, cells, "muted", head=_verdict(sandbox, look))
    heads = [_head(layer, sandbox, look) for layer in shown]
    if cells - _LABEL_CELLS < len(shown) * (_MIN_COLUMN_CELLS + _GAP_CELLS):
        return [*_chains(rows, shown, sandbox, cells, look), *_words_below(sandbox, cells)]
    texts = [[_marked(row.cells.get(layer, Cell()), look) for layer in shown] for row in rows]
    widths = _widths([heads, *texts], cells - _LABEL_CELLS)
    lines = _table_row(_verdict(sandbox, look), [(head, "title") for head in heads], widths)
    for row, words in zip(rows, texts, strict=True):
        tones = [_tone(row.cells.get(layer, Cell()), layer, sandbox) for layer in shown]
        label = padded(row.label, _LABEL_CELLS, "muted")
        lines += _table_row(label, list(zip(words, tones, strict=True)), widths)
    return [*lines, *_words_below(sandbox, cells)]


def _chains(
    rows: Sequence[LayerRow], shown: Sequence[Layer], sandbox: Sandbox, cells: int, look: Look
) -> list[Line]:
    """Return the table of a narrow panel: `files  workspace → workspace → in a sandbox`."""
    heads = [Span(_head(layer, sandbox, look), "title") for layer in shown]
    lines: list[Line] = [_verdict(sandbox, look), *_chain(Span(""), heads, cells, look)]
    for row in rows:
        known = [row.cells.get(layer, Cell()) for layer in shown]
        while not known[-1].text:
            known.pop()
        label = Span(pad(row.label, _LABEL_CELLS), "muted")
        values = [
            Span(_marked(cell, look).replace(_NO_BREAK, " ") or _UNKNOWN, _tone(cell, layer, sandbox))
            for cell, layer in zip(known, shown, strict=False)
        ]
        lines += _chain(label, values, cells, look)
    return lines


def _chain(label: Span, values: Sequence[Span], cells: int, look: Look) -> list[Line]:
    """Return values with arrows between them; one that does not fit begins a line."""
    arrow = look.glyphs.arrow + " "
    indent = Span(" " * width((label,)))
    lines = paragraph(values[0].text, cells, values[0].tone, head=(label,))
    for value in values[1:]:
        line = (*lines[-1], Span(f" {arrow}", "muted"), value)
        if width(line) <= cells:
            lines[-1] = line
        else:
            lines += paragraph(value.text, cells, value.tone, head=(indent, Span(arrow, "muted")))
    return lines


def _marked(cell: Cell, look: Look) -> str:
    if cell.mark is None:
        return cell.text
    return f"{look.glyphs.directions[cell.mark.direction]}{_NO_BREAK}{cell.text}"


def _tone(cell: Cell, layer: Layer, sandbox: Sandbox) -> Tone:
    if cell.mark:
        return SEVERITY_TONES[cell.mark.severity]
    return "muted" if layer == "observed" and sandbox.got.under_earlier_policy else ""


def _verdict(sandbox: Sandbox, look: Look) -> Line:
    words = f"{look.glyphs.verdicts[sandbox.verdict]} {sandbox.verdict}"
    return padded(words, _LABEL_CELLS, VERDICT_TONES[sandbox.verdict])


def _head(layer: Layer, sandbox: Sandbox, look: Look) -> str:
    """Return a column's head; that of an observation has its time, and whether the policy is newer."""
    got = sandbox.got
    if layer != "observed" or got.at is None:
        return layer
    before = " before the change" if got.under_earlier_policy else ""
    return f"{layer}{before} {stamp(got.at, look.now)}"


def _widths(table: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the cells of each column: as its content needs; where that is too much, the widest shrink."""
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    room -= _GAP_CELLS * (len(widths) - 1)
    least = min(_MIN_COLUMN_CELLS, max(1, room // len(widths)))
    while sum(widths) > room and max(widths) > least:
        widths[widths.index(max(widths))] -= 1
    return widths


def _table_row(label: Line, columns: Sequence[tuple[str, Tone]], widths: Sequence[int]) -> list[Line]:
    """Return one row of the table: as many lines as its highest cell has."""
    wrapped = [
        [line.replace(_NO_BREAK, " ") for line in wrap(text, room)]
        for (text, _), room in zip(columns, widths, strict=True)
    ]
    lines: list[Line] = []
    for number, parts in enumerate(zip_longest(*wrapped, fillvalue="")):
        line = [*(label if number == 0 else (Span(" " * _LABEL_CELLS),))]
        for part, room, (_, tone) in zip(parts, widths, columns, strict=True):
            line += padded(part, room + _GAP_CELLS, tone)
        lines.append(tuple(line[:-1]))
    return lines


def _words_below(sandbox: Sandbox, cells: int) -> list[Line]:
    lines: list[Line] = []
    if sandbox.launcher and not sandbox.applied_policy:  # else it stands in the column
        label = (Span(pad(_LAUNCHER_LABEL, _LABEL_CELLS), "muted"),)
        lines += paragraph(sandbox.launcher, cells, head=label, cap=2)
    if sandbox.escalation:
        asked = (Span(pad("escalation", _LABEL_CELLS), "muted"),)
        lines += paragraph(sandbox.escalation, cells, head=asked, cap=3)
    policy = sandbox.configured
    if policy and policy.filesystem in (Filesystem.WORKSPACE, Filesystem.CUSTOM):
        roots = "  ".join(policy.writable_roots) or "nothing"
        lines += paragraph(roots, cells, head=(Span(pad("writable", _LABEL_CELLS), "muted"),), cap=2)
    return lines
