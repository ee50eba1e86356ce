"""JSON as the libraries of several languages lay it out."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from agentdash.engine.detect.env_output.patterns import Choice, Kind
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.machine import Machine
from agentdash.engine.detect.env_output.scripting.values import Count, Unknowable
from agentdash.engine.detect.env_output.selections import Form, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Layout(msgspec.Struct, frozen=True):
    """How JSON is laid out: `indent` 0 is on one line."""

    indent: int = 0
    comma: str = ","
    colon: str = ":"
    empty_list: str = "[]"
    empty_map: str = "{}"
    empty_selection: str = "{}"
    """What is written of a part of the environment without a variable in it."""


def json_text(machine: Machine, value: Any, layout: Layout, depth: int = 1) -> str:
    """Return a value as JSON."""

    def inner(each: Any) -> str:
        return json_text(machine, each, layout, depth + 1)

    match value:
        case None | bool() | int():
            return json.dumps(value)
        case Count() | Unknowable():
            return machine.text(value)
        case str():
            return _quoted(machine, value)
        case Selection(form=Form.MAPPING):
            return _selection(machine, value, layout, depth)
        case list():
            return _group([inner(each) for each in value], "[]", layout, depth) or layout.empty_list
        case dict():
            entries = [f"{_key(machine, key)}{layout.colon}{inner(each)}" for key, each in value.items()]
            return _group(entries, "{}", layout, depth) or layout.empty_map
        case _:
            raise UnknownError


def _key(machine: Machine, key: Any) -> str:
    return json.dumps(machine.plain(str(key)), ensure_ascii=False)


def _quoted(machine: Machine, value: str) -> str:
    if machine.kind_of(value) in (Kind.ANY, Kind.QUIET_LINE, Kind.QUIET_TEXT, Kind.DIGITS):
        return value  # in quotes, a number or null
    if has_placeholder(value):
        pieces = value.split("Zhole")
        if any(json.dumps(piece)[1:-1] != piece for piece in pieces):
            raise UnknownError
        return f'"{value}"'
    return json.dumps(value, ensure_ascii=False)


def _selection(machine: Machine, value: Selection, layout: Layout, depth: int) -> str:
    record = machine.record(value, indent=layout.indent * depth)
    if layout.empty_selection == "{}" or machine.certain(value.kept):
        return machine.word(record)
    return machine.word(Choice(((record,), (layout.empty_selection,))))


def _group(entries: list[str], ends: str, layout: Layout, depth: int) -> str:
    """Return entries in brackets; nothing where there are none."""
    if not entries:
        return ""
    if not layout.indent:
        return ends[0] + layout.comma.join(entries) + ends[1]
    blanks = " " * (layout.indent * depth)
    return f"{ends[0]}\n{blanks}" + f",\n{blanks}".join(entries) + f"\n{blanks[layout.indent :]}{ends[1]}"
