"""Programs in Lua."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of
from agentdash.engine.detect.env_output.scripting.loops import MAX_ROUNDS
from agentdash.engine.detect.env_output.scripting.lua.library import Library, Several
from agentdash.engine.detect.env_output.scripting.values import (
    Builtin,
    FailedError,
    Function,
    LastError,
    ReturnError,
)
from agentdash.engine.detect.env_output.unknown import UnknownError

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}

_GLOBALS: Final = (
    *("print", "tostring", "ipairs", "pairs", "os", "io", "string", "table", "type", "error", "assert"),
    *("pcall", "setmetatable", "require"),
)


class Lua(Library):
    """A run of a program in Lua: lists are Python's, counted from 1 by the program."""

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
                test, body = field(node, "condition"), node.child_by_field_name("body")
                self.repeat(lambda: self.holds(test), lambda: self._block(body))
            case "do_statement":
                self._block(node.child_by_field_name("body"))
            case "return_statement":
                values = named(named(node)[0]) if named(node) else []
                found = self._values(values)
                raise ReturnError(found[0] if len(found) == 1 else Several(found) if found else None)
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
        if self.holds(field(node, "condition")):
            self._block(node.child_by_field_name("consequence"))
            return
        for other in node.children_by_field_name("alternative"):
            if other.type == "else_statement":
                self._block(other.child_by_field_name("body"))
                return
            if self.holds(field(other, "condition")):
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
        values = self._values(named(expressions))
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
        place = self.place

        def run(arguments: list[Any]) -> Any:
            def inside() -> None:
                for number, name in enumerate(parameters):
                    self.declare(name, arguments[number] if number < len(arguments) else None)
                self._sequence(body)

            return self.returned(place, inside)

        return Function(run)

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
                return self._first(only_child(node))
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
        return self._names.get(name, Builtin(name) if name in _GLOBALS else None)

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
            case Builtin(name=name) if isinstance(index, str):
                return Builtin(f"{name}.{index}")
            case list() if isinstance(index, int):
                return owner[index - 1] if 0 < index <= len(owner) else None
            case dict() | list() if isinstance(index, str):
                return self.item(owner, self.plain(index))
            case _:
                raise UnknownError

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

    def _values(self, nodes: list[Node]) -> list[Any]:
        """Return the values of expressions: one of each, of the last one all."""
        found = [self._first(node) for node in nodes[:-1]]
        last = self.value(nodes[-1]) if nodes else Several()
        return [*found, *last] if isinstance(last, Several) else [*found, last]

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
        arguments = self._values(trees)
        if function.type == "method_index_expression":
            owner = self.value(field(function, "table"))
            name = text_of(field(function, "method"))
            if isinstance(owner, dict | list) and isinstance(own := self.item(owner, name), Function):
                return own.run([owner, *arguments])
            return self.method(owner, text_of(field(function, "method")), arguments)
        called = self.value(function)
        match called:
            case Function():
                return called.run(arguments)
            case Builtin(name=name):
                return self.library(name, arguments)
            case _:
                raise UnknownError
