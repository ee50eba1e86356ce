"""Functions and metatables of Lua."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.patterns import Part
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.texts import Texts
from agentdash.engine.detect.env_output.scripting.values import (
    SINK,
    Builtin,
    ExitError,
    FailedError,
    Function,
    Sink,
    Written,
)
from agentdash.engine.detect.env_output.selections import Form, Selection
from agentdash.engine.detect.env_output.streams import Call
from agentdash.engine.detect.env_output.unknown import UnknownError

_PATTERN: Final = re.compile(r"\^?[\w=]+(?:\[[A-Z_%w]+\]\*|\.\*|\.\+)?")
"""Patterns of Lua that mean the same as a regular expression."""
_LINES: Final = ("[^\n]+", "[^\r\n]+", "(.-)\n", "([^\n]+)", "([^\n]*)\n", "[^\n]+\n?")
_PAIRS: Final = re.compile(
    r"\((?:\[(?:%w_|%a_|A-Z_|\^=\n|A-Z0-9_)\]\+|\[%a_\]\[%w_\]\*)\)=(?:\(\[\^\n\]\*\)\n?|\(\.-\)\n)"
)
"""Patterns for a name and its value, which goes to the end of the line."""


class Several(list[Any]):
    """What a function gives that has several values."""


class Handle(msgspec.Struct, frozen=True):
    """An open file or program."""

    content: Written


class Library(Texts):
    """Functions and metatables of Lua."""

    def __init__(self, call: Call, holes: dict[str, Part], decisions: tuple[bool, ...]) -> None:
        super().__init__(call, holes, decisions)
        self._metatables: dict[int, tuple[Any, dict[str, Any]]] = {}
        """By the identity of a table: the table and its metatable."""

    def text_of_none(self) -> str:
        """Return `nil` as text."""
        return "nil"

    def set_metatable(self, owner: Any, behind: Any) -> Any:
        """Run `setmetatable`."""
        if not isinstance(behind, dict) or behind.keys() - {"__index"} - _functions(behind):
            raise UnknownError
        self._metatables[id(owner)] = (owner, behind)
        return owner

    def item(self, owner: Any, name: str) -> Any:
        """Return an item of a table, or of what `__index` of its metatable gives."""
        self.step()
        if isinstance(owner, dict) and name in owner:
            return owner[name]
        kept, behind = self._metatables.get(id(owner), (None, {}))
        match behind.get("__index"):
            case Function() as function if kept is owner:
                return function.run([owner, name])
            case dict() as other if kept is owner:
                return self.item(other, name)
            case _:
                return None

    def library(self, name: str, arguments: list[Any]) -> Any:
        """Run a function of the library."""
        match name, arguments:
            case "print", values:
                self.out.append("\t".join(self.text(value) for value in values) + "\n")
                return None
            case "io.write" | "io.stdout.write", values:
                if any(value is None or isinstance(value, bool) for value in values):
                    raise FailedError
                self.out += [self.text(value) for value in values]
                return None
            case "assert", [value, *_]:
                if not self.truth(value):
                    raise FailedError
                return value
            case "error", [message, *level]:
                raise FailedError("error", self.text(message) if level == [0] else self.quiet())
            case "pcall", [Function() as function, *given]:
                try:
                    return Several([True, function.run(given)])
                except FailedError as failed:
                    return Several([False, failed.text or self.quiet()])
            case "pcall", [Builtin(name="require"), _]:
                return Several([False, self.quiet()]) if self.attempted() is None else Several([True, SINK])
            case "setmetatable", [list() | dict() as owner, behind]:
                return self.set_metatable(owner, behind)
            case "tostring", [value]:
                return self.text(value)
            case "ipairs" | "pairs", [list() as values]:
                return [[number, value] for number, value in enumerate(values, start=1)]
            case "pairs", [dict() as entries]:
                return [[name, entries[name]] for name in self.unordered(list(entries))]
            case "os.getenv", [str() as key]:
                return self.variable(key)
            case "os.execute", [script]:
                self.started(script)
                return None if self.decide() else self.quiet()
            case "io.popen", [script, *_]:
                return Handle(self.captured(script))
            case "io.open", [_, "w" | "a" | "wb" | "ab" | "w+" | "a+"]:
                return SINK if self.attempted() else Several([None, self.quiet()])
            case "io.open", [path, *_]:
                return Handle(self.content(path))
            case "os.exit", status:
                raise ExitError(status[0] if status and isinstance(status[0], int) else 0)
            case "os.date" | "os.time" | "os.tmpname", _:
                return self.quiet()
            case "table.concat", [values, *separator]:
                return self.joined(values, separator[0] if separator else "")
            case "table.insert", [list() as values, value]:
                values.append(value)
                return None
            case _ if name.startswith("string.") and arguments:
                return self.method(arguments[0], name.removeprefix("string."), arguments[1:])
            case _:
                raise UnknownError

    def method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        """Run a method of a text, a file or a program."""
        match owner, name, arguments:
            case Handle(content=content), "read", ["*a" | "a" | "*all"]:
                return content
            case Handle(content=content), "lines", []:
                entries = self.entries_of(content, "\n")
                return entries if not isinstance(entries, list) else [[line] for line in entries]
            case ((Handle() | Sink()), "close", []):
                return True
            case Sink(), "write", _:
                return owner
            case ((str() | Written()), "gsub", ["%s+$" | "\n$" | "[\r\n]+$" | "\n+$", ""]):
                return Several([self.stripped(owner), self.number_word()])
            case str(), "gsub", [part, other] if re.fullmatch(r"[\w ='\"/,:;]|\n", part):
                return Several([self.replaced(owner, part, other), self.number_word()])
            case Builtin(name="io.stdout"), "write", values:
                return self.library("io.write", values)
            case str(), "format", values:
                return self.formatted(owner, [self.text(value) for value in values])
            case str(), ("match" | "find"), [pattern, *_]:
                return self._found(owner, self.plain(pattern))
            case str() | Written(), "gmatch", [pattern]:
                return self._found_all(owner, self.plain(pattern))
            case str(), ("upper" | "lower"), []:
                return self.plain(owner).upper() if name == "upper" else self.plain(owner).lower()
            case str(), "rep", [int() as count] if count <= 200:
                return self.plain(owner) * count
            case str(), "sub", [int() as start] if start > 0:
                return self.cut(owner, start - 1)
            case str(), "len", []:
                return self.size(owner)
            case str(), "sub", [int() as start, int() as stop] if start > 0 and stop >= start:
                return self.cut(owner, start - 1, stop - start + 1)
            case _:
                raise UnknownError

    def _found_all(self, text: Any, pattern: str) -> Any:
        """Run `gmatch` for lines and entries, and for the two parts of each."""
        if pattern in ("[^%z]+", "[^\0]+"):
            return self.entries_of(text, "\0")
        if pattern in _LINES:
            return self.entries_of(text, "\n")
        found = self.entries_of(text, "\n") if _PAIRS.fullmatch(pattern) else None
        if not isinstance(found, Selection):
            raise UnknownError
        return Selection(found.kept, Form.ITEMS)

    def _found(self, text: str, pattern: str) -> Any:
        if not _PATTERN.fullmatch(pattern) or has_placeholder(pattern):
            raise UnknownError
        return True if self.matches(self.pattern(pattern.replace("%w", r"\w")), text) else None


def _functions(table: dict[str, Any]) -> set[str]:
    """Return the names of the items of a table that are functions; those of Lua begin with `__`."""
    return {name for name, each in table.items() if isinstance(each, Function) and not name.startswith("__")}
