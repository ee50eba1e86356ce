"""Commands of the shell that read: `read` and `mapfile`."""

from __future__ import annotations

import re

import msgspec

from agentdash.engine.detect.env_output.declarations import (
    NAME,
    in_shells,
)
from agentdash.engine.detect.env_output.dumps import (
    FLAGS,
    Dump,
)
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    Words,
    concrete,
    joined,
)
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.world import UnreadableError


def read_array(call: Call) -> list[Result]:
    """Run `mapfile`: the lines of its input, or its NUL-terminated entries, become an array."""
    words = call.words
    match = re.fullmatch(
        r"(?:(?P<t1>-t) )?(?:-d ?(?P<nul>\\0|) )?(?:(?P<t2>-t) )?(?P<name>[A-Za-z_]\w*)",
        " ".join("?" if word is None else word for word in words),
    )
    if match is None or match["name"] in FLAGS:
        raise UnreadableError
    options: tuple[Parts | None, ...] = (call.stdin,)
    if call.stdin is not None and len(call.stdin) == 1 and isinstance(choice := call.stdin[0], Choice):
        options = choice.options
    results: list[Result] = []
    for content in options:
        elements = _elements_of(content, is_nul=match["nul"] is not None)
        if not (match["t1"] or match["t2"]):
            elements = None
        state = call.state.with_variable(match["name"], (ANY,)).with_array(match["name"], elements)
        state = msgspec.structs.replace(state, dialect=state.dialect or "bash")  # no other shell has it
        results.append(Result(state=state))
    return in_shells(call, results, "bash")


def _elements_of(content: Parts | None, *, is_nul: bool) -> tuple[Parts, ...] | None:
    """Return the lines of a text as elements of an array; None where they are not known."""
    if content is None:
        return None
    if len(content) == 1 and isinstance(content[0], Names):
        return None if is_nul else ((Words(content),),)
    if len(content) == 1 and isinstance(dump := content[0], Dump):
        return ((Words(content),),) if dump.nul is is_nul and not dump.separator else None
    if is_nul or not all(
        isinstance(p, str) or (isinstance(p, Hole) and p.kind is Kind.OTHER) for p in content
    ):
        return None
    lines: list[list[Part]] = [[]]
    for part in content:
        pieces = part.split("\n") if isinstance(part, str) else [part]
        lines[-1].append(pieces[0])
        lines += [[piece] for piece in pieces[1:]]
    return tuple(joined(line) for line in (lines if joined(lines[-1]) else lines[:-1]))


def read(call: Call) -> list[Result]:
    """Run `read`."""
    names = call.words
    state = call.state
    is_raw = names[:1] == ["-r"]
    variables = [name if name and NAME.fullmatch(name) else None for name in names[is_raw:]]
    if variables and None not in variables and (is_raw or not _has_backslash(call.stdin or ())):
        fields = _fields_of(call, len(variables))
        if fields is not None:
            for name, value in zip(variables, fields, strict=True):
                state = state.with_variable(name or "", value)
            return [Result(state=state)]
    array = names[-1] if len(names) in (2, 3) else None
    options = " ".join(name or "?" for name in names[:-1])
    if array and NAME.fullmatch(array) and options in ("-a", "-ra", "-ar", "-r -a"):
        return _read_elements(call, array)
    for name in names or ["REPLY"]:
        if name is None:
            raise UnreadableError
        if NAME.fullmatch(name):
            state = state.with_variable(name, (ANY,))
    return [Result(status=None, state=state)]


def _has_backslash(content: Parts) -> bool:
    return any("\\" in part for part in content if isinstance(part, str))


def _read_elements(call: Call, name: str) -> list[Result]:
    """Run bash's `read -ra name`."""
    line = concrete(call.stdin or (ANY,))
    separators = concrete(dict(call.state.variables).get("IFS", (" \t\n",)) or ())
    elements: tuple[Parts, ...] | None = None
    if line is not None and separators is not None and "\n" in line:
        text = line.partition("\n")[0]
        if separators.strip(" \t\n") == "":
            elements = tuple((field,) for field in text.split())
        elif len(separators) == 1:
            fields = text.removesuffix(separators).split(separators) if text else []
            elements = tuple((field,) if field else () for field in fields)
    state = call.state.with_variable(name, (ANY,)).with_array(name, elements)
    status = 0 if elements is not None else None
    return in_shells(call, [Result(status=status, state=state)], "bash")


def _fields_of(call: Call, number: int) -> list[Parts] | None:
    """Return what `read -r` gives to each of its variables; None where that is not known."""
    separators = concrete(dict(call.state.variables).get("IFS", (" \t\n",)) or ())
    line: list[Part] = []
    for part in call.stdin or ():
        if isinstance(part, str) and "\n" in part:
            line.append(part.partition("\n")[0])
            break
        if not isinstance(part, str) and not (
            isinstance(part, Hole) and part.kind in (Kind.OTHER, Kind.DIGITS)
        ):
            return None
        line.append(part)
    else:
        return None  # its status is not 0
    if separators == "":
        return [joined(line), *[()] * (number - 1)] if number == 1 else None
    if separators is None or len(separators.strip(" \t\n")) > 1:
        return None
    return split_line(joined(line), separators, number)


def split_line(line: Parts, separators: str, number: int) -> list[Parts]:
    """Return the fields of a line; the last one takes the rest of it."""
    blanks = separators if not separators.strip(" \t\n") else ""
    separator = re.compile(f"[{re.escape(blanks)}]+" if blanks else re.escape(separators.strip(" \t\n")))
    fields: list[Parts] = []
    current: list[Part] = []
    for part in line:
        rest = part
        while isinstance(rest, str) and len(fields) < number - 1 and (match := separator.search(rest)):
            if match.start() or current or not blanks:
                fields.append(joined((*current, rest[: match.start()])))
                current = []
            rest = rest[match.end() :]
        current.append(rest)
    last = joined(current)
    if blanks and last and isinstance(last[-1], str):
        last = joined((*last[:-1], last[-1].rstrip(blanks)))
    if blanks and last and isinstance(last[0], str):
        last = joined((last[0].lstrip(blanks), *last[1:]))
    return [*fields, last, *[()] * (number - len(fields) - 1)]
