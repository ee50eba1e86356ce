"""Calls in programs of Perl: functions that take variables, methods, and output."""

from __future__ import annotations

import re
from typing import Any, Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of
from agentdash.engine.detect.env_output.scripting.perl.texts import PerlTexts
from agentdash.engine.detect.env_output.scripting.values import SINK
from agentdash.engine.detect.env_output.selections import Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_FILE_TEST: Final = re.compile(r"-[rwxoRWXOezfdlpSbctugkTB]")
_SOCKETS: Final = ("IO::Socket::INET", "IO::Socket::IP", "IO::Socket::UNIX", "IO::File", "File::Temp")


class Calls(PerlTexts):
    """Calls in programs of Perl: functions that take variables, methods, and output."""

    def values(self, node: Node) -> Any:
        """Return the values of an expression in list context."""
        raise NotImplementedError

    def _bind(self, target: Node, value: Any) -> None:
        raise NotImplementedError

    def _call(self, node: Node, *, in_list: bool) -> Any:
        if _FILE_TEST.fullmatch(text_of(node.children[0])):
            return self.decide()
        function = field(node, "function")
        name = text_of(function)
        trees = [child for child in named(node) if child != function and child.type != "indirect_object"]
        if name in (
            *("defined", "exists", "keys", "values", "each", "delete", "scalar", "push", "shift", "chomp"),
            "open",
        ):
            return self._special_call(name, trees)
        handle = next((child for child in named(node) if child.type == "indirect_object"), None)
        if name == "split" and trees:
            return self._split(named(trees[0]) if trees[0].type == "list_expression" else trees)
        arguments = self._flat([self.values(tree) for tree in trees]) if trees else []
        if name in ("print", "say", "printf"):
            stream = "STDOUT" if handle is None else text_of(handle).strip("{}$ ")
            return self.printed(name, arguments if trees else [self._scalar("$_")], stream)
        return self.call(name, arguments, in_list=in_list)

    def _special_call(self, name: str, trees: list[Node]) -> Any:
        tree = trees[0] if trees else None
        while tree is not None and tree.type == "parenthesized_expression":
            tree = only_child(tree)
        match name:
            case "defined" if tree is not None:
                return self.defined(self.value(tree))
            case "exists" if tree is not None and tree.type == "hash_element_expression":
                mapping = self._mapping("%" + text_of(field(tree, "hash"))[1:])
                key = self.value(field(tree, "key"))
                if isinstance(mapping, Selection):
                    return self.is_set(mapping, key)
                return self.plain(key) in mapping
            case "keys" if tree is not None:
                return self.unordered(self.names_of(self._mapping_of(tree)))
            case "values" if tree is not None:
                return list(self._mapping_of(tree).values())
            case "scalar" if tree is not None:
                return self.value(tree)
            case "shift":
                values = self._named_list("@_" if tree is None else text_of(tree))
                return values.pop(0) if values else None
            case "chomp":
                target = "$_" if tree is None else text_of(tree)
                self._names[target] = self.chomp(self._names.get(target))
                return 1
            case "open" if tree is not None and tree.type == "list_expression":
                return self._opened(*named(tree))
            case "push" if tree is not None and tree.type == "list_expression":
                first, *rest = named(tree)
                values = self._named_list(text_of(first))
                values += self.list_of(self._flat([[], *(self.values(each) for each in rest)]))
                return len(values)
            case _:
                raise UnknownError

    def _opened(self, target: Node, *rest: Node) -> Any:
        handle = self.opened([self.value(each) for each in rest])
        if target.type == "bareword":
            self._names[text_of(target)] = handle
        else:
            self._bind(target, handle)
        return handle is not None

    def _mapping_of(self, tree: Node) -> Any:
        if text_of(tree).startswith("%$"):
            return self._names.get(text_of(tree)[1:])
        return self._mapping(text_of(tree))

    def _split(self, trees: list[Node]) -> Any:
        if trees[0].type == "match_regexp":
            separator = self._regex(trees[0]).compiled.pattern
        else:
            separator = self.plain(self.value(trees[0]))
        separator = {"\\n": "\n", "\\0": "\0", "\\x00": "\0"}.get(separator, separator)
        if len(separator) != 1 or separator == " ":
            raise UnknownError
        limit = self.value(trees[2]) if len(trees) > 2 else 0
        text = self.value(trees[1]) if len(trees) > 1 else self._scalar("$_")
        return self.split(text, separator, limit)

    def _method(self, node: Node) -> Any:
        """Return what `JSON::PP->new->canonical->pretty->encode(…)` gives."""
        names: list[str] = []
        inner = node
        while inner.type == "method_call_expression":
            names.insert(0, text_of(field(inner, "method")))
            inner = field(inner, "invocant")
        arguments = node.child_by_field_name("arguments")
        if names == ["new"] and text_of(inner) in _SOCKETS:
            self._names["$@"] = self.quiet()
            return self.attempted()
        if inner.type == "scalar" and self.value(inner) is SINK:
            return 1
        if text_of(inner) == "Data::Dumper" and names == ["Dumper"] and arguments is not None:
            return self.call("Dumper", self.values(arguments), in_list=False)
        if text_of(inner) != "JSON::PP" or arguments is None or names[-1] != "encode":
            raise UnknownError
        return self.json(self.value(arguments), frozenset(names[1:-1]))

    def _hash_of(self, node: Node) -> Any:
        children = named(node)
        return self.hash_of(self._flat([self.values(child) for child in children]) if children else [])
