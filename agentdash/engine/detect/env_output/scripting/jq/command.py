"""Command lines of jq, and of `python3 -m json.tool`."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.inputs import single_dump
from agentdash.engine.detect.env_output.patterns import Parts, concrete
from agentdash.engine.detect.env_output.placeholders import with_placeholders
from agentdash.engine.detect.env_output.scripting.commands import Holes, run_text, versions
from agentdash.engine.detect.env_output.scripting.jq.library import Many
from agentdash.engine.detect.env_output.scripting.jq.program import Jq
from agentdash.engine.detect.env_output.scripting.jq.syntax import parse_jq
from agentdash.engine.detect.env_output.scripting.json_text import Layout
from agentdash.engine.detect.env_output.scripting.machine import run_all
from agentdash.engine.detect.env_output.scripting.values import UNKNOWABLE, Written
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError

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


def command(call: Call) -> list[Result]:
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

    def run(machine: Jq) -> None:
        machine.is_raw = "r" in letters or "j" in letters
        machine.layout = Layout() if "c" in letters else machine.layout
        machine.line_end = "" if "j" in letters else "\n"
        machine.sorts_keys = "S" in letters
        machine.set_variables(texts)
        if "n" in letters:
            machine.inputs = _jq_inputs(machine, letters, call.stdin, holes) if "input" in code else None
            machine.program(tree, None)
            return
        inputs = _jq_inputs(machine, letters, call.stdin, holes)
        for value in [Many(inputs)] if not isinstance(inputs, list) else inputs:
            machine.program(tree, value)

    results = run_all(Jq, call, holes, run)
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

    def run(_: str, command: Call, holes: Holes) -> list[Result]:
        def inside(machine: Jq) -> None:
            machine.layout = Layout(indent=4, colon=": ")
            values = _jq_inputs(machine, "", command.stdin, holes)
            machine.program(("input",), values[0] if len(values) == 1 else UNKNOWABLE)

        return run_all(Jq, command, holes, inside)

    return run_text(call, (), run)
