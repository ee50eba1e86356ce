"""Which commands of a compound statement read what it is fed with."""

from __future__ import annotations

from typing import Final

import msgspec

from agentdash.engine.detect.env_output.patterns import ANY, Parts
from agentdash.engine.detect.env_output.streams import Outcome
from agentdash.engine.detect.env_output.world import State
from agentdash.engine.detect.word_sets import word_set
from agentdash.sandbox.shell import (
    Compound,
    For,
    Function,
    Item,
    Node,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Text,
    Unsupported,
    While,
    Word,
    parse,
)

_INPUTS: Final = frozenset(("<", "<<", "<<-", "<<<"))
_READS_NOTHING: Final = word_set(
    ": [ [[ alias break cd compgen continue declare echo exit export false let local print printf pwd "
    "readonly return set shift shopt test trap true type typeset ulimit umask unset wait which date df "
    "getent hostname id ls mkdir mktemp nproc printenv ps rm seq sleep stat touch uname whoami"
)
_READS_FILES: Final = {"cat": 1, "head": 1, "tail": 1, "sort": 1, "wc": 1, "grep": 2, "sed": 2, "awk": 2}
"""Programs that read nothing where they have so many operands."""
_MANY: Final = 2
_MAX_DEPTH: Final = 12


def fed(state: State, node: Node | Script, stdin: Parts) -> State:
    """Return the state in which a statement runs that reads `stdin`.

    Where several of its commands may read, what each of them gets is not known.
    """
    count = _readers(node, dict(state.functions), 0)
    return msgspec.structs.replace(state, stdin=stdin if count < _MANY else (ANY,))


def restored(outcome: Outcome, state: State) -> Outcome:
    """Return the outcome of a statement that was fed, with the standard input that the shell had before."""
    after = msgspec.structs.replace(outcome.state, stdin=state.stdin)
    return msgspec.structs.replace(outcome, state=after)


def reads_input(node: Node | Script, state: State) -> bool:
    """Return whether some command of a statement may read what the statement is fed with."""
    return _readers(node, dict(state.functions), 0) > 0


def _readers(value: object, functions: dict[str, Node], depth: int) -> int:
    """Return how many commands may read; a loop counts as many."""
    if depth > _MAX_DEPTH:
        return _MANY
    match value:
        case Function():
            return 0
        case Simple(redirects=redirects) | Compound(redirects=redirects) if _is_fed_itself(redirects):
            return 0
        case Simple(words=words):
            found = _within(value, functions, depth)
            if not words or not words[0].literal:
                return found + bool(words) * _MANY
            name = words[0].text
            if name in functions:
                return found + _readers(functions[name], functions, depth + 1)
            if name == "eval":
                script = _evaluated(words[1:])
                return found + (_MANY if script is None else _readers(script, functions, depth + 1))
            operands = sum(not word.raw.startswith("-") for word in words[1:])
            reads = name not in _READS_NOTHING and operands < _READS_FILES.get(name, _MANY * 100)
            return found + (reads and not _is_dump(name, value))
        case Pipeline(parts=(first, *_)):
            return _readers(first, functions, depth)
        case While(condition=Script(items=(Item(node=Simple(words=(Word(raw="read"), *_))),))):
            is_only_reader = _within(value.body, functions, depth) == 0
            return 1 if is_only_reader else _MANY
        case For() | While() | Unsupported():
            return _MANY * _within(value, functions, depth)
        case _:
            return _within(value, functions, depth)


def _evaluated(words: tuple[Word, ...]) -> Script | None:
    """Return what `eval` runs, with a plain word for each expansion; None where that is no script."""
    texts = ["".join(p.text if isinstance(p, Text) else "x" for p in word.pieces) for word in words]
    return parse(" ".join(texts))


def _within(value: object, functions: dict[str, Node], depth: int) -> int:
    """Return how many commands may read in the parts of a statement, a word or a substitution."""
    match value:
        case tuple():
            return sum(_readers(each, functions, depth) for each in value)
        case msgspec.Struct():
            return sum(_readers(getattr(value, name), functions, depth) for name in value.__struct_fields__)
        case _:
            return 0


def _is_dump(name: str, command: Simple) -> bool:
    """Return whether a command is `env` without a program, or `command -v`."""
    texts = [word.raw for word in command.words[1:]]
    if name == "command":
        return texts[:1] in (["-v"], ["-V"])
    return name == "env" and all(text.startswith("-") or "=" in text for text in texts)


def _is_fed_itself(redirects: tuple[Redirect, ...]) -> bool:
    return any(redirect.operator in _INPUTS and redirect.fd in (None, 0) for redirect in redirects)
