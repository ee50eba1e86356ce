"""Command lines of interpreters: where the code of a program stands, and how it is run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.inert import UNKNOWN
from agentdash.engine.detect.env_output.inputs import input_of, single_dump
from agentdash.engine.detect.env_output.patterns import ANY, QUIET, QUIET_TEXT, Part, Parts, concrete
from agentdash.engine.detect.env_output.placeholders import refilled, with_placeholders
from agentdash.engine.detect.env_output.reaching import is_harmless
from agentdash.engine.detect.env_output.scripting.grammars import parse_program
from agentdash.engine.detect.env_output.scripting.jq.library import Many
from agentdash.engine.detect.env_output.scripting.jq.program import Jq
from agentdash.engine.detect.env_output.scripting.jq.syntax import parse_jq
from agentdash.engine.detect.env_output.scripting.json_text import Layout
from agentdash.engine.detect.env_output.scripting.lua.program import Lua
from agentdash.engine.detect.env_output.scripting.machine import run_all
from agentdash.engine.detect.env_output.scripting.perl.library import MODULES
from agentdash.engine.detect.env_output.scripting.perl.program import Perl
from agentdash.engine.detect.env_output.scripting.php.program import Php
from agentdash.engine.detect.env_output.scripting.ruby.library import LIBRARIES
from agentdash.engine.detect.env_output.scripting.ruby.program import Ruby
from agentdash.engine.detect.env_output.scripting.values import SURPRISES, UNKNOWABLE, Written
from agentdash.engine.detect.env_output.streams import Call, Result
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


def _run(machine: Any, code: str, grammar: str, call: Call, holes: Holes) -> list[Result]:
    root = parse_program(grammar, code)

    def run(started: Any) -> Callable[[], None]:
        return lambda: started.program(root)

    return run_all(lambda decisions: machine(call, holes, decisions), run)


def php(call: Call) -> list[Result]:
    """Return what `php -r CODE` and `php FILE` write."""
    words = list(call.arguments)
    if found := versions(call, ("-v", "--version")):
        return found
    while words and concrete(words[0]) in ("-n", "-q"):
        words.pop(0)
    if len(words) == 2 and concrete(words[0]) == "-r":
        return run_text(call, words[1], lambda code, c, holes: _run(Php, f"<?php {code}", "php", c, holes))
    return run_text(call, file_or_input(call, words), lambda code, c, holes: _run(Php, code, "php", c, holes))


_PERL_OPTION: Final = re.compile(
    r"-(?P<letters>[wlnpa]*)(?:0(?P<record>0?|777))?(?P<more>[lnpa]*)(?:F(?P<separator>.+)|(?P<code>[eE]))?"
)


class _PerlOptions(msgspec.Struct):
    """The command line of Perl."""

    letters: str = ""
    separator: str = " "
    is_nul: bool = False
    is_whole: bool = False
    """The input is read as one record."""
    code: Parts | None = None
    files: list[Parts] = []


def _perl_options(call: Call) -> _PerlOptions | None:
    words = list(call.arguments)
    found = _PerlOptions()
    while words and (text := concrete(words[0])) is not None and text.startswith("-") and text != "-":
        words.pop(0)
        module = re.fullmatch(r"-M([A-Za-z]\w*(?:::\w+)*|5)(?:=[\w,]+|\.\d+)?", text)
        if module is not None and (module[1] in MODULES or module[1] == "5"):
            found.letters += {"warnings": "w", "5": "E"}.get(module[1], "")
            continue
        if (match := _PERL_OPTION.fullmatch(text)) is None:
            return None
        found.letters += match["letters"] + match["more"] + (match["code"] or "")
        found.is_whole = found.is_whole or match["record"] == "777"
        found.is_nul = found.is_nul or match["record"] in ("", "0")
        found.separator = match["separator"] or found.separator
        if match["code"]:
            if not words:
                return None
            found.code = words.pop(0)
    if found.code is None:
        found.code = file_or_input(call, words)
        words = []
    found.files = words
    return found


def perl(call: Call) -> list[Result]:
    """Return what `perl -e CODE`, `perl -ne CODE` and `perl FILE` write."""
    if found := versions(call, ("-v", "--version")):
        return found
    if (options := _perl_options(call)) is None:
        return UNKNOWN
    return run_text(call, options.code, lambda code, c, holes: _run_perl(options, code, c, holes))


def _run_perl(options: _PerlOptions, code: str, call: Call, holes: Holes) -> list[Result]:
    root = parse_program("perl", code)
    reads = "n" in options.letters or "p" in options.letters
    separator = options.separator.strip("/'\"")
    if (options.files and not reads) or len(separator) != 1:
        raise UnknownError
    content = input_of(call, options.files)

    def start(decisions: tuple[bool, ...]) -> Perl:
        machine = Perl(call, holes, decisions)
        machine.warns = "w" in options.letters
        machine.has_say = "E" in options.letters
        machine.ends_lines = "l" in options.letters
        machine.record_end = "\0" if options.is_nul else "\n"
        return machine

    def run(machine: Any) -> Callable[[], None]:
        if not reads:
            return lambda: machine.program(root)
        if options.is_whole:
            return lambda: machine.over_whole(root, content, prints="p" in options.letters)
        split = lambda line: line.split(None if separator == " " else separator)  # noqa: E731
        return lambda: machine.over_lines(root, content, prints="p" in options.letters, split=split)

    return run_all(start, run)


def ruby(call: Call) -> list[Result]:
    """Return what `ruby -e CODE`, `ruby -ne CODE` and `ruby FILE` write."""
    words = list(call.arguments)
    if found := versions(call, ("-v", "--version")):
        return found
    letters = ""
    code: Parts | None = None
    while words and (text := concrete(words[0])) is not None and text.startswith("-") and text != "-":
        words.pop(0)
        if text.startswith("-r") and text[2:] in LIBRARIES:
            continue
        if not re.fullmatch(r"-[wn]*e?", text):
            return UNKNOWN
        letters += text[1:]
        if text.endswith("e"):
            code = words.pop(0) if words else None
            break
    if code is None:
        code, words = file_or_input(call, words), []
    content = input_of(call, words)
    return run_text(call, code, lambda text, c, holes: _run_ruby(letters, text, content, c, holes))


def _run_ruby(letters: str, code: str, content: Parts, call: Call, holes: Holes) -> list[Result]:
    root = parse_program("ruby", code)

    def run(started: Any) -> Callable[[], None]:
        if "n" in letters:
            return lambda: started.over_lines(root, content)
        return lambda: started.program(root)

    return run_all(lambda decisions: Ruby(call, holes, decisions), run)


def lua(call: Call) -> list[Result]:
    """Return what `lua -e CODE` and `lua FILE` write."""
    words = list(call.arguments)
    if found := versions(call, ("-v",)):
        return found
    if words and concrete(words[0]) == "-e":
        code = words[1] if len(words) == 2 else None
    else:
        code = file_or_input(call, words)
    return run_text(call, code, lambda text, c, holes: _run(Lua, text, "lua", c, holes))


_JQ_OPTIONS: Final = {
    "--null-input": "n",
    "--raw-output": "r",
    "--compact-output": "c",
    "--sort-keys": "S",
    "--raw-input": "R",
    "--join-output": "j",
    "--slurp": "s",
    "--exit-status": "e",
    "--monochrome-output": "M",
}


def jq(call: Call) -> list[Result]:
    """Return what `jq FILTER` writes."""
    words = list(call.arguments)
    letters = ""
    given: dict[str, Parts] = {}
    code: Parts | None = None
    if found := versions(call, ("-V", "--version")):
        return found
    while words:
        word = words.pop(0)
        text = concrete(word)
        if text in ("--arg", "--argjson") and len(words) > 1 and (name := concrete(words[0])) is not None:
            if text == "--argjson":
                return UNKNOWN
            given[f"${name}"] = words[1]
            del words[:2]
        elif text is not None and text in _JQ_OPTIONS:
            letters += _JQ_OPTIONS[text]
        elif text is not None and re.fullmatch(r"-[nrcSRsjeMa]+", text):
            letters += text[1:]
        elif code is None and not (text or "").startswith("-"):
            code = word
        else:
            return UNKNOWN
    return run_text(call, code, lambda source, c, holes: _run_jq(source, letters, given, c, holes))


def _run_jq(code: str, letters: str, given: dict[str, Parts], call: Call, holes: Holes) -> list[Result]:
    tree = parse_jq(code)
    texts = {name: with_placeholders(value, holes) for name, value in given.items()}
    if None in texts.values():
        raise UnknownError

    def start(decisions: tuple[bool, ...]) -> Jq:
        machine = Jq(call, holes, decisions)
        machine.is_raw = "r" in letters or "j" in letters
        machine.layout = Layout() if "c" in letters else machine.layout
        machine.line_end = "" if "j" in letters else "\n"
        machine.sorts_keys = "S" in letters
        machine.set_variables(texts)
        return machine

    def run(machine: Any) -> Callable[[], None]:
        def inside() -> None:
            if "n" in letters:
                machine.inputs = _jq_inputs(machine, letters, call.stdin, holes) if "input" in code else None
                machine.program(tree, None)
                return
            inputs = _jq_inputs(machine, letters, call.stdin, holes)
            for value in [Many(inputs)] if not isinstance(inputs, list) else inputs:
                machine.program(tree, value)

        return inside

    results = run_all(start, run)
    if "e" in letters:
        return [msgspec.structs.replace(result, status=None) for result in results]
    return results


def _jq_inputs(machine: Jq, letters: str, content: Parts | None, holes: Holes) -> Any:
    """Return the values that jq reads: lines with `-R`, else JSON."""
    if content is None:
        raise UnknownError
    if "R" in letters and "s" in letters:
        return [Written(content)]
    if "R" in letters and single_dump(content) is not None:
        return machine.entries_of(Written(content), "\n")
    text = with_placeholders(content, holes)
    if text is None:
        raise UnknownError
    if "R" in letters:
        return text.removesuffix("\n").split("\n")
    values = machine.values_of_json(text)
    return [values] if "s" in letters else values


def json_tool(call: Call) -> list[Result]:
    """Return what `python3 -m json.tool` writes of JSON that it reads."""
    layout = Layout(indent=4, colon=": ")

    def run(_: str, command: Call, holes: Holes) -> list[Result]:
        def start(decisions: tuple[bool, ...]) -> Jq:
            machine = Jq(command, holes, decisions)
            machine.layout = layout
            return machine

        def inside(machine: Any) -> Callable[[], None]:
            values = _jq_inputs(machine, "", command.stdin, holes)
            return lambda: machine.program(("input",), values[0] if len(values) == 1 else UNKNOWABLE)

        return run_all(start, inside)

    return run_text(call, (), run)


COMMANDS: Final[dict[str, Callable[[Call], list[Result]]]] = {
    "jq": jq,
    "gojq": jq,
    "lua": lua,
    "lua5.3": lua,
    "lua5.4": lua,
    "luajit": lua,
    "perl": perl,
    "php": php,
    "ruby": ruby,
}
