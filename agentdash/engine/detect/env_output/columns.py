"""column and paste: lines in columns, beside each other, and on one line."""

from __future__ import annotations

import re
from itertools import zip_longest

import msgspec

from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.dump_maps import mapped, on_one_line
from agentdash.engine.detect.env_output.dumps import ENV_STYLE, Dump
from agentdash.engine.detect.env_output.inputs import (
    changed,
    input_of,
    is_noise,
    lines_of,
    operands,
    read_results,
    single_dump,
    without_break,
)
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Choice,
    Hole,
    Kind,
    Part,
    Parts,
    concrete,
    is_quiet,
    joined,
)
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result


def column(call: Call) -> list[Result]:
    """Return what `column -t` writes: lines with blanks between their parts; not every machine has it."""
    options = re.fullmatch(r"(?:-t ?)?(?:-s ?(?P<separator>=|\S)?)?(?: ?-t)?", call.line)
    if options is None or "-t" not in call.line:
        return UNKNOWN
    separator = options["separator"] or ""
    out: list[Part] = []
    if (table := _table(input_of(call, []), separator)) is not None:
        return [Result(out=table), not_found(call.name)]
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


def _table(content: Parts, separator: str) -> Parts | None:
    """Return lines of known words in columns; None for other text."""
    gaps = re.compile(f"({re.escape(separator)}+)" if separator else r"([ \t]+)")
    kinds = {part.kind for part in content if isinstance(part, Hole)}
    if (
        not content
        or not all(isinstance(p, str | Hole) for p in content)
        or kinds - {Kind.OTHER, Kind.DIGITS}
    ):
        return None
    blanks = Hole(Kind.BLANKS)
    out: list[Part] = []
    for line in lines_of(content) or []:
        cells: list[Part] = []
        for part in without_break(line):
            if isinstance(part, str):
                pieces: list[Part] = [*gaps.split(part)]
            else:  # the separator may stand in a value that is not known
                pieces = [Choice(((part,), (part, blanks, Hole(Kind.LINE)))) if separator else part]
            cells += [blanks if isinstance(p, str) and gaps.fullmatch(p) else p for p in pieces if p != ""]
        inner = cells[cells[:1] == [blanks] : len(cells) - (cells[-1:] == [blanks])]
        out += [*inner, Choice(((), (blanks,))), "\n"] if inner else []
    return joined(out)


def paste(call: Call) -> list[Result]:
    """Return what `paste -s` writes: the lines of its input on one line."""
    words = " ".join(concrete(a) or "?" for a in call.arguments if concrete(a) != "-")
    match = re.fullmatch(
        r"(?:-s ?)?(?:(?:-d ?|-sd ?|--delimiters=)(?P<separator>\\n|.))?(?: -s| --serial)?", words
    )
    content = input_of(call, [])
    is_serial = re.search(r"(?:^| )(?:-s|--serial)", words)
    if match is None or not is_serial:
        return UNKNOWN if is_serial else _beside(call)
    separator = match["separator"] or "\t"
    if (lines := lines_of(content)) is not None:
        joint = [part for line in lines for part in (*without_break(line), separator)]
        return [Result(out=joined((*joint[:-1], "\n")))]
    return [Result(out=lines_on_one(content, separator))]


def _beside(call: Call) -> list[Result]:
    """Return what `paste` writes of files of known lines: one line of each beside each other."""
    files = operands(call.arguments, "d")
    options = " ".join(concrete(a) or "?" for a in call.arguments if a not in files)
    match = re.fullmatch(r"(?:(?:-d ?|--delimiters=)(?P<separator>\\t|[^\\]))?", options)
    if match is None:
        return UNKNOWN
    if files in ([], [("-",)]):
        return [Result(out=input_of(call, []))]
    columns = [lines_of(input_of(call, [file])) for file in dict.fromkeys(files)]
    if any(lines is None for lines in columns) or len(columns) not in (1, len(files)):
        return UNKNOWN
    lines = [list(map(without_break, each or [])) for each in columns]
    if len(columns) == 1 and len(files) > 1:  # each `-` takes the next line
        if files[0] != ("-",):
            return UNKNOWN
        lines = [lines[0][start :: len(files)] for start in range(len(files))]
    separator = (match["separator"] or "\t").replace("\\t", "\t")
    out: list[Part] = []
    for row in zip_longest(*lines, fillvalue=()):
        out += [part for cell in row for part in (*cell, separator)][:-1]
        out.append("\n")
    return read_results(call, files, joined(out))


def lines_on_one(content: Parts, separator: str) -> Parts:
    """Return the lines of a dump with a separator between them."""
    if is_noise(content):
        return changed(content)
    dump = single_dump(content)
    if dump is None or dump.nul or dump.numbered or dump.style != ENV_STYLE:
        return (ANY,)
    return on_one_line(dump, separator)
