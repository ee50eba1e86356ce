"""The simple commands of a script, flat, in the order in which a shell reaches them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from agentdash.sandbox.shell import syntax as s
from agentdash.sandbox.shell.parser import parse

_MAX_SHELLS: Final = 5
"""Shells within shells (`bash -c 'bash -c …'`) that are looked into."""
_MAX_COMMANDS: Final = 2_000
"""Scripts with more simple commands are cut off there."""


class Context(StrEnum):
    """Where a command stands: each is a reason why it may not run, or runs elsewhere."""

    AND = "and"
    """On the right of `&&`."""
    UNSURE = "unsure"
    """In a condition, a branch, a loop, a function; beside `||`, behind `!`, before `&`: whether it runs, or
    what its failure means, is decided elsewhere."""
    SUBSHELL = "subshell"
    SUBSTITUTION = "substitution"
    NESTED = "nested"
    """In the script of another shell (`bash -c`)."""


class Command(msgspec.Struct, frozen=True):
    """A simple command, with programs that only start another one (`env`, `timeout 5`, `nice`, …) taken off.

    `pipeline` numbers the pipelines of the script; `position` counts its parts from 0 to `length`.
    """

    argv: tuple[s.Word, ...]
    assignments: tuple[s.Assignment, ...]
    redirects: tuple[s.Redirect, ...]
    """Of the command, then those of the groups and nested shells around it, innermost first."""
    pipeline: int
    position: int
    length: int
    context: frozenset[Context]
    wrappers: tuple[str, ...] = ()
    """Names of the programs that were taken off, outermost first."""
    function: str = ""
    """Name of the function whose body it is in."""

    @property
    def name(self) -> str:
        """The program's name without its folder; empty where it is known only when the script runs."""
        if not self.argv or not self.argv[0].literal:
            return ""
        return self.argv[0].text.rpartition("/")[2]


@lru_cache(512)
def commands(script: str) -> tuple[Command, ...] | None:
    """Return the simple commands of a script, None where it cannot be parsed.

    Commands of functions are listed where the function is defined, command substitutions before the
    command that they are part of.
    """
    if (tree := parse(script)) is None:
        return None
    return tuple(_Walk().script(tree, _Place()))


class _Place(msgspec.Struct, frozen=True):
    """What is around a node."""

    context: frozenset[Context] = frozenset()
    redirects: tuple[s.Redirect, ...] = ()
    wrappers: tuple[str, ...] = ()
    pipeline: int | None = None
    position: int = 0
    length: int = 1
    shells: int = 0
    function: str = ""

    def within(self, *contexts: Context) -> _Place:
        return msgspec.structs.replace(self, context=self.context.union(contexts))

    def alone(self) -> _Place:
        return msgspec.structs.replace(self, pipeline=None, position=0, length=1)


class _Walk:
    def __init__(self) -> None:
        self._pipelines = 0
        self._commands = 0

    def script(self, script: s.Script, place: _Place) -> Iterator[Command]:
        for item in script.items:
            yield from self.node(item.node, place.within(Context.UNSURE) if item.background else place)

    def node(self, node: s.Node, place: _Place) -> Iterator[Command]:
        unsure = place.within(Context.UNSURE)
        match node:
            case s.Simple():
                yield from self._simple(node, place)
            case s.Pipeline(parts=parts):
                number = self._next_pipeline()
                for position, part in enumerate(parts):
                    inner = {"pipeline": number, "position": position, "length": len(parts)}
                    yield from self.node(part, msgspec.structs.replace(place, **inner))
            case s.AndOr(left=left, operator="&&", right=right):
                yield from self.node(left, place)
                yield from self.node(right, place.within(Context.AND))
            case s.AndOr(left=left, right=right):
                yield from self.node(left, unsure)
                yield from self.node(right, unsure)
            case s.Group(body=body, subshell=subshell):
                yield from self.script(body, place.within(Context.SUBSHELL) if subshell else place)
            case s.Compound(body=body, redirects=redirects):
                yield from self._substitutions(_words_of(redirects), place)
                inner_redirects = (*redirects, *place.redirects)
                yield from self.node(body, msgspec.structs.replace(place, redirects=inner_redirects))
            case s.Function(name=name, body=body):
                yield from self.node(body, msgspec.structs.replace(unsure, function=name))
            case s.Not(body=body):
                yield from self.node(body, unsure)
            case s.If(branches=branches, otherwise=otherwise):
                for script in (*(each for branch in branches for each in branch), otherwise or s.Script(())):
                    yield from self.script(script, unsure)
            case s.For(words=words, body=body):
                yield from self._substitutions(words or (), place)
                yield from self.script(body, unsure)
            case s.Unsupported(body=body, words=words):
                yield from self._substitutions(words, place)
                yield from self.script(body, unsure)

    def _next_pipeline(self) -> int:
        self._pipelines += 1
        return self._pipelines - 1

    def _substitutions(self, words: tuple[s.Word, ...], place: _Place) -> Iterator[Command]:
        for word in words:
            for piece in word.pieces:
                if isinstance(piece, s.Substitution):
                    yield from self.script(piece.script, place.alone().within(Context.SUBSTITUTION))
                elif (argument := getattr(piece, "argument", None)) is not None:
                    yield from self._substitutions((argument,), place)

    def _simple(self, node: s.Simple, place: _Place) -> Iterator[Command]:
        values = tuple(a.value for a in node.assignments if a.value is not None)
        elements = tuple(word for a in node.assignments for word in a.elements)
        yield from self._substitutions((*values, *elements, *node.words, *_words_of(node.redirects)), place)
        if self._commands >= _MAX_COMMANDS:
            return
        self._commands += 1
        wrappers, argv = unwrap(node.words)
        redirects = (*node.redirects, *place.redirects)
        nested = shell_script(argv)
        if nested is not None and place.shells < _MAX_SHELLS and (tree := parse(nested)) is not None:
            shell = argv[0].text.rpartition("/")[2]
            inner = {
                "redirects": redirects,
                "wrappers": (*place.wrappers, *wrappers, shell),
                "shells": place.shells + 1,
            }
            inside = msgspec.structs.replace(place, **inner)
            yield from self.script(tree, inside if shell == "eval" else inside.within(Context.NESTED))
            return
        yield Command(
            argv=argv,
            assignments=node.assignments,
            redirects=redirects,
            pipeline=self._next_pipeline() if place.pipeline is None else place.pipeline,
            position=place.position,
            length=place.length,
            context=place.context,
            wrappers=(*place.wrappers, *wrappers),
            function=place.function,
        )


def _words_of(redirects: tuple[s.Redirect, ...]) -> tuple[s.Word, ...]:
    return tuple(r.target for r in redirects if r.target is not None)


# ---------------------------------------------------------------- programs that start another one

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_VALUE_OPTIONS: Final[dict[str, str]] = {
    "env": "uCS",
    "timeout": "ks",
    "nice": "n",
    "ionice": "cnpPu",
    "stdbuf": "ioe",
    "xargs": "aEeIiLlnPsd",
    "exec": "a",
    "time": "of",
    "nohup": "",
    "command": "",
    "builtin": "",
    "setsid": "",
    "unbuffer": "",
    "noglob": "",
}
"""Programs that start another one in the same environment and place, and their options that take a value."""
_ENDING_OPTIONS: Final = {"command": "vV", "env": "0S"}
"""Options with which the program starts nothing, or something that is not in its arguments."""
_OPERANDS: Final = {"timeout": 1}
"""Arguments before the command."""
SHELLS: Final = frozenset(("bash", "sh", "zsh", "dash", "ash", "ksh"))


def unwrap(words: tuple[s.Word, ...]) -> tuple[tuple[str, ...], tuple[s.Word, ...]]:
    """Take `env A=1`, `timeout 5`, `xargs`, … off; return their names and the command behind them."""
    wrappers: list[str] = []
    rest = words
    while rest and rest[0].literal:
        name = rest[0].text.rpartition("/")[2]
        inner = _behind(name, rest[1:]) if name in _VALUE_OPTIONS else None
        if not inner:
            break
        wrappers.append(name)
        rest = inner
    return tuple(wrappers), rest


def _behind(name: str, words: tuple[s.Word, ...]) -> tuple[s.Word, ...] | None:
    """Return the command that a wrapper starts; None where there is none, or its begin is unknown."""
    operands = _OPERANDS.get(name, 0)
    at = 0
    while at < len(words):
        text = words[at].text
        if text == "--":
            at += 1
        elif text.startswith("-") and len(text) > 1 and words[at].literal:
            if not text.startswith("--") and any(
                letter in _ENDING_OPTIONS.get(name, "") for letter in text[1:]
            ):
                return None
            at += _option_length(text, _VALUE_OPTIONS[name])
        elif name == "env" and words[at].pieces and _ASSIGNMENT.fullmatch(text):
            at += 1
        elif operands:
            operands -= 1
            at += 1
        else:
            return words[at:] if words[at].literal else None
    return None


def _option_length(text: str, with_value: str) -> int:
    """Return how many words an option takes: two where its value is the next word."""
    if text.startswith("--"):
        return 1
    return 2 if text[1] in with_value and len(text) == 2 else 1


def shell_script(argv: tuple[s.Word, ...]) -> str | None:
    """Return the literal script of `bash -lc '…'`, `sh -c …`, `eval …`; None for anything else."""
    if len(argv) > 1 and argv[0].text == "eval" and all(word.literal for word in argv):
        return " ".join(word.text for word in argv[1:])
    if len(argv) < 3 or not argv[0].literal or argv[0].text.rpartition("/")[2] not in SHELLS:
        return None
    at, is_command = 1, False
    while at < len(argv) and argv[at].literal and re.fullmatch(r"[-+][a-zA-Z]+|--\w+", argv[at].text):
        option = argv[at].text
        if option.startswith("-") and not option.startswith("--"):
            is_command = is_command or "c" in option
            at += option.endswith(("o", "O"))
        at += 1
    if not is_command or at >= len(argv) or not argv[at].literal:
        return None
    return argv[at].text
