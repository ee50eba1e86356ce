"""Command lines of PHP."""

from __future__ import annotations

from agentdash.engine.detect.env_output.patterns import concrete
from agentdash.engine.detect.env_output.scripting.commands import file_or_input, run_grammar, versions
from agentdash.engine.detect.env_output.scripting.php.program import Php
from agentdash.engine.detect.env_output.streams import Call, Result


def command(call: Call) -> list[Result]:
    """Return what `php -r CODE` and `php FILE` write."""
    words = list(call.arguments)
    if found := versions(call, ("-v", "--version")):
        return found
    while words and concrete(words[0]) in ("-n", "-q"):
        words.pop(0)
    code = file_or_input(call, words)
    if len(words) == 2 and concrete(words[0]) == "-r":
        code = ("<?php ", *words[1])
    return run_grammar(call, code, Php, "php")
