"""Programs of awk: parse them, and run their rules on a line, or on `ENVIRON`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from agentdash.engine.detect.env_output.awk_syntax import (
    Rule,
    Tree,
)
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.unknown import UnknownError

_MAX_STEPS: Final = 500


# ---------------------------------------------------------------- running


class _NextError(Exception):
    """The rest of the rules is passed over."""


class Awk:
    """Runs rules: values are texts, numbers, and None for a variable that is not set."""

    def __init__(
        self,
        rules: tuple[Rule, ...],
        variables: dict[str, Any],
        *,
        environment: Callable[[str], str | None],
        over_environment: Callable[[Callable[[str], str]], str],
    ) -> None:
        self._rules = rules
        self._variables: dict[str, Any] = variables
        self._arrays: dict[str, dict[str, Any]] = {}
        self._environment = environment
        """Gives a variable of the environment."""
        self._over_environment = over_environment
        """Gives what a loop over the environment prints, of what it prints of one name."""
        self._fields: list[str] = [""]
        self._out: list[str] = []
        self._steps = 0

    @property
    def reads_lines(self) -> bool:
        """Return whether the program reads its input."""
        return any(rule.pattern != "BEGIN" for rule in self._rules)

    def begun(self) -> str:
        """Return what the rules of `BEGIN` print."""
        return self._ran("BEGIN")

    def ended(self) -> str:
        """Return what the rules of `END` print. Raises `UnknownError` where the lines were counted."""
        return self._ran("END")

    def _ran(self, place: str) -> str:
        self._out = []
        for rule in self._rules:
            if rule.pattern == place:
                self._block(rule.action)
        return "".join(self._out)

    def line(self, line: str) -> str | None:
        """Return what is printed of a line, without the last line break; None for nothing."""
        separator = self._variables.get("FS", "")
        self._fields = [line, *(line.split(separator) if separator else line.split())]
        self._out = []
        before = dict(self._variables)
        try:
            for rule in self._rules:
                if isinstance(rule.pattern, str):
                    continue
                if rule.pattern is None or self._truth(self._value(rule.pattern)):
                    self._block(rule.action)
        except _NextError:
            pass
        if self._variables != before:
            raise UnknownError  # a line depends on those before it
        text = "".join(self._out)
        if text and not text.endswith("\n"):
            raise UnknownError
        return text[:-1] if text else None

    def _block(self, statements: tuple[Tree, ...]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Tree) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise UnknownError
        match statement:
            case ("print", arguments):
                values = [self._text(self._value(a)) for a in arguments] or [self._fields[0]]
                separator = self._text(self._variables.get("OFS", " "))
                self._out.append(separator.join(values) + "\n")
            case ("printf", (template, *arguments)):
                self._out.append(
                    self._formatted(self._text(self._value(template)), [self._value(a) for a in arguments])
                )
            case ("if", test, then, otherwise):
                self._block(then if self._truth(self._value(test)) else otherwise)
            case ("block", inner):
                self._block(inner)
            case ("for", first, test, step, body):
                self._value(first)
                while self._truth(self._value(test)):
                    self._block(body)
                    self._value(step)
            case ("for in", name, "ENVIRON", body):
                self._out.append(self._over_environment(lambda key: self._round(name, key, body)))
            case ("next",):
                raise _NextError
            case ("expression", expression):
                self._value(expression)
            case _:
                raise UnknownError

    def _round(self, name: str, key: str, body: tuple[Tree, ...]) -> str:
        """Return what a loop over the environment prints of one name."""
        outer, self._out = self._out, []
        self._variables[name] = key
        try:
            self._block(body)
            return "".join(self._out)
        finally:
            self._out = outer

    def _formatted(self, template: str, values: list[Any]) -> str:
        specs = [spec for spec in re.findall(r"%-?\d*[sd]|%%|%.?", template) if spec != "%%"]
        if len(specs) != len(values) or any(not re.fullmatch(r"%-?\d{0,2}[sd]", spec) for spec in specs):
            raise UnknownError
        arguments: list[Any] = []
        for spec, value in zip(specs, values, strict=True):
            text = self._text(value)
            if has_placeholder(text) and spec != "%s":
                raise UnknownError
            arguments.append(int(self._number(value)) if spec.endswith("d") else text)
        return template % tuple(arguments)

    # ------------------------------------------------------------ values

    def _text(self, value: Any) -> str:
        return "" if value is None else str(value)

    def _number(self, value: Any) -> int:
        if value is None or isinstance(value, int):
            return value or 0
        match = re.match(r"\s*(\d{1,9})(?![\d.])", str(value))
        if has_placeholder(str(value)) or not (match or re.match(r"\s*[^\d\s.+-]|\s*$", str(value))):
            raise UnknownError
        return int(match[1]) if match else 0

    def _truth(self, value: Any) -> bool:
        if isinstance(value, str):
            if value.strip().isdecimal():
                raise UnknownError  # `0` of the input is false
            return value != ""
        return bool(value)

    def _value(self, tree: Tree) -> Any:
        match tree:
            case ("text", text):
                return text
            case ("number", text):
                if "." in text:
                    raise UnknownError
                return int(text)
            case ("group", inner):
                return self._value(inner)
            case ("regex", source):
                return int(self._found(source, self._fields[0]))
            case ("field", number):
                at = self._number(self._value(number))
                return self._fields[at] if at < len(self._fields) else ""
            case ("name", name):
                return self._variable(name)
            case ("item", "ENVIRON", index):
                return self._environment(self._text(self._value(index)))
            case ("item", name, index):
                return self._arrays.get(name, {}).get(self._text(self._value(index)))
            case ("join", parts):
                return "".join(self._text(self._value(part)) for part in parts)
            case ("not", inner):
                return int(not self._truth(self._value(inner)))
            case ("and", left, right):
                return int(self._truth(self._value(left)) and self._truth(self._value(right)))
            case ("or", left, right):
                return int(self._truth(self._value(left)) or self._truth(self._value(right)))
            case ("choice", test, first, second):
                return self._value(first if self._truth(self._value(test)) else second)
            case ("~" | "!~" as sign, left, right):
                source = right[1] if right[0] in ("regex", "text") else None
                if source is None:
                    raise UnknownError
                return int(self._found(source, self._text(self._value(left))) is (sign == "~"))
            case ("in", left, "ENVIRON"):
                return int(self._environment(self._text(self._value(left))) is not None)
            case ("compare", sign, left, right):
                return int(self._compared(sign, self._value(left), self._value(right)))
            case ("compute", sign, left, right):
                return self._computed(sign, self._value(left), self._value(right))
            case ("assign", sign, target, value):
                return self._assigned(sign, target, self._value(value))
            case ("step", sign, ("name", name) as target, is_before):
                before = self._number(self._variable(name))
                after = self._assigned("=", target, before + (1 if sign == "++" else -1))
                return after if is_before else before
            case ("call", name, arguments):
                return self._call(name, arguments)
            case _:
                raise UnknownError

    def _variable(self, name: str) -> Any:
        if name == "NF":
            return len(self._fields) - 1
        if name in ("NR", "FNR", "FILENAME", "RSTART", "RLENGTH"):
            raise UnknownError
        return self._variables.get(name)

    def _assigned(self, sign: str, target: Tree, value: Any) -> Any:
        if sign != "=":
            value = self._computed(sign[0], self._value(target), value)
        match target:
            case ("name", "RS" | "ORS" | "NF" | "NR"):
                raise UnknownError
            case ("name", name):
                self._variables[name] = value
            case ("item", name, index) if name != "ENVIRON":
                self._arrays.setdefault(name, {})[self._text(self._value(index))] = value
            case _:
                raise UnknownError
        return value

    def _found(self, source: str, text: str) -> bool:
        pattern = compiled(source.replace("\\/", "/"), "extended")
        if pattern is None:
            raise UnknownError
        if not has_placeholder(text):
            return pattern.search(text) is not None
        found = {
            pattern.search(re.sub(r"Z\w*Z", sample, text)) is not None for sample in ("1", "a b", "Q", "")
        }
        if len(found) > 1:
            raise UnknownError
        if found == {False} and not re.fullmatch(r"\^?\w+=?", source):
            raise UnknownError  # a value that was not tried may match
        return found.pop()

    def _compared(self, sign: str, left: Any, right: Any) -> bool:
        if any(has_placeholder(self._text(v)) for v in (left, right)):
            other = right if has_placeholder(self._text(left)) else left
            if sign in ("==", "!=") and self._text(other) == "":
                return sign == "!="
            raise UnknownError
        if isinstance(left, int) or isinstance(right, int):
            left, right = self._number(left), self._number(right)
        else:
            left, right = self._text(left), self._text(right)
        match sign:
            case "==":
                return bool(left == right)
            case "!=":
                return bool(left != right)
            case "<":
                return bool(left < right)
            case "<=":
                return bool(left <= right)
            case ">":
                return bool(left > right)
            case _:
                return bool(left >= right)

    def _computed(self, sign: str, left: Any, right: Any) -> int:
        first, second = self._number(left), self._number(right)
        match sign:
            case "+":
                return first + second
            case "-":
                return first - second
            case "*" if abs(first) < 10**6 and abs(second) < 10**6:
                return first * second
            case _:
                raise UnknownError

    def _call(self, name: str, trees: tuple[Tree, ...]) -> Any:
        if name == "split" and len(trees) in (2, 3) and trees[1][0] == "name":
            text = self._text(self._value(trees[0]))
            separator = self._text(self._value(trees[2])) if len(trees) == 3 else ""
            if len(separator) > 1 or (has_placeholder(text) and separator not in ("=", " ", "")):
                raise UnknownError
            parts = text.split(separator) if separator.strip() else text.split()
            self._arrays[trees[1][1]] = {str(n): part for n, part in enumerate(parts, start=1)}
            return len(parts)
        values = [self._value(tree) for tree in trees]
        texts = [self._text(value) for value in values]
        if name == "length" and not any(map(has_placeholder, texts)):
            return len(texts[0] if texts else self._fields[0])
        if name == "index" and len(texts) == 2 and not has_placeholder(texts[1]):
            at = texts[0].partition("Zhole")[0].find(texts[1]) + 1
            if at or not has_placeholder(texts[0]):
                return at
        if name in ("tolower", "toupper") and not has_placeholder(texts[0]):
            return texts[0].lower() if name == "tolower" else texts[0].upper()
        if name == "sprintf" and texts:
            return self._formatted(texts[0], values[1:])
        if name == "substr" and len(values) in (2, 3):
            return self._part(texts[0], *[self._number(value) for value in values[1:]])
        raise UnknownError

    def _part(self, text: str, start: int, length: int | None = None) -> str:
        known = text.partition("Zhole")[0]
        if start < 1 or (length is not None and length < 0):
            raise UnknownError
        if start - 1 <= len(known) and length is None:
            return text[start - 1 :]
        if length is not None and start - 1 + length <= len(known):
            return text[start - 1 : start - 1 + length]
        if has_placeholder(text):
            raise UnknownError
        return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]
