"""Values of Perl, Ruby, PHP, Lua and jq: texts, variables, defaults, and what joins them."""

from __future__ import annotations

import re
from typing import Any, Final

from agentdash.engine.detect.env_output.dumps import FLAGS
from agentdash.engine.detect.env_output.expression_forms import (
    closes,
    split,
    unescaped,
)
from agentdash.engine.detect.env_output.expression_loops import (
    STRING,
    Language,
    UnknownError,
)
from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind, Part, Parts
from agentdash.engine.detect.env_output.placeholders import has_placeholder, refilled, with_placeholders
from agentdash.engine.detect.env_output.streams import Call

ZERO_IS_FALSE: Final = {"perl": ("||",), "php": ("?:",)}
"""Operators by language for which the text `0` is false."""


MARK: Final = "Zhole9999Z"
"""Stands for the value of any variable in a loop over the environment."""


LOOP_VALUE: Final[Parts] = (Hole(Kind.OTHER, key="value of the loop"),)


class Values:
    """Computes expressions of a program."""

    def __init__(self, language: Language, options: str, call: Call, holes: dict[str, Part]) -> None:
        self._language = language
        self._options = options
        self._call = call
        self._holes = holes
        self._variable = re.compile(language.variable)
        self.is_cut = False
        """Something is in the program that is not modelled; what it prints before is known."""

    def _text(self, value: Any) -> str:
        if value is None:
            return self._language.unset
        if isinstance(value, bool):
            return str(value).lower()
        return str(value)

    def _value(self, expression: str) -> Any:
        """Return the value of an expression: a text, None for unset."""
        expression = expression.strip()
        while expression.startswith("(") and closes(expression) == len(expression):
            expression = expression[1:-1].strip()
        for operator in self._language.defaults:
            parts = split(expression, (operator,))
            if len(parts) > 1:
                return self._default(operator, parts)
        if self._language.joins:
            parts = split(expression, self._language.joins)
            if len(parts) > 1:
                return self._joined([self._value(part) for part in parts])
        return self._atom(expression)

    def _default(self, operator: str, parts: list[str]) -> Any:
        value: Any = None
        for number, part in enumerate(parts):
            value = self._value(part)
            if operator in ZERO_IS_FALSE.get(self._language.name, ()) and has_placeholder(str(value)):
                return self._either(value, self._default(operator, parts[number + 1 :]))
            is_set = value is not None if operator in ("??", "//") else bool(value)
            if operator in ZERO_IS_FALSE.get(self._language.name, ()) and value == "0":
                is_set = False
            if self._language.name in ("ruby", "lua"):
                is_set = value is not None
            if is_set:
                return value
        return value

    def _either(self, value: Any, default: Any) -> str:
        """Return a word for another value of a flag or a default: the value may be `0`."""
        mark = f"Zhole{len(self._holes)}Z"
        options = tuple(refilled((self._text(each),), self._holes) for each in (value, default))
        self._holes[mark] = Choice(options)
        return mark

    def _joined(self, values: list[Any]) -> str:
        if self._language.name in ("ruby", "jq") and None in values:
            raise UnknownError
        return "".join(self._text(value) for value in values)

    def _atom(self, expression: str) -> Any:
        if match := self._variable.fullmatch(expression):
            return self._read(match)
        if STRING.fullmatch(expression):
            return self._string(expression)
        if re.fullmatch(r"\d+", expression):
            return expression
        if self._language.name == "ruby" and (
            match := re.fullmatch(r"ENV\.fetch\(\s*(['\"]\w+['\"])\s*,\s*(.*)\)", expression)
        ):
            return self._default("??", [f"ENV[{match[1]}]", match[2]])
        raise UnknownError

    def _read(self, match: re.Match[str]) -> Any:
        groups = match.groupdict()
        name = groups.get("name") or groups.get("name2")
        if name not in FLAGS or name is None:
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.ANY)
            return mark
        value = self._call.environment[name]
        if value is None:
            return None
        if value == LOOP_VALUE:
            return MARK
        text = with_placeholders(value, self._holes)
        if text is None:
            raise UnknownError
        return text

    def _string(self, literal: str) -> str:
        quote, body = literal[0], literal[1:-1]
        if quote == "'" and self._language.name != "ruby":
            if "\\" in body:
                raise UnknownError
            return body
        pattern = self._language.interpolation
        if quote == "'":
            pattern = ""
        if not pattern:
            return unescaped(body)
        out = ""
        for number, piece in enumerate(re.split(pattern, body)):
            if number % 2:
                out += self._text(self._value(piece))
            elif self._language.name == "perl" and re.search(r"[$@]\w", piece):
                raise UnknownError
            else:
                out += unescaped(piece)
        return out
