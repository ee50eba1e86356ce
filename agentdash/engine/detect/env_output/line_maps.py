"""Filters that write the lines of a dump in another form: `NAME=value` becomes `NAME: value`, and so on."""

from __future__ import annotations

import msgspec

from agentdash.engine.detect.env_output.dump_maps import mapped
from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.inputs import input_of, operands, single_dump
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Parts,
    concrete,
    is_quiet,
)
from agentdash.engine.detect.env_output.streams import Call, Result


def number_lines(call: Call) -> list[Result]:
    """Return what `nl` writes."""
    files = operands(call.arguments, "bw")
    dump = single_dump(input_of(call, files))
    if (
        dump is None
        or dump.nul
        or any((concrete(a) or "?") not in ("-ba", "-b", "a") for a in call.arguments)
    ):
        content = input_of(call, files)
        if content == ():
            return [Result()]
        return [
            Result(out=(QUIET,) if is_quiet(content) else (ANY,), err=(ANY,) if files else (), status=None)
        ]
    return [Result(out=(msgspec.structs.replace(dump, numbered=True),))]


def replaced_sign(dump: Dump, replacement: str) -> Parts:
    """Return what `tr = ' '` makes of a dump."""
    return mapped(dump, lambda line: line.replace("=", replacement))


def with_ends(dump: Dump) -> Parts:
    """Return what `cat -A` makes of a dump."""
    return mapped(dump, lambda line: f"{line}$")
