"""diff and comm: the lines in which two environments differ."""

from __future__ import annotations

import re
from typing import Final

from agentdash.engine.detect.env_output.dumps import (
    ENV_STYLE,
    Dump,
    LineFilter,
    Presence,
    Shown,
    Style,
)
from agentdash.engine.detect.env_output.inputs import errors_reading, input_of, single_dump
from agentdash.engine.detect.env_output.patterns import Hole, Kind, Parts, concrete, errors_of
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result

_ABSENT: Final = Shown(Presence.ABSENT)
_EMPTY: Final = Dump(shown=(_ABSENT, _ABSENT))
_DIFFERENCES: Final = Hole(
    Kind.MARKED, exclude=("<", ">", "---", "\\", "diff ", "Only ", "Files ", "Binary ")
)
_UNIFIED: Final = Hole(Kind.MARKED, exclude=(" ", "+", "-", "@", "\\", "diff ", "Only ", "Files ", "Binary "))
_ANY_MARK: Final = {
    "<": re.compile(rf"^(?:{'|'.join(map(re.escape, _DIFFERENCES.exclude))}|\d+(?:,\d+)?[acd]\d)"),
    "-": re.compile(rf"^(?:{'|'.join(map(re.escape, _UNIFIED.exclude))})"),
}
"""The beginning of a line of `diff`, by one of its marks."""


def diff(call: Call) -> list[Result]:
    """Return what `diff` writes: lines with a mark before those of its files."""
    texts = [concrete(argument) or "" for argument in call.arguments]
    options = " ".join(text for text in texts if text.startswith("-") and text != "-")
    if not re.fullmatch(r"(?:-[uNrqabBwi]+|-U ?\d+| |--unified(?:=\d+)?|--brief)*", options):
        return UNKNOWN
    is_unified = re.search("u|U", options) is not None
    failed = Result(err=(*errors_of("diff"), Hole(Kind.QUIET)), status=2)
    found: list[Parts] = []
    if not re.search("-[a-zA-Z]*[qi]|--brief", options):
        found = [_marked(call, marks) for marks in (("-", "+") if is_unified else ("<", ">"),)]
    if found and found[0]:
        return [Result(), Result(out=found[0], status=1), failed]
    return [Result(), Result(out=(_UNIFIED if is_unified else _DIFFERENCES,), status=1), failed]


def _marked(call: Call, marks: tuple[str, str]) -> Parts:
    """Return the lines of the one file that shows flags, with its mark; nothing where both may show them."""
    dumps = _dumps(call)
    for kept, mark, other in ((1, marks[1], marks[0]), (0, marks[0], marks[1])):
        if dumps is None or not _is_plain(dumps) or _shown_lines(dumps[1 - kept]) != (_ABSENT, _ABSENT):
            continue
        blank = " " if mark in "<>" else ""
        style = Style(prefixes=(f"{mark}{blank}NAME=",), foreign=(f"{other}{blank}NAME=",))
        shown = _shown_lines(dumps[kept])
        is_partial = any(dump.partial for dump in dumps)
        marked = LineFilter(_ANY_MARK["<" if blank else "-"])
        return (Dump(shown=shown, style=style, filters=(marked,), partial=is_partial),)
    return ()


def _is_plain(dumps: tuple[Dump, Dump]) -> bool:
    return all(dump.style == ENV_STYLE and not dump.numbered for dump in dumps)


def comm(call: Call) -> list[Result]:
    """Return what `comm -13` and `comm -23` write: the lines that only one of two files has."""
    texts = [concrete(argument) or "" for argument in call.arguments]
    options = "".join(sorted({char for text in texts if text.startswith("-") for char in text}))
    dumps = _dumps(call)
    if dumps is None or options not in ("-13", "-23") or not _is_plain(dumps):
        return UNKNOWN
    kept, other = (dumps[1], dumps[0]) if options == "-13" else dumps
    first, second = (
        _only(shown, beside) for shown, beside in zip(_shown_lines(kept), _shown_lines(other), strict=True)
    )
    lines = Dump(shown=(first, second), partial=kept.partial or other.partial)
    return [Result(out=(lines,), err=errors_of("comm"), status=None)]


def _dumps(call: Call) -> tuple[Dump, Dump] | None:
    """Return what both files hold; None where that is not known."""
    files = [a for a in call.arguments if not (concrete(a) or "").startswith("-") or concrete(a) == "-"]
    found = [_EMPTY if (content := input_of(call, [file])) == () else single_dump(content) for file in files]
    if len(found) != 2 or errors_reading(call, files):
        return None
    first, second = found
    if first is None or second is None or first.nul or second.nul:
        return None
    return first, second


def _shown_lines(dump: Dump) -> tuple[Shown, Shown]:
    """Return what a dump shows of the flags behind its filters."""
    first, second = (
        _ABSENT if dump.required(number) is False else shown for number, shown in enumerate(dump.shown)
    )
    return first, second


def _only(shown: Shown, other: Shown) -> Shown:
    """Return what is left of a flag's line beside what another file shows."""
    if _ABSENT in (shown, other):
        return shown
    return Shown(Presence.UNKNOWN)
