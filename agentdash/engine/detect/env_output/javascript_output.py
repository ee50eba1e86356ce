"""What `console.log`, `console.table` and `JSON.stringify` write."""

from __future__ import annotations

import json
import re
from typing import Any

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump
from agentdash.engine.detect.env_output.javascript_base import Base
from agentdash.engine.detect.env_output.javascript_values import (
    NULL,
    Null,
    Pairs,
    Written,
    written_key,
)
from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Part
from agentdash.engine.detect.env_output.placeholders import refilled
from agentdash.engine.detect.env_output.records import Record
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError


class Output(Base):
    """What `console.log`, `console.table` and `JSON.stringify` write."""

    def print(self, values: list[Any]) -> None:
        """Run `console.log`."""
        first = values[0] if values else ""
        if len(values) > 1 and isinstance(first, str) and "%" in first:
            if re.findall(r"%.", first) != ["%s"] * (len(values) - 1):
                raise UnknownError
            pieces = first.split("%s")
            texts = [self._text(value) for value in values[1:]]
            self.out += ["".join(a + b for a, b in zip(pieces, [*texts, ""], strict=True)), "\n"]
            return
        if len(values) == 1 and isinstance(first, Lines) and first.is_text:
            lines = Dump(shown=self._shown(first.kept), style=first.style)
            self.out.append(
                lines if True in (lines.required(0), lines.required(1)) else Choice(((lines,), ("\n",)))
            )
            return
        for number, value in enumerate(values):
            self.out += [" "] if number else []
            self.out += self._inspected(value)
        self.out.append("\n")

    def _inspected(self, value: Any) -> list[Part]:
        """Return what `console.log` writes of a value."""
        match value:
            case Selection(form=Form.MAPPING):
                return [self._record(value)]
            case Lines(is_text=True):
                return [Dump(shown=self._shown(value.kept), style=value.style)]
            case Pairs():
                raise UnknownError
            case Selection() | Lines():
                return [ANY]
            case Written(parts=parts):
                return list(parts)
            case list() | dict():
                return [self._listing(value)]
            case _:
                return [self._text(value)]

    def _listing(self, value: list[Any] | dict[str, Any]) -> Part:
        """Return what Node writes of a list or an object: on one line, or on many where it is long."""
        if isinstance(value, list):
            texts, ends = [self._quoted(v) for v in value], "[]"
        else:
            texts = [f"{written_key(k)}: {self._quoted(v)}" for k, v in value.items()]
            ends = "{}"
        if not texts:
            return ends
        many = f"{ends[0]}\n  " + ",\n  ".join(texts) + f"\n{ends[1]}"
        return Choice(
            (
                refilled((f"{ends[0]} {', '.join(texts)} {ends[1]}",), self._holes),
                refilled((many,), self._holes),
            )
        )

    def _quoted(self, value: Any) -> str:
        if isinstance(value, str):
            if "'" in value or "\n" in value:
                raise UnknownError
            hole = self._holes.get(value)
            if isinstance(hole, Hole) and hole.kind in (Kind.ANY, Kind.QUIET_LINE):
                return value  # quoted, undefined or a number
            return f"'{value}'"
        if isinstance(value, Pairs):
            raise UnknownError
        if isinstance(value, list | dict):
            if isinstance(value, dict):
                inner = ", ".join(f"{written_key(k)}: {self._quoted(v)}" for k, v in value.items())
                return f"{{ {inner} }}"
            return "[ " + ", ".join(self._quoted(v) for v in value) + " ]"
        return self._text(value)

    def _record(self, selection: Selection, *, indent: int = 0) -> Record:
        there = [
            self._environment[name] is not None and keep
            for name, keep in zip(FLAGS, selection.kept, strict=True)
        ]
        return Record(shown=self._shown(selection.kept), required=(there[0], there[1]), indent=indent)

    def _json(self, value: Any, layout: list[Any]) -> Any:
        """Run `JSON.stringify`."""
        if layout and isinstance(layout[0], list) and isinstance(value, Selection | dict):
            value = self._only(value, layout[0])
            layout = [NULL, *(layout[1:] or [0])]
        if layout and (len(layout) != 2 or layout[0] is not NULL or layout[1] not in (0, 1, 2, 3, 4)):
            raise UnknownError
        indent = layout[1] if layout and layout[1] else None
        if isinstance(value, Selection) and value.form is Form.MAPPING:
            return Written((self._record(value, indent=indent or 0),))
        if value is None:
            return None
        plain = self._plain(value)
        separators = (",", ": " if indent else ":")
        text = json.dumps(plain, separators=separators, indent=indent, ensure_ascii=False)
        for mark, hole in self._holes.items():  # numbers have no quotes
            if isinstance(hole, Hole) and hole.kind is Kind.QUIET_LINE:
                text = text.replace(f'"{mark}"', mark)
        return text

    def _only(self, value: Any, names: list[Any]) -> dict[str, Any]:
        """Return the entries of an object with some names."""
        if isinstance(value, Selection):
            value = {name: self._variable(value, name) for name in names}
        return {name: value[name] for name in names if isinstance(name, str) and name in value}

    def _plain(self, value: Any) -> Any:
        """Return a value as Python's, without what JSON leaves out."""
        match value:
            case Null():
                return None
            case Pairs():
                raise UnknownError
            case dict():
                return {key: self._plain(inner) for key, inner in value.items() if inner is not None}
            case list():
                return [None if inner is None else self._plain(inner) for inner in value]
            case str():
                hole = self._holes.get(value)
                if isinstance(hole, Hole) and hole.kind is Kind.ANY:
                    raise UnknownError  # left out where it is unset
                return value
            case int() if not isinstance(value, bool):
                return value
            case _:
                raise UnknownError

    def _table(self, value: Any) -> None:
        """Run `console.table`: a line with the name and the value of each entry."""
        rows = (
            value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else None
        )
        if not rows:
            raise UnknownError
        blank = Hole(Kind.QUIET_LINE)
        self.out += [blank, "\n", blank, "\n", blank, "\n"]
        for key, inner in rows.items():
            cells = (
                list(inner.values())
                if isinstance(inner, dict)
                else inner
                if isinstance(inner, list)
                else [inner]
            )
            self.out += [blank, str(key)]
            for cell in cells:
                self.out += [blank, " ", self._quoted(cell), " "]
            self.out += [blank, "\n"]
        self.out += [blank, "\n"]
