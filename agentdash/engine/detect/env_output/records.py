"""The environment in an output as the text of one dictionary: of Python, JSON, Node or Ruby."""

from __future__ import annotations

import ast
import json
import re
from functools import lru_cache
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import (
    FLAGS,
    JSON_STYLE,
    PYTHON_STYLE,
    Dump,
    Interval,
    Presence,
    Shown,
)

_MAX_LOOKS: Final = 5_000_000
"""Characters that are looked at for dictionaries: each bracket may be closed at the end of the output."""


class Record(msgspec.Struct, frozen=True):
    """The environment, or a part of it, as the text of one dictionary: Python's or JSON's."""

    shown: tuple[Shown, Shown]
    required: tuple[bool | None, bool | None]
    """Whether each flag is in the dictionary: yes, no, possibly."""
    indent: int = 0
    """Blanks before each entry, which is on a line of its own; 0 where all are on one line."""
    is_python: bool = False
    """Entries are on lines of their own as `pprint` writes them."""
    is_list: bool = False
    """It is a list of texts `NAME=value`, or of pairs."""
    has_names: bool = False
    """It is a list of names."""

    @property
    def lines(self) -> Dump | None:
        """The entries as lines; None where they are on one line."""
        if self.is_list or not (self.indent or self.is_python):
            return None
        absent = Shown(Presence.ABSENT)
        first, second = (absent if r is False else s for s, r in zip(self.shown, self.required, strict=True))
        style = PYTHON_STYLE
        if not self.is_python:
            style = msgspec.structs.replace(JSON_STYLE, prefixes=(" " * self.indent + '"NAME": "',))
        return Dump(shown=(first, second), style=style, partial=None in self.required)

    def ends(self, text: str, starts: list[Interval], is_prefix: bool) -> tuple[set[Interval], bool]:
        """Return where a dictionary that begins at `starts` can end, and whether the text can stop in it."""
        ends: set[Interval] = set()
        is_open = False
        bracket = "[" if self.is_list else "{"
        if text.count(bracket) * len(text) > _MAX_LOOKS:
            return {(starts[0][0], len(text))}, is_prefix
        for low, high in starts:
            at = text.find(bracket, low)
            while 0 <= at <= high + len("environ("):
                begin = at - len("environ(") if text.startswith("environ(", at - len("environ(")) else at
                stop = _closing(text, at)
                if stop < 0:
                    is_open = is_prefix
                elif (low <= begin <= high or low <= at <= high) and self._is_instance(text[at:stop]):
                    stop += begin < at and text.startswith(")", stop)
                    ends.add((stop, stop))
                at = text.find(bracket, at + 1)
        return ends, is_open

    def _is_instance(self, text: str) -> bool:
        entries = _listed(text) if self.is_list else _dictionary(text)
        if entries is None:
            return False
        for name, shown, required in zip(FLAGS, self.shown, self.required, strict=True):
            if name in entries:
                value = entries[name]
                if required is False or (value is None) is not self.has_names:
                    return False
                if not self.has_names and (not isinstance(value, str) or not shown.allows(value)):
                    return False
            elif required:
                return False
        return True


def _dictionary(text: str) -> dict[str, Any] | None:
    value = _parsed(text)
    return value if isinstance(value, dict) else None


def _listed(text: str) -> dict[str, Any] | None:
    """Return the variables in a list of texts `NAME=value`, of pairs, or of names, which have no value."""
    found: dict[str, Any] = {}
    values = _parsed(text)
    for each in values if isinstance(values, list) else ():
        match each:
            case str():
                name, sign, value = each.partition("=")
                found[name] = value if sign else None
            case [str() as name, str() as value]:  # also a tuple
                found[name] = value
            case _:
                return None
    return found if isinstance(values, list) else None


@lru_cache(64)
def _parsed(text: str) -> Any:
    for read in (
        json.loads,
        ast.literal_eval,
        lambda text: json.loads(_as_json(text)),
        lambda text: json.loads(re.sub(r'"\s*=>\s*', '": ', text)),  # Ruby's
    ):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


_INSPECTED: Final = re.compile(
    r"""(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)|(?P<key>[A-Za-z_$][\w$]*)(?=:)"""
)


def _as_json(text: str) -> str:
    """Return JSON for what Node's `console.log` writes of an object of strings."""

    def quoted(match: re.Match[str]) -> str:
        if match["key"]:
            return f'"{match["key"]}"'
        return json.dumps(re.sub(r"\\(.)", r"\1", match["string"][1:-1]))

    return re.sub(r",(\s*\})", r"\1", _INSPECTED.sub(quoted, text))


@lru_cache(512)
def _closing(text: str, start: int) -> int:
    """Return the offset behind the bracket that closes the one at `start`, -1 without."""
    depth = 0
    for match in re.finditer(
        r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|[{}\[\]]""", text[start:]
    ):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(match[0], 0)
        if depth == 0:
            return start + match.end()
    return -1
