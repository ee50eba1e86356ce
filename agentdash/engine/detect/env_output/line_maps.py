"""Filters that write the lines of a dump in another form: `NAME=value` becomes `NAME: value`, and so on."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import mapped
from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.inputs import input_of, lines_of, operands, single_dump
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Choice,
    Excerpt,
    Hole,
    Kind,
    Parts,
    concrete,
    is_quiet,
    joined,
)
from agentdash.engine.detect.env_output.streams import Call, Result

_NUMBERING: Final = re.compile(r"(?:(?:-b ?a|-w ?\d+|-n ?(?:ln|rn|rz)|-s ?[:.)\]]?[ \t]+)(?: |$))*")
"""Options of `nl` with which a number and blanks stand before each line, with a mark between them at most."""


def number_lines(call: Call) -> list[Result]:
    """Return what `nl` writes."""
    files = operands(call.arguments, "bwsn")
    content = input_of(call, files)
    options = " ".join(concrete(a) or "?" for a in call.arguments if a not in files)
    if _NUMBERING.fullmatch(options) and not files:
        return [Result(out=numbered(content))]
    return [Result(out=(QUIET,) if is_quiet(content) else (ANY,), err=(ANY,) if files else (), status=None)]


def numbered(content: Parts) -> Parts:
    """Return text with a number before each line."""
    match content:
        case ():
            return ()
        case (Excerpt(parts=parts) as excerpt,):
            return (msgspec.structs.replace(excerpt, parts=numbered(parts)),)
        case (Choice(options=options),):
            return (Choice(tuple(map(numbered, options))),)
        case _ if (dump := single_dump(content)) is not None and not dump.nul:
            return (msgspec.structs.replace(dump, numbered=True),)
        case _ if (lines := lines_of(content)) is not None:
            return joined(part for line in lines for part in (Hole(Kind.QUIET_LINE), *line))
        case _:
            return (QUIET,) if is_quiet(content) else (ANY,)


def replaced_sign(dump: Dump, replacement: str) -> Parts:
    """Return what `tr = ' '` makes of a dump."""
    return mapped(dump, lambda line: line.replace("=", replacement))


def with_ends(dump: Dump) -> Parts:
    """Return what `cat -A` makes of a dump."""
    return mapped(dump, lambda line: f"{line}$")
