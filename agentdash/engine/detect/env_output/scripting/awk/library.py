"""Functions, fields and operators of awk."""

from __future__ import annotations

import re
from typing import Any, Final

from agentdash.engine.detect.env_output.patterns import Part
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.regexes import compiled, is_quick
from agentdash.engine.detect.env_output.scripting.line_programs import LinePrograms
from agentdash.engine.detect.env_output.scripting.values import Count, Pattern
from agentdash.engine.detect.env_output.selections import Selection
from agentdash.engine.detect.env_output.streams import Call
from agentdash.engine.detect.env_output.unknown import UnknownError

_RECORD_NUMBERS: Final = ("NR", "FNR")
_NAMED_OUTSIDE: Final = ("FILENAME", "ARGV", "ARGC", "RT", "PROCINFO")


class Library(LinePrograms):
    """Functions, fields and operators of awk."""

    zero_is_false = True
    empty_is_false = True
    failed_status = 2

    def __init__(self, call: Call, holes: dict[str, Part], decisions: tuple[bool, ...]) -> None:
        super().__init__(call, holes, decisions)
        self.fields = [""]
        self.record_number: int | None = None
        """Number of the line that is read, where all lines are known."""

    def split_fields(self, line: str) -> None:
        """Set `$0` and the fields of it."""
        separator = self._names.get("FS") or ""
        self.fields = [line, *(line.split(separator) if separator.strip(" ") else line.split())]

    def field(self, number: int) -> str:
        """Return a field."""
        return self.fields[number] if number < len(self.fields) else ""

    def _set_field(self, number: int, text: str) -> None:
        """Assign to a field: `$0` is made of all fields again."""
        if number == 0:
            self.split_fields(text)
            return
        if number >= len(self.fields):
            raise UnknownError
        self.fields[number] = text
        self.fields[0] = self.text(self._names.get("OFS", " ")).join(self.fields[1:])

    def array(self, name: str) -> dict[str, Any]:
        """Return an array of the program."""
        found = self._names.setdefault(name, {})
        if found is None:
            found = self._names[name] = {}
        if not isinstance(found, dict):
            raise UnknownError
        return found

    def variable_of(self, name: str) -> Any:
        """Return a variable."""
        if name == "NF":
            return len(self.fields) - 1
        if name in _RECORD_NUMBERS:
            return Count(1) if self.record_number is None else self.record_number
        if name in _NAMED_OUTSIDE:
            raise UnknownError
        return self._names.get(name)

    # ------------------------------------------------------------ operators

    def number(self, value: Any) -> int:
        """Return a value as a number."""
        if value is None or isinstance(value, int):
            return value or 0
        if isinstance(value, Count):
            raise UnknownError
        match = re.match(r"\s*(\d{1,9})(?![\d.])", str(value))
        if has_placeholder(str(value)) or not (match or re.match(r"\s*[^\d\s.+-]|\s*$", str(value))):
            raise UnknownError
        return int(match[1]) if match else 0

    def found(self, source: str, text: str) -> bool:
        """Return whether a text matches a regular expression."""
        return self.matches(self._regex(source), text)

    def _regex(self, source: str) -> Pattern:
        pattern = compiled(source.replace("\\/", "/"), "extended")
        if pattern is None:
            raise UnknownError
        return Pattern(pattern)

    def compared(self, sign: str, left: Any, right: Any) -> bool:
        """Return the truth of a comparison."""
        for value, other in ((left, right), (right, left)):
            if isinstance(value, Count) and isinstance(other, int):
                return self._compared_count(sign, value, other)
            if isinstance(value, str) and has_placeholder(self.actual(value)) and isinstance(other, int):
                return self.decide()
        if sign in ("==", "!="):
            return self._same(left, right) is (sign == "==")
        first, second = self.number(left), self.number(right)
        return {"<": first < second, "<=": first <= second, ">": first > second}.get(sign, first >= second)

    def _same(self, left: Any, right: Any) -> bool:
        if isinstance(left, int) or isinstance(right, int):
            if isinstance(left, str) or isinstance(right, str):
                left, right = (self.actual(v) if isinstance(v, str) else v for v in (left, right))
            return self.number(left) == self.number(right)
        return self.equal(left or "", right or "")

    def _compared_count(self, sign: str, count: Count, other: int) -> bool:
        if other == 0 and sign in ("==", "!=", ">"):
            is_some = count.at_least > 0 or self.decide()
            return is_some is (sign != "==")
        return self.decide()

    def computed(self, sign: str, left: Any, right: Any) -> Any:
        """Return what an operator gives."""
        if isinstance(left, Count):
            return self.counted(sign, left, right)
        first, second = self.number(left), self.number(right)
        match sign:
            case "+":
                return first + second
            case "-":
                return first - second
            case "*" if abs(first) < 10**6 and abs(second) < 10**6:
                return first * second
            case _:
                raise UnknownError

    # ------------------------------------------------------------ functions

    def split_into(self, text: Any, name: str, separator: list[Any]) -> int:
        """Run `split`."""
        source = self.text(text)
        between = self.plain(separator[0]) if separator else self._names.get("FS") or " "
        if len(between) != 1 or (has_placeholder(source) and between not in ("=", " ")):
            raise UnknownError
        parts = source.split() if between == " " else source.split(between)
        self._names[name] = {str(number): part for number, part in enumerate(parts, start=1)}
        return len(parts)

    def located(self, text: str, source: str) -> int:
        """Run `match`."""
        pattern = self._regex(source)
        if not self.matches(pattern, text):
            self._names["RSTART"], self._names["RLENGTH"] = 0, -1
            return 0
        found = pattern.compiled.search(text)
        if found is None or (has_placeholder(text) and found.end() > text.index("Zhole")):
            raise UnknownError
        self._names["RSTART"] = found.start() + 1
        self._names["RLENGTH"] = found.end() - found.start()
        return found.start() + 1

    def replaced_by(self, name: str, source: str, replacement: str, text: str) -> tuple[str, int]:
        """Return a text after `sub` or `gsub`, and the number of places."""
        pattern = self._regex(source)
        if not is_quick(pattern.compiled, text):
            raise UnknownError
        if "&" in replacement or "\\" in replacement:
            raise UnknownError
        if has_placeholder(text) and source not in ("=", "^"):
            raise UnknownError
        return pattern.compiled.subn(lambda _: replacement, text, count=1 if name == "sub" else 0)

    def library(self, name: str, values: list[Any]) -> Any:
        """Run a function of awk."""
        if name == "length" and len(values) == 1 and isinstance(values[0], dict | Selection):
            return self.size(values[0])
        texts = [self.text(value) for value in values]
        match name, texts:
            case "length", []:
                return self.size(self.fields[0])
            case "length", [text]:
                return self._length(text)
            case "index", [text, part]:
                return self.position(text, part) + 1
            case "tolower", [text]:
                return self.plain(text).lower()
            case "toupper", [text]:
                return self.plain(text).upper()
            case "sprintf", [template, *_]:
                return self.formatted(template, values[1:])
            case "substr", [text, *_] if len(values) in (2, 3):
                start = self.number(values[1])
                if start < 1:
                    raise UnknownError
                return self.cut(text, start - 1, self.number(values[2]) if len(values) == 3 else None)
            case "system", [script]:
                self.started(script)
                return self.number_word()
            case (("fflush" | "close"), _):
                return 0
            case _:
                raise UnknownError

    def _length(self, text: str) -> Any:
        actual = self.actual(text)
        if has_placeholder(actual):
            return Count(1) if not self.equal(actual, "") else 0
        return len(actual) if actual == text else Count(min(len(actual), 1))
