"""Command lines of Ruby."""

from __future__ import annotations

import re

from agentdash.engine.detect.env_output.inputs import input_of
from agentdash.engine.detect.env_output.patterns import Parts, concrete
from agentdash.engine.detect.env_output.scripting.commands import Holes, file_or_input, run_text, versions
from agentdash.engine.detect.env_output.scripting.grammars import parse_program
from agentdash.engine.detect.env_output.scripting.machine import run_all
from agentdash.engine.detect.env_output.scripting.ruby.library import LIBRARIES
from agentdash.engine.detect.env_output.scripting.ruby.program import Ruby
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result


def command(call: Call) -> list[Result]:
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

    def run(machine: Ruby) -> None:
        if "n" in letters:
            machine.over_lines(root, content)
        else:
            machine.program(root)

    return run_all(Ruby, call, holes, run)
