"""Expressions of PHP."""

from __future__ import annotations

import re
from typing import Any, Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of, with_gaps
from agentdash.engine.detect.env_output.scripting.php.objects import Objects
from agentdash.engine.detect.env_output.scripting.values import (
    FailedError,
)
from agentdash.engine.detect.env_output.selections import Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b"}
_CONSTANTS: Final[dict[str, Any]] = {
    "PHP_EOL": "\n",
    "ARRAY_FILTER_USE_KEY": 2,
    "ARRAY_FILTER_USE_BOTH": 1,
    "JSON_PRETTY_PRINT": 128,
    "JSON_UNESCAPED_SLASHES": 64,
    "JSON_UNESCAPED_UNICODE": 256,
    "JSON_FORCE_OBJECT": 16,
    "JSON_THROW_ON_ERROR": 4_194_304,
    "STDOUT": "php://stdout",
    "STDERR": "php://stderr",
    "null": None,
}
_QUIET_CONSTANTS: Final = frozenset(("PHP_VERSION", "PHP_OS", "PHP_OS_FAMILY", "PHP_SAPI", "PHP_BINARY"))


def only_child_of_unary(node: Node) -> Node:
    """Return the operand of `!x`."""
    return field(node, "argument") if node.child_by_field_name("argument") else only_child(node)


def _escaped(text: str) -> str:
    letter = text[1:]
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter in ('"', "\\", "$", "`"):
        return letter
    if letter in ("x00", "000", "u{0}"):
        return "\0"
    raise UnknownError


class Expressions(Objects):
    """Expressions of PHP."""

    def value(self, node: Node) -> Any:
        """Return the value of an expression."""
        self.step()
        match node.type:
            case "encapsed_string" | "string" | "heredoc" | "nowdoc":
                return self._string(node)
            case "shell_command_expression":
                return self.captured(self._string(node))
            case "integer":
                return int(text_of(node))
            case "boolean":
                return text_of(node).lower() == "true"
            case "null":
                return None
            case "name":
                return self._constant(text_of(node))
            case "variable_name":
                return self._variable(text_of(node))
            case "object_creation_expression" | "member_call_expression" | "member_access_expression":
                return self.of_objects(node)
            case "scoped_call_expression" | "class_constant_access_expression":
                return self.of_objects(node)
            case "match_expression":
                return self._matched(node)
            case "throw_expression":
                raise self._thrown(only_child(node))
            case "parenthesized_expression" | "argument":
                return self.value(only_child(node))
            case "subscript_expression":
                owner, *keys = named(node)
                return self.at(self.value(owner), self.value(keys[0]))
            case "array_creation_expression":
                return self._array(node)
            case "arrow_function" | "anonymous_function":
                return self.function(node, captures=True)
            case "function_call_expression":
                return self._called(node)
            case "print_intrinsic":
                self.out.append(self.text(self.value(only_child(node))))
                return 1
            case "assignment_expression":
                value = self.value(field(node, "right"))
                self.bind(field(node, "left"), value)
                return value
            case _:
                return self._operation(node)

    def _thrown(self, thrown: Node) -> FailedError:
        if thrown.type != "object_creation_expression":
            raise UnknownError
        kind, *rest = named(thrown)
        arguments = [each for child in rest if child.type == "arguments" for each in named(child)]
        text = self.value(arguments[0]) if arguments else ""
        return FailedError(text_of(kind).lstrip("\\"), text)

    def _operation(self, node: Node) -> Any:
        match node.type:
            case "conditional_expression":
                return self._choice(node)
            case "binary_expression":
                return self._binary(node)
            case "unary_op_expression" if text_of(node.children[0]) == "!":
                return not self.holds(only_child_of_unary(node))
            case "augmented_assignment_expression":
                left = field(node, "left")
                sign = text_of(field(node, "operator")).removesuffix("=")
                right = self.value(field(node, "right"))
                value = self.computed(sign, self.value(left), right)
                self.bind(left, value)
                return value
            case "update_expression":
                target = field(node, "argument")
                before = self.value(target)
                after = self.computed("+", before, 1 if "++" in text_of(node) else -1)
                self.bind(target, after)
                return before
            case "cast_expression":
                return self.cast(text_of(field(node, "type")), self.value(field(node, "value")))
            case "error_suppression_expression":
                outer, self.is_silent = self.is_silent, True
                try:
                    return self.value(only_child(node))
                finally:
                    self.is_silent = outer
            case _:
                raise UnknownError

    def _string(self, node: Node) -> str:
        if node.type == "string":
            body = text_of(node)[1:-1]
            return re.sub(r"\\([\\'])", r"\1", body)
        if node.type in ("heredoc", "nowdoc"):
            return self._heredoc(node)
        out = ""
        for child in named(node):
            match child.type:
                case "string_content":
                    out += text_of(child)
                case "escape_sequence":
                    out += _escaped(text_of(child))
                case _:
                    out += self.text(self.value(child))
        return out

    def _heredoc(self, node: Node) -> str:
        """Return a heredoc; the blanks before its end are taken from each line."""
        body = next((child for child in named(node) if child.type.endswith("doc_body")), None)
        if body is None:
            return ""
        width = len(re.findall(r"([ \t]*)\w+$", text_of(node))[0])
        out = ""
        for part in with_gaps(body):
            if isinstance(part, str) or part.type in ("string_content", "nowdoc_string"):
                out += re.sub(
                    rf"\n[ \t]{{0,{width}}}", "\n", part if isinstance(part, str) else text_of(part)
                )
            elif part.type == "escape_sequence":
                out += _escaped(text_of(part))
            else:
                out += self.text(self.value(part))
        return out[1:]

    def _matched(self, node: Node) -> Any:
        subject = self.value(field(node, "condition"))
        for each in named(field(node, "body")):
            tests = each.child_by_field_name("conditional_expressions")
            if tests is None or any(self.equal(subject, self.value(test)) for test in named(tests)):
                return self.value(field(each, "return_expression"))
        raise FailedError("UnhandledMatchError")

    def _constant(self, name: str) -> Any:
        if name in _QUIET_CONSTANTS:
            return self.quiet()
        if name.lower() == "null":
            return None
        if name not in _CONSTANTS:
            raise UnknownError
        return _CONSTANTS[name]

    def _variable(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        if name == "$_SERVER":  # holds the environment besides
            return Selection((True, True))
        raise UnknownError  # `$_ENV` depends on the configuration

    def _array(self, node: Node) -> Any:
        items: list[Any] = []
        entries: dict[str, Any] = {}
        for element in named(node):
            match named(element):
                case [value] if element.type == "array_element_initializer" and "..." not in text_of(element):
                    items.append(self.value(value))
                case [key, value]:
                    entries[self.plain(self.value(key))] = self.value(value)
                case _:
                    raise UnknownError
        if items and entries:
            raise UnknownError
        return entries or items

    def _called(self, node: Node) -> Any:
        function = field(node, "function")
        trees = named(field(node, "arguments"))
        name = text_of(function).lower() if function.type == "name" else ""
        if name in ("isset", "empty"):
            return self._tested(name, [only_child(tree) for tree in trees])
        if name == "ksort":
            return True  # of mappings that are not looked at by order
        if name == "exec" and len(trees) == 2:
            self.bind(only_child(trees[1]), self.output_lines(self.value(trees[0])))
            return self.quiet()
        if name in ("fsockopen", "stream_socket_client") and len(trees) > 1:
            places = trees[2:4] if name == "fsockopen" else trees[1:3]
            for tree, found in zip(places, (self.number_word(), self.quiet()), strict=False):
                self.bind(only_child(tree), found)
            return self.tried()
        if name in ("sort", "asort"):
            self.bind(only_child(trees[0]), self.in_order(self.value(trees[0])))
            return True
        arguments = [self.value(tree) for tree in trees]
        if not name:
            return self.call(self.value(function), arguments)
        if name in self.functions:
            return self.call(self.functions[name], arguments)
        return self.library(name, arguments)

    def _tested(self, name: str, trees: list[Node]) -> bool:
        if name == "empty":
            return not self.truth(self._value_or_none(trees[0]))
        return all(self._is_there(tree) for tree in trees)

    def _is_there(self, tree: Node) -> bool:
        if tree.type == "subscript_expression":
            owner, key = named(tree)
            mapping = self.value(owner)
            if isinstance(mapping, Selection):
                return self.is_set(mapping, self.value(key))
        return self.defined(self._value_or_none(tree))

    def _value_or_none(self, tree: Node) -> Any:
        if tree.type == "variable_name" and text_of(tree) not in (*self._names, "$_SERVER", "$_ENV"):
            return None
        return self.value(tree)

    def _choice(self, node: Node) -> Any:
        test = self.value(field(node, "condition"))
        body = node.child_by_field_name("body")
        if self.truth(test):
            return test if body is None else self.value(body)
        return self.value(field(node, "alternative"))

    def _binary(self, node: Node) -> Any:
        sign = text_of(field(node, "operator")).lower()
        left, right = field(node, "left"), field(node, "right")
        match sign:
            case "??":
                return self.value(left if self._is_there(left) else right)
            case "&&" | "and":
                return self.holds(left) and self.holds(right)
            case "||" | "or":
                return self.holds(left) or self.holds(right)
            case _:
                return self.computed(sign, self.value(left), self.value(right))
