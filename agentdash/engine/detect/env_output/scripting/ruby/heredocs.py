"""Heredocs of Ruby: the grammar has their texts behind the statement that they begin in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import text_of, with_gaps
from agentdash.engine.detect.env_output.unknown import UnknownError

_MAX_HEREDOCS: Final = 8
"""The program is searched for each; a model types one or two."""


def heredoc(beginning: Node, spelled: Callable[[Node], str]) -> str:
    """Return the text of a heredoc; `spelled` gives that of an escape, or of an expression in it."""
    body = _body_of(beginning)
    if "'" in text_of(beginning) and any(child.type != "heredoc_end" for child in body.named_children[1:]):
        raise UnknownError
    width = _width(text_of(body)) if text_of(beginning).startswith("<<~") else 0
    out = ""
    is_start = False
    """What comes next begins a line of the program."""
    for part in with_gaps(body):
        if isinstance(part, str) or part.type == "heredoc_content":
            text = part if isinstance(part, str) else text_of(part)
            text = re.sub(rf"^ {{0,{width}}}", "", text) if is_start else text
            text = re.sub(rf"\n {{0,{width}}}", "\n", text)
            is_start = text.endswith("\n")
            out += text
        elif part.type != "heredoc_end":
            out += spelled(part)
            is_start = False
    return out.removeprefix("\n").rstrip(" ")


def _body_of(beginning: Node) -> Node:
    root = beginning
    while root.parent is not None:
        root = root.parent
    starts = [node.start_byte for node in _all(root) if node.type == "heredoc_beginning"]
    bodies = [node for node in _all(root) if node.type == "heredoc_body"]
    if len(starts) != len(bodies) or len(starts) > _MAX_HEREDOCS:
        raise UnknownError
    return bodies[starts.index(beginning.start_byte)]


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.named_children:
        yield from _all(child)


def _width(body: str) -> int:
    """Return the blanks that all lines of a text begin with."""
    lines = [line for line in body.split("\n")[1:-1] if line.strip()]
    if "\t" in body or not lines:
        raise UnknownError
    return min(len(line) - len(line.lstrip(" ")) for line in lines)
