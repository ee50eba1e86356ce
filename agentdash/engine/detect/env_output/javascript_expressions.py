"""Expressions of JavaScript under a hypothesis."""

from __future__ import annotations

from typing import Any, Final

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump
from agentdash.engine.detect.env_output.javascript_calls import Calls
from agentdash.engine.detect.env_output.javascript_syntax import Tree
from agentdash.engine.detect.env_output.javascript_values import (
    COMPUTED,
    NULL,
    OPAQUE,
    QUIET_VALUES,
    UNKNOWN_NUMBER,
    Function,
    Method,
    Null,
    Path,
    Regex,
    ThrownError,
    Written,
)
from agentdash.engine.detect.env_output.patterns import Hole, Kind, Trimmed
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.selections import MARK, Form, Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_GLOBALS: Final = frozenset(
    ("process", "console", "JSON", "Object", "require", "String", "Boolean", "Array", "Map")
)


class Expressions(Calls):
    """Expressions of JavaScript under a hypothesis."""

    def value(self, tree: Tree) -> Any:
        """Return the value of an expression."""
        match tree:
            case ("text", text) | ("number", text):
                return text
            case ("template", *parts):
                return "".join(self._text(self.value(part)) for part in parts)
            case ("regex", source, flags):
                pattern = compiled(source.replace("\\/", "/"), "perl", ignores_case="i" in flags)
                if pattern is None:
                    raise UnknownError
                return Regex(pattern)
            case ("name", name):
                return self._named(name)
            case ("member", owner, key):
                return self._member(self.value(owner), self.value(key))
            case ("call", function, arguments):
                return self._call(self.value(function), self._arguments(arguments))
            case ("list", items):
                return self._arguments(items)
            case ("object", entries):
                return self._object(entries)
            case ("arrow", parameters, body):
                return Function(parameters, body)
            case ("choice", test, first, second):
                tested = self.value(test)
                is_word = first[0] in ("text", "number") and second[0] in ("text", "number")
                if is_word and not (isinstance(tested, int) and not isinstance(tested, bool)):
                    raise UnknownError  # a word for a value proves nothing
                return self.value(first if self._truth(tested) else second)
            case ("unary", sign, inner):
                return self._unary(sign, self.value(inner))
            case ("binary", sign, left, right):
                return self._binary(sign, left, right)
            case ("assign", sign, ("name", name), value) if sign in ("=", "+="):
                computed = self.value(value)
                if sign == "+=":
                    computed = self._sum(self._named(name), computed)
                self._names[name] = computed
                return computed
            case ("assign", "=", ("member", owner, key), value):
                mapping, name = self.value(owner), self.value(key)
                if not isinstance(mapping, dict) or not isinstance(name, str) or has_placeholder(name):
                    raise UnknownError
                mapping[name] = self.value(value)
                return mapping[name]
            case _:
                raise UnknownError

    def _arguments(self, trees: tuple[Tree, ...]) -> list[Any]:
        found: list[Any] = []
        for tree in trees:
            if tree[0] != "spread":
                found.append(self.value(tree))
            elif isinstance(values := self.value(tree[1]), list):
                found += values
            else:
                raise UnknownError
        return found

    def _object(self, entries: tuple[Tree, ...]) -> Any:
        if len(entries) == 1 and entries[0][0] == "spread":
            value = self.value(entries[0][1])
            return value if isinstance(value, Selection) else dict(value)
        result: dict[str, Any] = {}
        for entry in entries:
            if entry[0] == "spread" and isinstance(spread := self.value(entry[1]), dict):
                result |= spread
                continue
            if entry[0] != "entry" or not isinstance(key := self.value(entry[1]), str):
                raise UnknownError
            result[key] = self.value(entry[2])
        return result

    def _named(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        match name:
            case "undefined":
                return None
            case "null":
                return NULL
            case "true" | "false":
                return name == "true"
            case (
                "process" | "console" | "JSON" | "Object" | "require" | "String" | "Boolean" | "Array" | "Map"
            ):
                return Path(name)
            case _:
                raise UnknownError

    def _member(self, owner: Any, key: Any) -> Any:
        match owner:
            case None:
                raise ThrownError
            case Path(name="process") if key == "env":
                return Selection((True, True))
            case Path(name=name) if isinstance(key, str) and f"{name}.{key}" in QUIET_VALUES:
                return self._quiet()
            case Path(name=name) if isinstance(key, str):
                return Path(f"{name}.{key}")
            case Selection(form=Form.MAPPING):
                return self._variable(owner, key)
            case Selection() if key == "length":
                there = [
                    keep and self._environment[n] is not None
                    for n, keep in zip(FLAGS, owner.kept, strict=True)
                ]
                return sum(there) if any(there) else UNKNOWN_NUMBER
            case Lines(is_text=False, kept=kept) if key == "length":
                return 1 if self._has_some(kept) else UNKNOWN_NUMBER
            case list() if isinstance(key, int):
                return owner[key] if 0 <= key < len(owner) else None
            case list() | str() if key == "length":
                if isinstance(owner, str) and has_placeholder(owner):
                    raise UnknownError
                return len(owner)
            case dict() if isinstance(key, str) and key in owner:
                return owner[key]
            case str() | list() | Selection() | Regex() | Lines() | Written():
                return Method(owner, key)
            case dict() if not isinstance(key, str) or has_placeholder(key):
                raise UnknownError
            case dict():
                return None
            case _:
                raise UnknownError

    def _has_some(self, kept: tuple[bool, bool]) -> bool:
        return any(keep and self._environment[n] is not None for n, keep in zip(FLAGS, kept, strict=True))

    def _unary(self, sign: str, value: Any) -> Any:
        if sign == "!":
            return not self._truth(value)
        if sign == "typeof" and (value is None or isinstance(value, str)):
            return "undefined" if value is None else "string"
        if sign == "void":
            return None
        raise UnknownError

    def _truth(self, value: Any) -> bool:
        if isinstance(value, str) and has_placeholder(value):
            hole = self._holes.get(value)
            if value == MARK or (isinstance(hole, Hole) and hole.kind is Kind.OTHER):
                return True
            if not value.partition("Zhole")[0]:
                raise UnknownError
            return True
        if isinstance(value, Null):
            return False
        if value == UNKNOWN_NUMBER:
            return self._decide()
        if isinstance(value, Lines) and value.is_text:
            return self._has_some(value.kept) or self._decide()
        if isinstance(value, Written):
            return self._decide()
        if isinstance(value, OPAQUE):
            raise UnknownError
        return True if isinstance(value, list | dict) else bool(value)

    def _binary(self, sign: str, left_tree: Tree, right_tree: Tree) -> Any:
        left = self.value(left_tree)
        match sign:
            case "||":
                return left if self._truth(left) else self.value(right_tree)
            case "&&":
                return self.value(right_tree) if self._truth(left) else left
            case "??":
                return self.value(right_tree) if left is None or left is NULL else left
            case _:
                pass
        right = self.value(right_tree)
        match sign:
            case "+":
                return self._sum(left, right)
            case "===" | "==":
                return self._equal(left, right, is_loose=sign == "==")
            case "!==" | "!=":
                return not self._equal(left, right, is_loose=sign == "!=")
            case "in" if isinstance(right, Selection) and left in FLAGS:
                return self._variable(right, left) is not None
            case "-" | "*" | "<" | ">" | "<=" | ">=" if isinstance(left, int) and isinstance(right, int):
                return COMPUTED[sign](left, right)
            case _:
                raise UnknownError

    def _sum(self, left: Any, right: Any) -> Any:
        if isinstance(left, bool) or isinstance(right, bool):
            raise UnknownError
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if isinstance(left, Written) and right == "\n":
            return Written((*left.parts, "\n"))
        if isinstance(left, Lines) and left.is_text and isinstance(right, str):
            lines = Dump(shown=self._shown(left.kept), style=left.style)
            return Written((Trimmed((lines,)), right))
        if isinstance(left, str) or isinstance(right, str):
            return self._text(left) + self._text(right)
        raise UnknownError

    def _equal(self, left: Any, right: Any, *, is_loose: bool) -> bool:
        for value, other in ((left, right), (right, left)):
            if isinstance(value, str) and has_placeholder(value):
                hole = self._holes.get(value)
                excluded = isinstance(hole, Hole) and hole.kind is Kind.OTHER and other in ("", *hole.exclude)
                if other is None or other is NULL or excluded:
                    return False
                raise UnknownError
        if is_loose and (left is NULL or left is None):
            return right is NULL or right is None
        if (
            isinstance(left, OPAQUE)
            or isinstance(right, OPAQUE)
            or (is_loose and type(left) is not type(right))
        ):
            raise UnknownError
        return bool(left == right)
