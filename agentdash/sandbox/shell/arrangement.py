"""Arrange the parts of pipelines and lists as the shell does, where the grammar takes them otherwise."""

from __future__ import annotations

from typing import Literal

from agentdash.sandbox.shell.syntax import (
    AndOr,
    Compound,
    Node,
    Not,
    Pipeline,
    Redirect,
    Simple,
    Timed,
    Word,
)
from agentdash.sandbox.shell.words import (
    UnparsedError,
)


def redirected(body: Node, redirects: tuple[Redirect, ...], extra: tuple[Word, ...]) -> Node:
    """Give redirections to the command they belong to: the last one of a pipeline or list."""
    if isinstance(body, Simple):
        return Simple(
            words=(*body.words, *extra), assignments=body.assignments, redirects=(*body.redirects, *redirects)
        )
    if isinstance(body, Pipeline):
        return Pipeline((*body.parts[:-1], redirected(body.parts[-1], redirects, extra)), body.stderr)
    if isinstance(body, AndOr):
        return AndOr(body.left, body.operator, redirected(body.right, redirects, extra))
    if isinstance(body, Not | Timed):
        return type(body)(redirected(body.body, redirects, extra))
    if extra:
        raise UnparsedError
    return Compound(body, redirects)


def arranged(parts: list[Node], stderr: list[bool]) -> Node:
    """Return the parts of a pipeline in the order of precedence.

    Beside redirections and here-documents the grammar takes `a && b <f | c` for `(a && b <f) | c`, and
    `a | b || c` for `a | (b || c)`.
    """
    result: Node | None = None
    operator: Literal["&&", "||"] = "&&"
    pipeline: list[Node] = []
    pipes: list[bool] = []
    for number, part in enumerate(parts):
        pipes += [stderr[number - 1]] if pipeline else []
        first, *others = _chain(part)
        pipeline += _flattened(first[1], pipes)
        for following, node in others:
            result = _listed(result, operator, _piped(pipeline, pipes))
            operator, pipeline, pipes = following, [], []
            pipeline += _flattened(node, pipes)
    return _listed(result, operator, _piped(pipeline, pipes))


def _chain(node: Node) -> list[tuple[Literal["&&", "||"], Node]]:
    """Return the members of a list, each with the operator before it."""
    if not isinstance(node, AndOr):
        return [("&&", node)]
    return [*_chain(node.left), (node.operator, node.right)]


def _flattened(node: Node, pipes: list[bool]) -> list[Node]:
    """Return the parts of a pipeline in a pipeline; adds its pipes."""
    if not isinstance(node, Pipeline):
        return [node]
    pipes += node.stderr
    return list(node.parts)


def _listed(left: Node | None, operator: Literal["&&", "||"], right: Node) -> Node:
    return right if left is None else AndOr(left, operator, right)


def _piped(parts: list[Node], stderr: list[bool]) -> Node:
    first, *others = parts
    if any(isinstance(part, Not | Timed) for part in others):
        raise UnparsedError
    if not others:
        return first
    if isinstance(first, Not | Timed):
        return type(first)(_piped([first.body, *others], stderr))
    return Pipeline(tuple(parts), tuple(stderr))
