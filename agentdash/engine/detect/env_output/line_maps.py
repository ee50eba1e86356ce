"""Filters that write the lines of a dump in another form: `NAME=value` becomes `NAME: value`, and so on."""

from __future__ import annotations

import re

import msgspec

from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.dump_maps import mapped
from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.inputs import input_of, operands, single_dump
from agentdash.engine.detect.env_output.patterns import ANY, QUIET, Part, Parts, concrete, is_quiet, joined
from agentdash.engine.detect.env_output.streams import Call, Result

# ---------------------------------------------------------------- column, nl, tr


def column(call: Call) -> list[Result]:
    """Return what `column -t` writes: lines with blanks between their parts; not every machine has it."""
    words = [concrete(argument) or "?" for argument in call.arguments]
    options = re.fullmatch(r"(?:-t ?)?(?:-s ?(?P<separator>=|\S)?)?(?: ?-t)?", " ".join(words))
    if options is None or "-t" not in " ".join(words):
        return [Result(out=(ANY,), err=(ANY,), status=None)]
    separator = options["separator"] or ""
    out: list[Part] = []
    for part in input_of(call, []):
        if isinstance(part, Dump) and not part.nul and part.style.suffix == "":
            squeezed = msgspec.structs.replace(part.style, squeezed=True)
            out += mapped(
                msgspec.structs.replace(part, style=squeezed),
                lambda line: " ".join(line.replace(separator or " ", " ").split()),
            )
        else:
            out.append(QUIET if is_quiet((part,)) else ANY)
    return [Result(out=joined(out)), not_found(call.name)]


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
