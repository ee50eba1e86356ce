"""What awk writes of `ENVIRON`, of variables that it is given, and of the lines that it reads."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.editors import awk_filter
from agentdash.engine.detect.env_output.inputs import errors_reading, input_of
from agentdash.engine.detect.env_output.patterns import ANY, Part, Parts, concrete, joined
from agentdash.engine.detect.env_output.placeholders import refilled, with_placeholders
from agentdash.engine.detect.env_output.scripting.awk.code import Awk
from agentdash.engine.detect.env_output.scripting.awk.syntax import parse_awk
from agentdash.engine.detect.env_output.scripting.machine import run_all
from agentdash.engine.detect.env_output.scripting.values import SURPRISES
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError

_WRITING: Final = re.compile(r"[>|]|system")
"""What a program needs to write to a file, or to start another one."""
_NUL_RECORDS: Final = re.compile(r'^\s*BEGIN\s*\{\s*RS\s*=\s*"\\(?:0|000|x00)"\s*;?\s*\}\s*;?')


class _Options(msgspec.Struct):
    """The command line of awk."""

    program: str
    files: list[Parts]
    variables: dict[str, Any]
    is_nul: bool = False


def command(call: Call) -> list[Result]:
    """Return what awk writes."""
    holes: dict[str, Part] = {}
    options = _options(call, holes)
    if options is None:
        return UNKNOWN
    content = input_of(call, options.files)
    state = None if _WRITING.search(options.program) else call.state
    if not options.variables.keys() - {"FS"} and not options.files and call.stdin is not None:
        separator = options.variables.get("FS", "")
        if (results := awk_filter(call, options.program, separator=separator)) is not None:
            return [msgspec.structs.replace(result, state=state) for result in results]
    try:
        results = _results(call, options, content, holes)
    except (UnknownError, *SURPRISES):
        return [Result(out=(ANY,), err=(ANY,), status=None, state=state)]
    errors = errors_reading(call, options.files)
    found: list[Result] = []
    for result in results:
        out, err = refilled(result.out, holes), joined((*refilled(result.err, holes), *errors))
        status = None if errors else result.status
        found.append(Result(out=out, err=err, status=status, state=result.state))
    return [*found, msgspec.structs.replace(not_found(call.name), state=call.state)]


def _options(call: Call, holes: dict[str, Part]) -> _Options | None:
    words = list(call.arguments)
    found = _Options(program="", files=[], variables={})
    while words and (text := concrete(words[0][:1])) is not None and text.startswith("-"):
        word = words.pop(0)
        if concrete(word) == "--":
            break
        if text.startswith("-F"):
            separator = text[2:] or (concrete(words.pop(0)) or "?" if words else "?")
            found.variables["FS"] = separator.replace("\\t", "\t")
        elif text.startswith("-v"):
            given = word if len(text) > 2 else words.pop(0) if words else ()
            if not _add_variable(found, with_placeholders(given, holes)):
                return None
        elif text == "-f" and words and not found.program:
            path = words.pop(0)
            code = call.stdin if concrete(path) == "-" else dict(call.state.files).get(path)
            found.program = concrete(code or ()) or ""
            if not found.program:
                return None
        else:
            return None
    if not found.program:
        if not words or (program := concrete(words.pop(0))) is None:
            return None
        found.program = program
    if len(found.variables.get("FS", "")) > 1:
        return None
    found.is_nul = found.is_nul or _NUL_RECORDS.match(found.program) is not None
    found.program = _NUL_RECORDS.sub("", found.program)
    found.files = words
    return found


def _add_variable(options: _Options, written: str | None) -> bool:
    """Add a variable of `-v`; return False where it is not known."""
    match = re.fullmatch(r"(?:-v)?([A-Za-z_]\w*)=(.*)", written or "", re.DOTALL)
    if match is not None and match[1] == "RS" and match[2] in ("\\0", "\\000", "\\x00"):
        options.is_nul = True
        return True
    if match is None or "\\" in match[2] or match[1] in ("RS", "ORS", "IGNORECASE"):
        return False
    options.variables[match[1]] = match[2]
    return True


def _results(call: Call, options: _Options, content: Parts, holes: dict[str, Part]) -> list[Result]:
    rules = parse_awk(options.program)

    def run(machine: Awk) -> None:
        machine.rules = rules
        machine.set_variables(options.variables)
        machine.program(content, is_nul=options.is_nul)

    return run_all(Awk, call, holes, run)
