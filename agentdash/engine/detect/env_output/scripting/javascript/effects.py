"""What a part of a JavaScript program that is not modelled can do to the rest of it, by its syntax alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agentdash.engine.detect.env_output.scripting.javascript.expression_syntax import Tree, words_of
from agentdash.engine.detect.env_output.scripting.javascript.values import Class
from agentdash.engine.detect.env_output.scripting.recovery import Effects, reached
from agentdash.engine.detect.env_output.scripting.values import Function, Unknowable
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.word_sets import word_set

_WILD: Final = word_set(
    "eval Function setTimeout setInterval setImmediate nextTick queueMicrotask on once addListener "
    "addEventListener createServer Worker worker_threads vm cluster fork spawn exec execFile Proxy "
    "defineProperty setPrototypeOf prototype __proto__ globalThis global binding dlopen loadEnvFile dotenv "
    "abort kill promisify defineProperties pipe readline constructor.constructor"
)
"""Names by which a program may do anything: later, to its environment, to its own code."""
_WRITING: Final = frozenset(("console", "stdout", "stderr", "inherit", "stdio", "emitWarning"))
_ENDING: Final = frozenset(("exit", "reallyExit"))
_SYNCHRONOUS: Final = word_set(
    "map filter forEach some every find findIndex findLast reduce sort flatMap replace replaceAll from "
    "toSorted reduceRight"
)
"""Functions that have run the functions which they are given when they end."""


def may_run(value: Any) -> bool:
    """Return whether a value is a function or an object of the program, or holds one."""
    if isinstance(value, list | tuple):
        return any(map(may_run, value))
    if isinstance(value, dict):
        return any(map(may_run, value.values()))
    return isinstance(value, Function | Class | Instance | Unknowable)


class Syntax:
    """A program, as far as it says what its parts can do."""

    def __init__(self, program: tuple[Tree, ...]) -> None:
        self._program = program
        self._words = frozenset(words_of(program))
        self._functions: dict[str, frozenset[str]] = {}
        for name, tree in _functions(program):
            self._functions[name] = self._functions.get(name, frozenset()) | frozenset(words_of(tree))
        self._assigned = frozenset(_assigned(program, declares=False))
        self.is_wild = bool(self._words & _WILD) or _changes_environment(program)

    def effects(self, part: Tree, *, holds_functions: bool) -> Effects | None:
        """Return what a part can do; None where it may be anything, or leaves the function around it.

        `holds_functions`: a value that it names is a function of the program, or may hold one.
        """
        words = frozenset(words_of(part))
        assigned = frozenset(_assigned(part, declares=True))
        has_call = any(tree[0] in ("call", "maybe call", "new", "template") for tree in _trees(part))
        if self.is_wild or _leaves(part) or any(_runs_later(tree) for tree in _trees(part)):
            return None
        if has_call and (holds_functions or words & self._functions.keys()):
            words = self._words if holds_functions else reached(words, self._functions)
            assigned |= self._assigned & words
        if has_call and words & _ENDING:
            return None
        return Effects(assigned=assigned, mentioned=words, writes=has_call and bool(words & _WRITING))

    def names_function(self, name: str) -> bool:
        """Return whether the program has a function or a class of a name."""
        return name in self._functions


def _trees(tree: object) -> Iterator[Tree]:
    """Yield a tree and all in it."""
    if isinstance(tree, tuple | list):
        if tree and isinstance(tree[0], str):
            yield tuple(tree)
        for each in tree:
            yield from _trees(each)


def _functions(program: tuple[Tree, ...]) -> Iterator[tuple[str, Tree]]:
    """Yield the functions and classes of a program, and the names under which it has them."""
    for tree in _trees(program):
        match tree:
            case ("function", str(name), *_) | ("class", str(name), *_):
                yield name, tree
            case ("declare", declarations):
                for pattern, value in declarations:
                    if value is not None and any(each[0] in ("arrow", "function") for each in _trees(value)):
                        yield from ((name, value) for name in words_of(pattern))
            case _:
                pass


def _assigned(tree: object, *, declares: bool) -> Iterator[str]:
    """Yield the names that get other values."""
    for each in _trees(tree):
        match each:
            case ("assign", _, ("name", name), _) | ("step", _, ("name", name), _):
                yield name
            case ("assign", _, ("list" | "object", *patterns), _):
                yield from words_of(patterns)
            case ("declare", declarations) if declares:
                for pattern, _ in declarations:
                    yield from words_of(pattern)
            case ("for of" | "for in", pattern, *_) if declares:
                yield from words_of(pattern)
            case ("function" | "class", str(name), *_) if declares:
                yield name
            case _:
                pass


def _leaves(tree: object, *, in_loop: bool = False) -> bool:
    """Return whether a part can end the function or the loop around it."""
    match tree:
        case ("return", *_) | ("throw", *_):
            return True
        case ("break",) | ("continue",):
            return not in_loop
        case ("arrow" | "function" | "class", *_):
            return False
        case ("for of" | "for in" | "for" | "while" | "switch", *rest):
            return any(_leaves(each, in_loop=True) for each in rest)
        case tuple() | list():
            return any(_leaves(each, in_loop=in_loop) for each in tree)
        case _:
            return False


def _runs_later(tree: Tree) -> bool:
    """Return whether a function is given to something that may run it at any later time."""
    match tree:
        case ("call" | "maybe call" | "new", function, arguments):
            name = function[2][1] if function[0] in ("member", "maybe") and len(function[2]) > 1 else ""
            has_function = any(each[0] in ("arrow", "function") for each in _trees(arguments))
            return has_function and name not in _SYNCHRONOUS
        case _:
            return False


def _changes_environment(program: tuple[Tree, ...]) -> bool:
    """Return whether a program may change its environment, by its name or another one for it."""
    targets: list[Tree] = []
    for tree in _trees(program):
        match tree:
            case ("assign" | "step", _, ("member", *_) as target, _) | ("unary", "delete", target):
                targets.append(target)
            case _:
                pass
    if any("env" in words_of(target[1]) for target in targets):
        return True
    names = set(_aliases(program))
    for _ in range(3):  # `this.env = env`, and others for that
        names |= {
            next(reversed([*words_of(tree[2])]))
            for tree in _trees(program)
            if tree[0] == "assign" and tree[3][0] in ("name", "member") and set(words_of(tree[3][-1])) & names
        }
    return any(names & set(words_of(target[1])) for target in targets) or (
        bool(targets) and _has_alias(program)
    )


_ENVIRONMENT: Final = ("member", ("name", "process"), ("text", "env"))


def _aliases(program: tuple[Tree, ...]) -> Iterator[str]:
    """Yield names of variables and parameters that stand for the environment."""
    for tree in _pairs(program):
        match tree:
            case (("name", str(name)), owner) if owner == _ENVIRONMENT:
                yield name
            case _:
                pass


def _pairs(tree: object) -> Iterator[tuple[object, ...]]:
    if isinstance(tree, tuple | list):
        yield tuple(tree)
        for each in tree:
            yield from _pairs(each)


def _has_alias(tree: object) -> bool:
    """Return whether something else than a read of its variables is done with the environment."""
    match tree:
        case ("member" | "maybe", owner, inner) if owner == _ENVIRONMENT:
            return _has_alias(inner)
        case ("binary", "in", inner, owner) if owner == _ENVIRONMENT:
            return _has_alias(inner)
        case ("for in", _, owner, inner) if owner == _ENVIRONMENT:
            return _has_alias(inner)
        case ("call", ("member", ("name", "Object"), ("text", "keys" | "entries" | "values" | "hasOwn")), _):
            return False
        case ("spread", owner) if owner == _ENVIRONMENT:
            return False
        case (("object" | "name", *_), owner) if (
            owner == _ENVIRONMENT
        ):  # its variables, or it, are given names
            return False
        case tuple() | list():
            return tree == _ENVIRONMENT or any(_has_alias(each) for each in tree)
        case _:
            return False
