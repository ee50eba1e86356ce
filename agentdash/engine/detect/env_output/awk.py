"""What awk writes of `ENVIRON`, of variables that it is given, and of the lines that it reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.awk_code import Awk
from agentdash.engine.detect.env_output.awk_syntax import parse_awk
from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.dump_maps import common_style, mapped, mapped_lines
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Style
from agentdash.engine.detect.env_output.editors import awk_filter
from agentdash.engine.detect.env_output.inert import UNKNOWN
from agentdash.engine.detect.env_output.inputs import errors_reading, input_of, lines_of, single_dump
from agentdash.engine.detect.env_output.patterns import ANY, Hole, Kind, Part, Parts, concrete, joined
from agentdash.engine.detect.env_output.placeholders import refilled, with_placeholders
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.env_output.world import shown

_NUL_RECORDS: Final = re.compile(r'^\s*BEGIN\s*\{\s*RS\s*=\s*"\\(?:0|000|x00)"\s*;?\s*\}\s*;?')
_MARK: Final = "Zhole9999Z"
"""Stands for the value of any variable in a loop over the environment."""


class _Options(msgspec.Struct):
    """The command line of awk."""

    program: str
    files: list[Parts]
    variables: dict[str, Any]
    is_nul: bool = False


def awk(call: Call) -> list[Result]:
    """Return what awk writes."""
    holes: dict[str, Part] = {}
    options = _options(call, holes)
    if options is None:
        return UNKNOWN
    content = input_of(call, options.files)
    if not options.variables.keys() - {"FS"} and not options.files and call.stdin is not None:
        separator = options.variables.get("FS", "")
        if (results := awk_filter(call, options.program, separator=separator)) is not None:
            return results
    try:
        out = _written(call, options, content, holes)
    except (UnknownError, RecursionError):
        return [Result(out=(ANY,), err=(ANY,), status=None)]
    errors = errors_reading(call, options.files)
    return [Result(out=out, err=errors, status=None if errors else 0), not_found(call.name)]


def _options(call: Call, holes: dict[str, Part]) -> _Options | None:
    words = list(call.arguments)
    variables: dict[str, Any] = {}
    while words and (text := concrete(words[0][:1])) is not None and text.startswith("-"):
        word = words.pop(0)
        if concrete(word) == "--":
            break
        if text.startswith("-F"):
            separator = text[2:] or (concrete(words.pop(0)) or "?" if words else "?")
            variables["FS"] = separator.replace("\\t", "\t")
        elif text.startswith("-v"):
            given = word if len(text) > 2 else words.pop(0) if words else ()
            written = with_placeholders(given, holes)
            match = re.fullmatch(r"(?:-v)?([A-Za-z_]\w*)=(.*)", written or "", re.DOTALL)
            if match is None or "\\" in match[2]:
                return None
            variables[match[1]] = match[2]
        else:
            return None
    if not words or (program := concrete(words[0])) is None or len(variables.get("FS", "")) > 1:
        return None
    is_nul = _NUL_RECORDS.match(program) is not None
    return _Options(_NUL_RECORDS.sub("", program), words[1:], variables, is_nul)


def _written(call: Call, options: _Options, content: Parts, holes: dict[str, Part]) -> Parts:
    environment = _Environ(call, holes)
    program = Awk(
        parse_awk(options.program),
        options.variables,
        environment=environment.value,
        over_environment=environment.loop,
    )
    begun = refilled((program.begun(),), holes)
    if not program.reads_lines:
        return begun
    middle = _lines(content, program.line, is_nul=options.is_nul)
    return joined((*begun, *middle, *refilled((program.ended(),), holes)))


def _lines(content: Parts, change: Callable[[str], str | None], *, is_nul: bool) -> Parts:
    dump = single_dump(content)
    if dump is not None and dump.nul is is_nul:
        return mapped(msgspec.structs.replace(dump, nul=False), change)
    lines = lines_of(content)
    if lines is None or is_nul:
        raise UnknownError
    return mapped_lines(lines, change)


class _Environ:
    """`ENVIRON`: values of flags as words that stand for them."""

    def __init__(self, call: Call, holes: dict[str, Part]) -> None:
        self._environment = call.environment
        self._holes = holes
        self._looped = ""
        """The flag whose value is not looked at, in a loop over all variables."""

    def value(self, name: str) -> str | None:
        """Return the value of a variable, None where it is unset."""
        if name not in FLAGS:
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.ANY)
            return mark
        if name == self._looped:
            return _MARK
        if (value := self._environment[name]) is None:
            return None
        if (text := with_placeholders(value, self._holes)) is None:
            raise UnknownError
        return text

    def loop(self, body: Callable[[str], str]) -> str:
        """Return a word for what a loop over all variables prints, of what it prints of one name."""
        styles: list[Style] = []
        kept: list[Parts | None] = []
        for name in FLAGS:
            self._looped = name
            line = body(name)
            self._looped = ""
            before, mark, after = line.partition(_MARK)
            if not line:
                kept.append(None)
                continue
            if not mark or name not in before or "\n" in before or after.find("\n") != len(after) - 1:
                raise UnknownError
            styles.append(Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1]))
            kept.append(self._environment[name])
        style = common_style(styles)
        if style is None:
            raise UnknownError
        word = f"Zhole{len(self._holes)}Z"
        self._holes[word] = Dump(shown=(shown(kept[0]), shown(kept[1])), style=style)
        return word
