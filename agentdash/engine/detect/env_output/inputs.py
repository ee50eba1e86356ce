"""What programs read, and what is known of it: shared by the filters."""

from __future__ import annotations

import msgspec

from agentdash.engine.detect.env_output.dumps import Dump, LineFilter
from agentdash.engine.detect.env_output.files import file_content, shows_status
from agentdash.engine.detect.env_output.patterns import (
    QUIET,
    Excerpt,
    Hole,
    Kind,
    Part,
    Parts,
    Trimmed,
    concrete,
    errors_of,
    is_quiet,
    joined,
)
from agentdash.engine.detect.env_output.records import Record
from agentdash.engine.detect.env_output.streams import Call, Result


def input_of(call: Call, files: list[Parts]) -> Parts:
    """Return what a program reads: its files, or standard input."""
    if not files:
        return call.stdin if call.stdin is not None else (QUIET,)
    parts: list[Part] = []
    for path in files:
        if concrete(path) == "-":
            parts += call.stdin if call.stdin is not None else (QUIET,)
        else:
            parts += file_content(path, call.state, call.environment)
    return joined(parts)


def errors_reading(call: Call, files: list[Parts]) -> Parts:
    """Return what is written where files cannot be read."""
    known = dict(call.state.files)
    safe = all(path in known or concrete(path) == "-" or _is_always_there(path) for path in files)
    return () if safe else errors_of(call.name)


def read_results(call: Call, files: list[Parts], out: Parts) -> list[Result]:
    """Return the results of a program that writes something of what it reads; files may be missing."""
    errors = errors_reading(call, files)
    return [Result(out=out, err=errors, status=None if errors else 0)]


def _is_always_there(path: Parts) -> bool:
    text = concrete(path)
    return text in ("/proc/self/environ", "/proc/self/status", "/dev/null") or path[:1] == ("/proc/",)


def is_noise(content: Parts) -> bool:
    """Return whether all that is known of a text is that no flag is named in it."""
    return all(part == "\n" if isinstance(part, str) else is_quiet((part,)) for part in content)


def changed(content: Parts) -> Parts:
    """Return what a program makes of noise that changes lines."""
    return (QUIET,) if shows_status(content) else content


def single_dump(content: Parts) -> Dump | None:
    """Return a dump that is all of a text, None for other texts."""
    match content:
        case (Trimmed(parts=parts),):
            content = parts
        case (Trimmed(parts=(Dump(whole=True),) as parts), "\n"):
            content = parts
        case (Excerpt(parts=parts),):
            dump = single_dump(parts)
            return dump and msgspec.structs.replace(dump, partial=True, some=False)
        case (Dump(nul=True) as dump, "\n"):
            return dump
        case (Record() as record,) | (Record() as record, "\n"):
            return record.lines
        case _:
            pass
    return (
        content[0]
        if len(content) == 1 and isinstance(content[0], Dump) and not content[0].separator
        else None
    )


def lines_of(content: Parts) -> list[Parts] | None:
    """Return text as lines, each with its line break; None where it is not known where lines end."""
    lines: list[Parts] = []
    current: list[Part] = []
    for part in content:
        if isinstance(part, str):
            for piece in part.splitlines(keepends=True) if "\r" not in part else [part]:
                current.append(piece)
                if piece.endswith("\n"):
                    lines.append(tuple(current))
                    current = []
        elif isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS, Kind.QUIET_LINE, Kind.LINE):
            current.append(part)
        else:
            return None
    if current:
        lines.append((*current, "\n"))
    return lines


def without_break(line: Parts) -> Parts:
    """Return a line without the line break at its end."""
    match line:
        case (*before, str() as last):
            return joined((*before, last.removesuffix("\n")))
        case _:
            return line


def filtered(dump: Dump, line_filter: LineFilter, *, partial: bool = False) -> Dump:
    """Return a dump behind one more filter; with `partial` lines may be missing."""
    return msgspec.structs.replace(
        dump, filters=(*dump.filters, line_filter), partial=dump.partial or partial
    )


def operands(arguments: tuple[Parts, ...], with_value: str) -> list[Parts]:
    """Return the arguments that are no options, and no values of options."""
    found: list[Parts] = []
    skips = False
    for argument in arguments:
        text = concrete(argument)
        if skips:
            skips = False
        elif text is not None and text.startswith("-") and len(text) > 1:
            skips = len(text) == 2 and text[1] in with_value
        else:
            found.append(argument)
    return found
