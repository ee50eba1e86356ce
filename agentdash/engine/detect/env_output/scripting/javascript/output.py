"""What `console.log`, `console.table` and `JSON.stringify` write."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any, Final

from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Part
from agentdash.engine.detect.env_output.scripting.javascript.expression_syntax import Tree
from agentdash.engine.detect.env_output.scripting.javascript.promises import Promises
from agentdash.engine.detect.env_output.scripting.javascript.values import (
    NULL,
    Class,
    Null,
    Pairs,
    written_key,
)
from agentdash.engine.detect.env_output.scripting.json_text import Layout, json_text
from agentdash.engine.detect.env_output.scripting.values import Function, Unknowable, Written
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_MAX_DEPTH: Final = 3
"""Levels of an object that `console.log` writes; deeper ones are `[Object]`."""


class Output(Promises):
    """What `console.log`, `console.table` and `JSON.stringify` write."""

    empty_is_false = True
    regex_dialect = "javascript"

    def text(self, value: Any) -> str:
        """Return a value as JavaScript writes it into a text."""
        if isinstance(value, Null):
            return "null"
        if isinstance(value, Instance) and isinstance(value.of, Class):
            member = value.of.members.get(("function", "toString"))
            if member is None:
                raise UnknownError
            return self.text(self.call(self.method_of(member, value), []))
        if isinstance(value, list) and not isinstance(value, Pairs):
            return ",".join("" if each in (None, NULL) else self.text(each) for each in value)
        return super().text(value)

    @abstractmethod
    def method_of(self, member: Tree, owner: Any) -> Function:
        """Return a function of a class with what it belongs to."""

    def text_of_none(self) -> str:
        """Return `undefined` as text."""
        return "undefined"

    def print(self, values: list[Any]) -> None:
        """Run `console.log`."""
        first = values[0] if values else ""
        if len(values) > 1 and isinstance(first, str) and "%" in first:
            kinds = re.findall(r"%.", first)
            if len(kinds) != len(values) - 1 or {*kinds} - {"%s", "%d", "%i", "%j", "%o", "%O"}:
                raise UnknownError
            for kind, piece, value in zip(kinds, re.split(r"%.", first), values[1:], strict=False):
                self.out += [piece, self._directive(kind, value)]
            self.out += [re.split(r"%.", first)[-1], "\n"]
            return
        if len(values) == 1 and isinstance(first, Lines) and first.is_text:
            lines = self.lines(first)
            self.out.append(lines if self.certain(first.kept) else Choice(((lines,), ("\n",))))
            return
        for number, value in enumerate(values):
            self.out += [" "] if number else []
            self.out += self.inspected(value)
        self.out.append("\n")

    def _directive(self, kind: str, value: Any) -> str:
        """Return what stands for `%s` and others in the first argument of `console.log`."""
        match kind:
            case "%s" if not isinstance(value, list | dict):
                return self.text(value)
            case "%d" | "%i" if type(value) is int:
                return str(value)
            case "%j":
                return self.text(self.json(value, []))
            case "%o" | "%O":
                return self.word(*self._inner(value, 1))
            case _:
                raise UnknownError

    def inspected(self, value: Any) -> list[Part]:
        """Return what `console.log` writes of a value."""
        match value:
            case Selection():
                return [self.record(value)]
            case Lines(is_text=True):
                return [self.lines(value)]
            case Lines():
                return [ANY]
            case Written(parts=parts):
                return list(parts)
            case str():
                return [value]
            case _:
                return [self._inner(value, 1)]

    def _inner(self, value: Any, depth: int) -> str:
        """Return what Node writes of a value in an object: on one line, or on many where it is long."""
        match value:
            case str():
                return self._quoted(value)
            case Pairs():
                raise UnknownError
            case list():
                texts, ends = [self._inner(each, depth + 1) for each in value], "[]"
            case dict():
                texts = [f"{written_key(k)}: {self._inner(each, depth + 1)}" for k, each in value.items()]
                ends = "{}"
            case Instance():
                raise UnknownError
            case Selection():
                return self.word(self.record(value))
            case _:
                return self.text(value)
        if depth > _MAX_DEPTH:
            raise UnknownError
        if not texts:
            return ends
        blanks = "  " * depth
        many = f"{ends[0]}\n{blanks}" + f",\n{blanks}".join(texts) + f"\n{blanks[2:]}{ends[1]}"
        return self.word(Choice(((f"{ends[0]} {', '.join(texts)} {ends[1]}",), (many,))))

    def _quoted(self, value: str) -> str:
        if self.kind_of(value) in (Kind.ANY, Kind.QUIET_LINE):
            return value  # quoted, undefined or a number
        if "'" in value or "\n" in value or "\\" in value:
            raise UnknownError
        return f"'{value}'"

    def json(self, value: Any, layout: list[Any]) -> Any:
        """Run `JSON.stringify`."""
        if layout and isinstance(layout[0], list) and isinstance(value, Selection | dict):
            value = self.sliced(value, layout[0])
            layout = [NULL, *(layout[1:] or [0])]
        if layout and isinstance(layout[0], Function):
            value, layout = self._revived(layout[0], "", value), [NULL, *(layout[1:] or [0])]
        if layout and isinstance(layout[-1], str) and set(layout[-1]) == {" "}:
            layout[-1] = len(layout[-1])
        if layout and (len(layout) != 2 or layout[0] not in (None, NULL) or layout[1] not in range(5)):
            raise UnknownError
        if value is None:
            return None
        indent = layout[1] if layout else 0
        parts = json_text(self, self._plain(value), Layout(indent=indent, colon=": " if indent else ":"))
        return parts if isinstance(value, str) else Written((parts,))

    def _revived(self, function: Function, key: str, value: Any) -> Any:
        """Return what a function makes of a value and those in it."""
        found = self.call(function, [key, value])
        if isinstance(found, dict):
            return {name: self._revived(function, name, each) for name, each in found.items()}
        if isinstance(found, list):
            return [self._revived(function, str(number), each) for number, each in enumerate(found)]
        if isinstance(found, Selection):
            raise UnknownError
        return found

    def _plain(self, value: Any) -> Any:
        """Return a value without what JSON leaves out."""
        match value:
            case Null():
                return None
            case Pairs():
                return {}
            case Instance(attributes=attributes):
                return self._plain(attributes)
            case dict():
                kept = {key: each for key, each in value.items() if not self._is_left_out(each)}
                return {key: self._plain(each) for key, each in kept.items()}
            case list():
                return [None if each is None else self._plain(each) for each in value]
            case _:
                return value

    def _is_left_out(self, value: Any) -> bool:
        """Return whether a value is `undefined`, which JSON leaves out; one that is not known may be."""
        if value is None:
            return True
        is_open = isinstance(value, Unknowable) or self.kind_of(value) is Kind.ANY
        return is_open and self.decide()

    def table(self, value: Any) -> None:
        """Run `console.table`: a line with the name and the value of each entry."""
        if isinstance(value, Selection) and value.form is Form.MAPPING:
            raise UnknownError
        rows = value if isinstance(value, dict) else dict(enumerate(self.list_of(value)))
        if not rows or isinstance(value, Pairs):
            raise UnknownError
        blank = Hole(Kind.QUIET_LINE)
        self.out += [blank, "\n", blank, "\n", blank, "\n"]
        for key, inner in rows.items():
            cells = list(inner.values()) if isinstance(inner, dict) else inner
            self.out += [blank, str(key)]
            for cell in cells if isinstance(cells, list) else [cells]:
                self.out += [blank, " ", self._inner(cell, _MAX_DEPTH + 1), " "]
            self.out += [blank, "\n"]
        self.out += [blank, "\n"]
