"""Command lines of interpreters: where the code of a program stands, and how it is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.patterns import ANY, QUIET, QUIET_TEXT, Part, Parts, concrete
from agentdash.engine.detect.env_output.placeholders import refilled, with_placeholders
from agentdash.engine.detect.env_output.reaching import is_harmless
from agentdash.engine.detect.env_output.scripting.grammars import parse_program
from agentdash.engine.detect.env_output.scripting.machine import run_all
from agentdash.engine.detect.env_output.scripting.values import SURPRISES
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError

Holes = dict[str, Part]
Runner = Callable[[str, Call, Holes], list[Result]]


def run_text(call: Call, code: Parts | None, run: Runner) -> list[Result]:
    """Return the results of a program whose code is a word of the command, a file or standard input."""
    holes: Holes = {}
    text = None if code is None else with_placeholders(code, holes)
    if text is None:
        return UNKNOWN
    try:
        results = run(text, call, holes)
    except (UnknownError, *SURPRISES):
        results = UNKNOWN
    # what the shell has put into the program may be a flag
    if not holes and call.name in _WITHOUT_INPUT and is_harmless(text):
        results = [_quiet(result) for result in results]
    missing = msgspec.structs.replace(not_found(call.name), state=call.state)
    return [*(_refilled(result, holes) for result in results), missing]


_WITHOUT_INPUT: Final = ("python", "python3", "node", "nodejs", "php")
"""Interpreters that read standard input only where a program does."""


def _quiet(result: Result) -> Result:
    """Return the result of a program that names no flag where what it prints is not known."""
    out = tuple(QUIET_TEXT if part == ANY else part for part in result.out)
    err = tuple(QUIET_TEXT if part == ANY else part for part in result.err)
    return msgspec.structs.replace(result, out=out, err=err)


def _refilled(result: Result, holes: Holes) -> Result:
    return msgspec.structs.replace(result, out=refilled(result.out, holes), err=refilled(result.err, holes))


def file_or_input(call: Call, words: list[Parts]) -> Parts | None:
    """Return the code that is in a file, or in what the command reads; None where it is not known."""
    if not words or (len(words) == 1 and concrete(words[0]) == "-"):
        return call.stdin
    return dict(call.state.files).get(words[0]) if len(words) == 1 else None


def versions(call: Call, flags: tuple[str, ...]) -> list[Result] | None:
    """Return what a program writes of its version, where that is its one argument."""
    if len(call.arguments) == 1 and concrete(call.arguments[0]) in flags:
        return [Result(out=(QUIET,), err=(QUIET,), status=None)]
    return None


def run_grammar(call: Call, code: Parts | None, kind: type[Any], grammar: str) -> list[Result]:
    """Return the results of a program of a language that has a grammar."""

    def run(text: str, command: Call, holes: Holes) -> list[Result]:
        root = parse_program(grammar, text)
        return run_all(kind, command, holes, lambda machine: machine.program(root))

    return run_text(call, code, run)
