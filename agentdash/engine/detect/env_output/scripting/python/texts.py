"""Texts in programs of Python: what values are written as, and formats."""

from __future__ import annotations

import re
from string import Formatter
from typing import Any, Final

from agentdash.engine.detect.env_output.patterns import ANY, QUIET_TEXT, Choice, Kind, Part
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.python.values import (
    Class,
    ExceptionValue,
    Members,
    Quiet,
    Routine,
    flat,
)
from agentdash.engine.detect.env_output.scripting.texts import Texts
from agentdash.engine.detect.env_output.scripting.values import (
    Builtin,
    Count,
    FailedError,
    Unknowable,
    Written,
)
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Bytes, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_SPEC: Final = re.compile(r"(?:(?P<fill>.)?(?P<align>[<>^]))?(?P<width>\d{0,3}|Zhole\d+Z)s?")
"""Of a text of which a part may not be known."""
_WIDE: Final = re.compile(r"\d{4}")
_CONVERSION: Final = re.compile(r"%(?P<flags>[-0]*)(?P<width>\d{0,3})(?P<kind>.)")
_PRETTY_WIDTH: Final = 80
"""Characters from which on `pprint` writes entries on lines of their own."""


class PythonTexts(Texts):
    """What values are written as."""

    empty_is_false = True
    regex_dialect = "python"

    def text_of_bool(self, value: bool) -> str:
        """Return `True` or `False`."""
        return str(value)

    def text_of_none(self) -> str:
        """Return `None` as text."""
        return "None"

    def text(self, value: Any) -> str:
        """Return what `str` gives."""
        match value:
            case Unknowable():
                return self.word(ANY)
            case Quiet():
                return self.word(QUIET_TEXT)
            case ExceptionValue(text=None):
                return self.word(QUIET_TEXT)
            case ExceptionValue(text=text):
                return self.text(text)
            case Instance(of=Class(members=members)) if "__str__" in members:
                return self.text(self.method(value, "__str__", [], {}))
            case dict() | list() | tuple() | Bytes() | Instance() | Selection():
                return self.repr(value)
            case _:
                return super().text(value)

    def method(self, owner: Any, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run a method of a value."""
        raise NotImplementedError

    def repr(self, value: Any) -> str:
        """Return what `repr` gives."""
        match value:
            case str():
                return self._quoted(value)
            case Bytes(text=str() as text):
                return "b" + self._quoted(text)
            case Members():
                if len(value) > 1:
                    raise UnknownError
                return "{" + self.repr(value[0]) + "}" if value else "set()"
            case dict():
                return "{" + ", ".join(f"{self.repr(k)}: {self.repr(v)}" for k, v in value.items()) + "}"
            case list():
                return "[" + ", ".join(self.repr(each) for each in value) + "]"
            case tuple():
                return "(" + ", ".join(self.repr(each) for each in value) + ("," * (len(value) == 1)) + ")"
            case Selection():
                return self.word(self.record(value))
            case Instance(of=Class(members=members)) if "__repr__" in members:
                return self.text(self.method(value, "__repr__", [], {}))
            case Instance(of=Class(name=name, fields=[_, *_] as fields), attributes=attributes):
                return f"{name}(" + ", ".join(f"{f}={self.repr(attributes[f])}" for f in fields) + ")"
            case Instance() | Builtin() | Routine() | Class() | Written() | Lines():
                raise UnknownError
            case _:
                return self.text(value)

    def _quoted(self, value: str) -> str:
        if self.kind_of(value) in (Kind.ANY, Kind.QUIET_LINE, Kind.QUIET_TEXT, Kind.DIGITS):
            return value  # in quotes, or None
        if not has_placeholder(value):
            return repr(value)
        if any(repr(piece) != f"'{piece}'" for piece in re.split(r"Zhole\d+Z", value)):
            raise UnknownError
        return f"'{value}'"

    # ------------------------------------------------------------ output

    def written(self, value: Any) -> list[Part]:
        """Return what `print` writes of a value."""
        match value:
            case Written(parts=parts):
                return list(parts)
            case Bytes(text=Written()):
                return [ANY]
            case Lines(is_text=True):
                return [self.lines(value)]
            case Lines():
                return [ANY]
            case _:
                return [self.text(value)]

    def print(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        """Run `print`."""
        separator, end = keywords.get("sep", " "), keywords.get("end", "\n")
        stream = keywords.get("file", Builtin("sys.stdout"))
        if stream not in (Builtin("sys.stdout"), Builtin("sys.stderr")) or keywords.keys() - {
            *("sep", "end", "file", "flush")
        }:
            raise UnknownError
        target = self.out if stream == Builtin("sys.stdout") else self.err
        separator = " " if separator is None else self.plain(separator)
        end = "\n" if end is None else self.plain(end)
        if len(arguments) == 1 and isinstance(arguments[0], Lines) and arguments[0].is_text and end == "\n":
            lines = self.lines(arguments[0])
            target.append(lines if self.certain(arguments[0].kept) else Choice(((lines,), ("\n",))))
            return
        for number, argument in enumerate(arguments):
            target += [separator] if number else []
            target += self.written(argument)
        target.append(end)

    def print_all(self, values: Any, keywords: dict[str, Any]) -> None:
        """Run `print(*values)`."""
        if isinstance(values, Lines | Selection):
            joined = self.joined(values, keywords.pop("sep", " "))
            self.print([joined], keywords)
            return
        self.print(list(values), keywords)

    def pretty(self, value: Any, keywords: dict[str, Any]) -> None:
        """Run `pprint.pprint`."""
        if keywords.keys() - {"indent", "width", "sort_dicts", "stream"}:
            raise UnknownError
        if isinstance(value, Selection) and value.form is Form.MAPPING:
            parts: Part = self.record(value, is_python=value.kept == (True, True))
            self.out += [parts, "\n"]
            return
        if isinstance(value, dict) and keywords.get("sort_dicts", True):
            value = {key: value[key] for key in sorted(value)}
        flat_text = self.repr(value)
        options: list[tuple[Part, ...]] = [(flat_text,)]
        if isinstance(value, dict | list) and value and not keywords:
            entries = (
                [f"{self.repr(k)}: {self.repr(v)}" for k, v in value.items()]
                if isinstance(value, dict)
                else [self.repr(each) for each in value]
            )
            ends = "{}" if isinstance(value, dict) else "[]"
            options.append((ends[0] + ",\n ".join(entries) + ends[1],))
        elif keywords and len(flat_text) > _PRETTY_WIDTH // 2:
            raise UnknownError
        self.out += [self.word(Choice(tuple(options))), "\n"]

    # ------------------------------------------------------------ formats

    def with_spec(self, value: Any, spec: str) -> str:
        """Return what `format` gives."""
        if not spec:
            return self.text(value)
        if isinstance(value, Unknowable):
            return self.word(ANY)
        if isinstance(value, Quiet | Count | ExceptionValue):
            return self.word(QUIET_TEXT)
        if isinstance(value, int) or (isinstance(value, str) and not has_placeholder(value + spec)):
            if _WIDE.search(spec):
                raise UnknownError
            try:
                return format(value, self.plain(spec))
            except ValueError as error:
                raise FailedError("ValueError") from error
        if value is None:
            raise FailedError("TypeError")
        if (match := _SPEC.fullmatch(spec)) is None:
            raise UnknownError
        width = Count(0) if has_placeholder(match["width"]) else int(match["width"] or 0)
        return self.aligned(self.text(value), width, match["align"] or "<", match["fill"] or " ")

    def aligned(self, text: str, width: int | Count, align: str, fill: str = " ") -> str:
        """Return a text with blanks around it."""
        if align != "^" or isinstance(width, Count):
            return self.padded(text, width, left=align == "<", fill=fill)
        if not has_placeholder(text):
            return format(text, f"{fill}^{width}") if width < 200 else self.plain(None)
        half = self.padded(text, (width + 1) // 2, left=False, fill=fill)
        return half + self.padded(text, (width + 1) // 2, fill=fill).removeprefix(text)

    def format(self, template: str, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Run `str.format`."""
        out = ""
        number = 0
        try:
            fields = list(Formatter().parse(self.plain(template)))
        except ValueError as error:
            raise FailedError("ValueError") from error
        for literal, name, spec, conversion in fields:
            out += literal
            if name is None:
                continue
            if name == "":
                name, number = str(number), number + 1  # noqa: PLW2901
            value = arguments[int(name)] if name.isdecimal() else keywords.get(name, Quiet)
            if value is Quiet or "{" in (spec or ""):
                raise UnknownError
            out += self.with_spec(self.repr(value) if conversion == "r" else value, spec or "")
        return out

    def percent(self, template: str, right: Any) -> str:
        """Return `template % values`."""
        if isinstance(right, Selection | Unknowable):
            raise UnknownError
        if isinstance(right, dict):
            names = re.findall(r"%\((\w+)\)", self.plain(template))
            template = re.sub(r"%\(\w+\)", "%", template)
            right = tuple(right[name] for name in names)
        values = list(right) if isinstance(right, tuple) else [right]
        is_known = not isinstance(right, Quiet | Unknowable)
        mismatch = FailedError("TypeError") if is_known else UnknownError()  # it may be a tuple

        def spelled(match: re.Match[str]) -> str:
            if match["kind"] == "%":
                return "%"
            if not values:
                raise mismatch
            value = values.pop(0)
            if match["kind"] not in "srd" or (match["kind"] == "d" and not isinstance(value, int)):
                raise UnknownError
            text = self.repr(value) if match["kind"] == "r" else self.text(value)
            fill = "0" if match["flags"] == "0" else " "
            return self.padded(text, int(match["width"] or 0), left="-" in match["flags"], fill=fill)

        text = _CONVERSION.sub(spelled, self.plain(template))
        if values:
            raise mismatch
        return text

    def joined(self, values: Any, separator: Any) -> Any:
        """Return what `join` gives."""
        if isinstance(values, Selection | Lines):
            return super().joined(values, separator)
        if not isinstance(values, list | tuple) or isinstance(values, Members):
            raise UnknownError
        if any(isinstance(value, Unknowable) for value in values):
            raise UnknownError
        if not all(isinstance(value, str) for value in values):
            raise FailedError("TypeError")
        return self.plain(separator).join(values)

    def require_known(self, *values: Any) -> None:
        """Raise `UnknownError` where one of some values is not known."""
        for value in flat(list(values)):
            if isinstance(value, str):
                self.plain(value)
            elif value is not None and not isinstance(value, bool | int):
                raise UnknownError
