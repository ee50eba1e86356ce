"""What a statement may change in its shell, by its text alone: for statements that are not followed."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAG_STEM, FLAGS
from agentdash.engine.detect.word_sets import word_set
from agentdash.sandbox.shell import (
    AndOr,
    Case,
    Compound,
    For,
    Group,
    If,
    Node,
    Not,
    Opaque,
    Parameter,
    Pipeline,
    Script,
    Simple,
    Text,
    Timed,
    Unsupported,
    While,
    Word,
)

_NAMING: Final = word_set("export declare typeset local readonly unset read mapfile readarray getopts")
"""Commands that change the variables which they name."""
_CHANGING: Final = word_set(
    "eval source . set trap exec alias unalias enable shift setopt unsetopt emulate coproc fc autoload "
    "zmodload builtin command noglob nocorrect vared zstyle hash bind complete"
)
"""Commands that may change anything."""
_LEAVING: Final = frozenset(("exit", "return", "break", "continue", "logout"))
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MAX_DEPTH: Final = 12
"""Functions that call each other."""


class Effects(msgspec.Struct):
    """Names of the variables that a statement may set, and whether it may leave what it stands in."""

    names: set[str]
    leaves: bool = False


class _AnyEffectError(Exception):
    """The statement may change anything."""


def effects(node: Node, functions: dict[str, Node]) -> Effects | None:
    """Return what a statement may change; None where that may be anything, a flag among it."""
    found = Effects(set())
    try:
        _Walk(found, functions).node(node, 0)
    except _AnyEffectError:
        return None
    return None if found.names & set(FLAGS) else found


class _Walk:
    """Collects the effects of a statement and of the functions that it calls."""

    def __init__(self, found: Effects, functions: dict[str, Node]) -> None:
        self._found = found
        self._functions = functions

    def node(self, node: Node, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise _AnyEffectError
        match node:
            case Simple():
                self._simple(node, depth)
            case Pipeline(parts=parts):
                for part in parts:
                    self.node(part, depth)
            case Not(body=body) | Timed(body=body):
                self.node(body, depth)
            case AndOr(left=left, right=right):
                self.node(left, depth)
                self.node(right, depth)
            case Group(body=script, subshell=subshell):
                if not subshell:
                    self.script(script, depth)
            case Compound(body=body, redirects=redirects):
                self._words(tuple(r.target for r in redirects if r.target is not None))
                self.node(body, depth)
            case If(branches=branches, otherwise=otherwise):
                for condition, script in branches:
                    self.script(condition, depth)
                    self.script(script, depth)
                if otherwise is not None:
                    self.script(otherwise, depth)
            case Case(word=word, items=items):
                self._words((word, *(pattern for item in items for pattern in item.patterns)))
                for item in items:
                    self.script(item.body, depth)
            case While(condition=condition, body=script):
                self.script(condition, depth)
                self.script(script, depth)
            case For(name=name, words=words, body=script):
                self._found.names.add(name)
                self._words(words or ())
                self.script(script, depth)
            case Unsupported(raw=raw, body=script):
                if raw.startswith("select "):
                    self._select(raw)
                elif raw.startswith(("((", "for")):
                    self._arithmetic(raw.partition("))")[0])
                    self.script(script, depth)
                else:
                    raise _AnyEffectError
            case _:
                raise _AnyEffectError

    def script(self, script: Script, depth: int) -> None:
        for item in script.items:
            self.node(item.node, depth)

    def _select(self, raw: str) -> None:
        """Add what the text of `select name in …; do …; done` may set: its statements are not parsed."""
        words = set(re.findall(r"[\w.-]+", raw))
        if (
            FLAG_STEM in raw
            or words & (_CHANGING | _NAMING | {"printf"})
            or re.search(r"(?:^|[;&|\s])\.\s", raw)
        ):
            raise _AnyEffectError
        self._found.names.update(("REPLY", *_NAME.findall(raw)))
        self._found.leaves = self._found.leaves or bool(words & {"exit", "return"})

    def _simple(self, node: Simple, depth: int) -> None:
        self._words(node.words)
        self._words(tuple(r.target for r in node.redirects if r.target is not None))
        for assignment in node.assignments:
            self._found.names.add(assignment.name)
            given = (assignment.value, *(assignment.elements or ()), *(assignment.element or ())[1:])
            self._words(tuple(word for word in given if isinstance(word, Word)))
            self._arithmetic(assignment.element[0] if assignment.element else "")
            for word in assignment.elements or ():
                self._arithmetic(word.raw.partition("]=")[0] if word.raw.startswith("[") else "")
        if not node.words:
            return
        if not node.words[0].literal:
            raise _AnyEffectError
        name = node.words[0].text
        if name in self._functions:
            self.node(self._functions[name], depth + 1)
        elif name in _LEAVING:
            self._found.leaves = True
        elif name in _NAMING or (name == "printf" and len(node.words) > 1 and node.words[1].text == "-v"):
            self._named(node.words[1:] if name != "printf" else node.words[2:3])
        elif name == "let":
            self._arithmetic(" ".join(word.raw for word in node.words[1:]) + "=")
        elif name in _CHANGING or (name == "wait" and any(re.match("-.*p", w.text) for w in node.words)):
            raise _AnyEffectError

    def _named(self, words: tuple[Word, ...]) -> None:
        """Add the names among the arguments of `export`, `read` and the like."""
        for word in words:
            first = word.pieces[0] if word.pieces else None
            if not isinstance(first, Text):
                raise _AnyEffectError
            name = re.match(r"[A-Za-z_]\w*(?=\+?=|\[|$)", first.text if word.literal else first.text + "\0")
            if name is not None:
                self._found.names.add(name[0])
            elif not word.literal:
                raise _AnyEffectError

    def _words(self, words: tuple[Word, ...]) -> None:
        """Add the names that expansions set."""
        for word in words:
            for piece in word.pieces:
                if isinstance(piece, Opaque):
                    self._arithmetic(piece.raw)
                elif isinstance(piece, Parameter):
                    if "::=" in piece.raw:
                        raise _AnyEffectError
                    self._arithmetic(piece.index or "")
                    if piece.operator in ("=", ":="):
                        if piece.prefix:
                            raise _AnyEffectError
                        self._found.names.add(piece.name)
                    if piece.argument is not None:
                        self._words((piece.argument,))

    def _arithmetic(self, raw: str) -> None:
        """Add the variables of an expression that may set one."""
        if not re.search(r"=|\+\+|--", raw):
            return
        if FLAG_STEM in raw:
            raise _AnyEffectError
        self._found.names.update(_NAME.findall(raw))
