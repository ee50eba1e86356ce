"""Parse programs with tree-sitter's grammars."""

from __future__ import annotations

import warnings
from functools import cache, lru_cache
from importlib import import_module
from typing import Final

from tree_sitter import Language, Node, Parser

from agentdash.engine.detect.env_output.unknown import UnknownError

MAX_CODE: Final = 4_000
"""Characters; longer programs are not read: a model does not type them as a probe."""


def parse_program(language: str, code: str) -> Node:
    """Return the root of a program's syntax tree. Raises `UnknownError` where it cannot be parsed."""
    root = _parsed(language, code) if len(code) <= MAX_CODE and "\0" not in code else None
    if root is None:
        raise UnknownError
    return root


@lru_cache(64)
def _parsed(language: str, code: str) -> Node | None:
    if (grammar := _grammar(language)) is None:
        return None
    root = Parser(grammar).parse(code.encode(errors="replace")).root_node
    return None if root.has_error else root


@cache
def _grammar(language: str) -> Language | None:
    """Return a grammar; None where it is not installed, as that of Perl on Macs with Intel processors."""
    try:
        module = import_module(f"tree_sitter_{language}")
    except ImportError:
        return None
    with warnings.catch_warnings():  # tree-sitter-perl gives the address of its grammar as a number
        warnings.simplefilter("ignore", DeprecationWarning)
        return Language(module.language_php() if language == "php" else module.language())


def text_of(node: Node | None) -> str:
    """Return the source of a node."""
    if node is None or node.text is None:
        raise UnknownError
    return node.text.decode()


def field(node: Node, name: str) -> Node:
    """Return the child with a name. Raises `UnknownError` where there is none."""
    child = node.child_by_field_name(name)
    if child is None:
        raise UnknownError
    return child


def named(node: Node | None) -> list[Node]:
    """Return the children that are no signs and no comments."""
    return [] if node is None else [child for child in node.named_children if child.type != "comment"]


def with_gaps(node: Node) -> list[Node | str]:
    """Return the children that are no signs, and the text between them that belongs to none."""
    source, start = (node.text or b""), node.start_byte
    found: list[Node | str] = []
    at = start
    for child in node.children:
        found.append(source[at - start : child.start_byte - start].decode())
        found += [child] if child.is_named else []
        at = child.end_byte
    return [part for part in found if part != ""]


def only_child(node: Node) -> Node:
    """Return the one child that is no sign. Raises `UnknownError` where there are others."""
    children = named(node)
    if len(children) != 1:
        raise UnknownError
    return children[0]
