"""Programs in Lua."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agentdash.engine.detect.env_output.patterns import Part
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.collections import MAX_ROUNDS
from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of
from agentdash.engine.detect.env_output.scripting.texts import Texts
from agentdash.engine.detect.env_output.scripting.values import (
    SINK,
    ExitError,
    FailedError,
    Function,
    LastError,
    ReturnError,
    Sink,
    Written,
)
from agentdash.engine.detect.env_output.streams import Call
from agentdash.engine.detect.env_output.unknown import UnknownError

if TYPE_CHECKING:
    from tree_sitter import Node

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}
_PATTERN: Final = re.compile(r"\^?[\w=]+(?:\[[A-Z_%w]+\]\*|\.\*|\.\+)?")
"""Patterns of Lua that mean the same as a regular expression."""


_GLOBALS: Final = (
    *("print", "tostring", "ipairs", "pairs", "os", "io", "string", "table", "type", "error", "assert"),
    *("pcall", "setmetatable", "require"),
)


class Several(list[Any]):
    """What a function gives that has several values."""


class Handle(msgspec.Struct, frozen=True):
    """An open file or program."""

    content: Written


class Library(msgspec.Struct, frozen=True):
    """A table of the library, or a function in one, by its name."""

    name: str


class Method(msgspec.Struct, frozen=True):
    """A method of a value."""

    owner: Any
    name: str


class Lua(Texts):
    """A run of a program in Lua: lists are Python's, counted from 1 by the program."""

    def __init__(self, call: Call, holes: dict[str, Part], decisions: tuple[bool, ...]) -> None:
        super().__init__(call, holes, decisions)
        self._metatables: dict[int, tuple[Any, dict[str, Any]]] = {}
        """By the identity of a table: the table and its metatable."""
        for name in _GLOBALS:
            self._names[name] = Library(name)

    def text_of_none(self) -> str:
        """Return `nil` as text."""
        return "nil"

    def program(self, root: Node) -> None:
        """Run a program."""
        with suppress(ReturnError):
            self._sequence(root)

    # ------------------------------------------------------------ statements

    def _sequence(self, node: Node | None) -> None:
        for child in named(node):
            self._statement(child)

    def _block(self, node: Node | None) -> None:
        self.scoped(lambda: self._sequence(node))

    def _statement(self, node: Node) -> None:
        self.step()
        match node.type:
            case "function_call":
                self._call(node)
            case "variable_declaration" | "assignment_statement":
                self._assign(node)
            case "function_declaration":
                self._define(node)
            case "if_statement":
                self._if(node)
            case "for_statement":
                self._for(node)
            case "while_statement":
                with suppress(LastError):
                    while self.truth(self.value(field(node, "condition"))):
                        self.step()
                        self._block(node.child_by_field_name("body"))
            case "do_statement":
                self._block(node.child_by_field_name("body"))
            case "return_statement":
                values = named(named(node)[0]) if named(node) else []
                raise ReturnError(self.value(values[0]) if values else None)
            case "break_statement":
                raise LastError
            case "hash_bang_line" | "empty_statement":
                pass
            case _:
                raise UnknownError

    def _define(self, node: Node) -> None:
        """Run `function name()`; one of a method, `function table:name()`, has the table as `self`."""
        name = field(node, "name")
        if name.type == "identifier":
            self.declare(text_of(name), self._function(node))
        elif name.type == "method_index_expression":
            function = self._function(node, first="self")
            self._set(field(name, "table"), text_of(field(name, "method")), function)
        else:
            self._put(name, self._function(node))

    def _if(self, node: Node) -> None:
        if self.truth(self.value(field(node, "condition"))):
            self._block(node.child_by_field_name("consequence"))
            return
        for other in node.children_by_field_name("alternative"):
            if other.type == "else_statement":
                self._block(other.child_by_field_name("body"))
                return
            if self.truth(self.value(field(other, "condition"))):
                self._block(other.child_by_field_name("consequence"))
                return

    def _for(self, node: Node) -> None:
        clause, body = field(node, "clause"), node.child_by_field_name("body")
        if clause.type == "for_numeric_clause":
            start, end = self.value(field(clause, "start")), self.value(field(clause, "end"))
            if not isinstance(start, int) or not isinstance(end, int) or clause.child_by_field_name("step"):
                raise UnknownError
            names = [text_of(field(clause, "name"))]
            values: Any = [[number] for number in range(start, min(end, start + MAX_ROUNDS) + 1)]
        else:
            variables, expressions = named(clause)
            names = [text_of(child) for child in named(variables)]
            values = self._iterated(self.value(only_child(expressions)), len(names))

        def run(item: Any) -> None:
            for name, value in zip(names, item if isinstance(item, list) else [item], strict=False):
                self.declare(name, value)
            self._sequence(body)

        self.each(values, lambda item: self.scoped(lambda: run(item)))

    def _iterated(self, values: Any, names: int) -> Any:
        if isinstance(values, list) and names == 1:
            return values if values and isinstance(values[0], list) else [[value] for value in values]
        return values

    def _assign(self, node: Node) -> None:
        is_local = node.type == "variable_declaration"
        inner = next((child for child in named(node) if child.type == "assignment_statement"), node)
        if inner.type == "variable_declaration":  # `local a`
            for child in named(named(inner)[0]):
                self.declare(text_of(child), None)
            return
        targets, expressions = named(inner)[:2]
        values = [self.value(child) for child in named(expressions)]
        values = [*values[:-1], *values[-1]] if values and isinstance(values[-1], Several) else values
        for number, target in enumerate(named(targets)):
            value = values[number] if number < len(values) else None
            if target.type == "identifier":
                name = text_of(target)
                if is_local:
                    self.declare(name, value)
                else:
                    self._names[name] = value
            else:
                self._put(target, value)

    def _put(self, target: Node, value: Any) -> None:
        key = field(target, "field")
        index = text_of(key) if target.type == "dot_index_expression" else self.value(key)
        self._set(field(target, "table"), index, value)

    def _set(self, table: Node, index: Any, value: Any) -> None:
        owner = self.value(table)
        if owner == [] and isinstance(index, str):  # Lua has one type for both
            empty, owner = owner, {}
            value = owner if value is empty else value
            self._names |= {name: owner for name, each in self._names.items() if each is empty}
            if id(empty) in self._metatables:
                self.set_metatable(owner, self._metatables[id(empty)][1])
        if isinstance(owner, list) and isinstance(index, int) and index == len(owner) + 1:
            owner.append(value)
        elif isinstance(owner, dict) and isinstance(index, str):
            owner[self.plain(index)] = value
        else:
            raise UnknownError

    def _function(self, node: Node, *, first: str = "") -> Function:
        parameters = [text_of(child) for child in named(field(node, "parameters"))]
        parameters = [first, *parameters] if first else parameters
        if "..." in parameters:
            raise UnknownError
        body = node.child_by_field_name("body")

        def run(arguments: list[Any]) -> Any:
            def inside() -> None:
                for number, name in enumerate(parameters):
                    self.declare(name, arguments[number] if number < len(arguments) else None)
                self._sequence(body)

            try:
                self.scoped(inside)
            except ReturnError as ended:
                return ended.value
            return None

        return Function(run, len(parameters))

    # ------------------------------------------------------------ expressions

    def value(self, node: Node) -> Any:
        """Return the value of an expression."""
        self.step()
        match node.type:
            case "string":
                return self._string(node)
            case "number":
                return int(text_of(node)) if text_of(node).isdecimal() else self.plain(None)
            case "nil" | "true" | "false":
                return {"nil": None, "true": True, "false": False}[node.type]
            case "identifier":
                return self._named(text_of(node))
            case "parenthesized_expression":
                return self.value(only_child(node))
            case "function_call":
                return self._call(node)
            case "function_definition":
                return self._function(node)
            case "table_constructor":
                return self._table(node)
            case "dot_index_expression" | "bracket_index_expression":
                return self._index(node)
            case "binary_expression":
                return self._binary(node)
            case "unary_expression":
                return self._unary(text_of(field(node, "operator")), self.value(field(node, "operand")))
            case _:
                raise UnknownError

    def _named(self, name: str) -> Any:
        if name == "_VERSION":
            return self.quiet()
        return self._names.get(name)

    def _string(self, node: Node) -> str:
        source = text_of(node)
        if source[0] not in "'\"":
            raise UnknownError

        def escaped(match: re.Match[str]) -> str:
            if match[1] not in _ESCAPES:
                raise UnknownError
            return _ESCAPES[match[1]]

        return re.sub(r"\\(.)", escaped, source[1:-1], flags=re.DOTALL)

    def _table(self, node: Node) -> Any:
        items: list[Any] = []
        entries: dict[str, Any] = {}
        for child in named(node):
            name, value = child.child_by_field_name("name"), self.value(field(child, "value"))
            if name is None:
                items.append(value)
            else:
                entries[text_of(name) if name.type == "identifier" else self.plain(self.value(name))] = value
        if items and entries:
            raise UnknownError
        return entries or items

    def _index(self, node: Node) -> Any:
        owner, key = self.value(field(node, "table")), field(node, "field")
        index = text_of(key) if node.type == "dot_index_expression" else self.value(key)
        match owner:
            case Library(name=name) if isinstance(index, str):
                return Library(f"{name}.{index}")
            case list() if isinstance(index, int):
                return owner[index - 1] if 0 < index <= len(owner) else None
            case dict() | list() if isinstance(index, str):
                return self.item(owner, self.plain(index))
            case _:
                raise UnknownError

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

    def _unary(self, sign: str, value: Any) -> Any:
        match sign:
            case "not":
                return not self.truth(value)
            case "#":
                return self.size(value)
            case "-" if isinstance(value, int):
                return -value
            case _:
                raise UnknownError

    def _binary(self, node: Node) -> Any:
        sign = text_of(field(node, "operator"))
        value, right = self._first(field(node, "left")), field(node, "right")
        match sign:
            case "or":
                return value if self.truth(value) else self.value(right)
            case "and":
                return self.value(right) if self.truth(value) else value
            case "..":
                return self._concatenated(value, self._first(right))
            case "==" | "~=":
                return self.equal(value, self.value(right)) is (sign == "==")
            case "+" | "-" | "<" | ">" | "<=" | ">=":
                return self._calculated(sign, value, self.value(right))
            case _:
                raise UnknownError

    def _first(self, node: Node) -> Any:
        """Return the first of the values of an expression."""
        found = self.value(node)
        return (found[0] if found else None) if isinstance(found, Several) else found

    def _concatenated(self, left: Any, right: Any) -> str:
        for value in (left, right):
            if value is None or isinstance(value, bool):
                raise FailedError
        return self.text(left) + self.text(right)

    def _calculated(self, sign: str, left: Any, right: Any) -> Any:
        if sign in "+-":
            return self.counted(sign, left, right)
        return self.ordered(sign, left, right)

    # ------------------------------------------------------------ calls

    def _call(self, node: Node) -> Any:
        function, trees = field(node, "name"), named(field(node, "arguments"))
        arguments = [self.value(tree) for tree in trees]
        if function.type == "method_index_expression":
            owner = self.value(field(function, "table"))
            name = text_of(field(function, "method"))
            if isinstance(owner, dict | list) and isinstance(own := self.item(owner, name), Function):
                return own.run([owner, *arguments])
            return self._method(owner, text_of(field(function, "method")), arguments)
        called = self.value(function)
        match called:
            case Function():
                return called.run(arguments)
            case Library(name=name):
                return self._library(name, arguments)
            case _:
                raise UnknownError

    def _library(self, name: str, arguments: list[Any]) -> Any:
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
            case "pcall", [Library(name="require"), _]:
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
                return self._method(arguments[0], name.removeprefix("string."), arguments[1:])
            case _:
                raise UnknownError

    def _method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
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
            case str(), "gsub", [part, other] if re.fullmatch(r"[\w ='\"/,:;]|\n", part):
                return Several([self.replaced(owner, part, other), self.number_word()])
            case Library(name="io.stdout"), "write", values:
                return self._library("io.write", values)
            case str(), "format", values:
                return self.formatted(owner, [self.text(value) for value in values])
            case str(), ("match" | "find"), [pattern, *_]:
                return self._found(owner, self.plain(pattern))
            case str() | Written(), "gmatch", ["[^%z]+" | "[^\0]+"]:
                return self.entries_of(owner, "\0")
            case str() | Written(), "gmatch", ["[^\n]+"]:
                return self.entries_of(owner, "\n")
            case str(), ("upper" | "lower"), []:
                return self.plain(owner).upper() if name == "upper" else self.plain(owner).lower()
            case str(), "rep", [int() as count] if count <= 200:
                return self.plain(owner) * count
            case str(), "len", []:
                return self.size(owner)
            case str(), "sub", [int() as start, int() as stop] if start > 0 and stop >= start:
                return self.cut(owner, start - 1, stop - start + 1)
            case _:
                raise UnknownError

    def _found(self, text: str, pattern: str) -> Any:
        if not _PATTERN.fullmatch(pattern) or has_placeholder(pattern):
            raise UnknownError
        return True if self.matches(self.pattern(pattern.replace("%w", r"\w")), text) else None


def _functions(table: dict[str, Any]) -> set[str]:
    """Return the names of the items of a table that are functions; those of Lua begin with `__`."""
    return {name for name, each in table.items() if isinstance(each, Function) and not name.startswith("__")}
