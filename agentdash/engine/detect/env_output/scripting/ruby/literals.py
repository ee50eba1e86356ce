"""Texts, lists and hashes as they stand in a program of Ruby."""

from __future__ import annotations

from typing import Any, Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of
from agentdash.engine.detect.env_output.scripting.ruby.heredocs import heredoc
from agentdash.engine.detect.env_output.scripting.ruby.objects import Objects
from agentdash.engine.detect.env_output.scripting.values import (
    Symbol,
)
from agentdash.engine.detect.env_output.unknown import UnknownError

_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "e": "\x1b",
    "x00": "\0",
    "u0000": "\0",
    "s": " ",
}


class Literals(Objects):
    """Texts, lists and hashes as they stand in a program of Ruby."""

    def _sequence(self, nodes: list[Node]) -> Any:
        """Run statements, and return the value of the last one."""
        raise NotImplementedError

    def _named(self, name: str) -> Any:
        """Return what a name stands for."""
        raise NotImplementedError

    def _literal(self, node: Node) -> Any:
        match node.type:
            case "string":
                return self._string(node)
            case "string_array":
                return ["".join(text_of(part) for part in named(child)) for child in named(node)]
            case "heredoc_beginning":
                return heredoc(node, self._spelled)
            case "subshell":
                return self.captured(self._string(node))
            case "regex":
                body = "".join(self._source(child) for child in named(node))
                return self.pattern(body, text_of(node).rpartition("/")[2])
            case _:
                raise UnknownError

    def _source(self, node: Node) -> str:
        if node.type == "interpolation":
            raise UnknownError
        return text_of(node).replace("\\/", "/")

    def _string(self, node: Node) -> str:
        is_plain = text_of(node).startswith(("'", "%q"))
        out = ""
        for child in named(node):
            match child.type:
                case "string_content":
                    out += text_of(child)
                case "escape_sequence":
                    out += self._escaped(text_of(child)[1:], is_plain=is_plain)
                case _:
                    out += self._spelled(child)
        return out

    def _spelled(self, node: Node) -> str:
        """Return the text of an expression in a text, or of an escape."""
        match node.type:
            case "interpolation":
                return self.text(self._sequence(named(node)))
            case "escape_sequence":
                return self._escaped(text_of(node)[1:], is_plain=False)
            case _:
                raise UnknownError

    def _escaped(self, letter: str, *, is_plain: bool) -> str:
        if is_plain:
            return letter if letter in "\\'" else "\\" + letter
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter.isalnum():
            raise UnknownError
        return letter if letter != "\n" else ""

    def _items(self, node: Node) -> list[Any]:
        if node.type == "splat_argument":
            return self.list_of(self.value(only_child(node)))
        return [self.value(node)]

    def _hash(self, node: Node) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for pair in named(node):
            if pair.type != "pair":
                raise UnknownError
            found[self._key(field(pair, "key"))] = self._pair_value(pair)
        return found

    def _key(self, node: Node) -> str:
        if node.type == "hash_key_symbol":
            return Symbol(text_of(node))
        value = self.value(node)
        self.plain(value)
        return value  # type: ignore[no-any-return]

    def _pair_value(self, pair: Node) -> Any:
        value = pair.child_by_field_name("value")
        return self._named(text_of(field(pair, "key"))) if value is None else self.value(value)
