"""Filters that write the lines of a dump in another form: `NAME=value` becomes `NAME: value`, and so on."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.dump_maps import LineMap, mapped
from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.inputs import input_of, operands, single_dump
from agentdash.engine.detect.env_output.patterns import ANY, QUIET, Part, Parts, concrete, is_quiet, joined
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.streams import Call, Result

# ---------------------------------------------------------------- sed

_SUBSTITUTION: Final = re.compile(r"s([/,|#:])((?:(?!\1)[^\\]|\\.)*)\1((?:(?!\1)[^\\]|\\.)*)\1([gp]?)")
_NAME_AND_VALUE: Final = re.compile(r"\^?(?:\\\(|\()[^()\\]*(?:\\\)|\))=(?:\\\(|\()\.\*(?:\\\)|\))\$?")

_DECLARATION: Final = re.compile(r"\^(?:declare|typeset|export) (?:-x )?")


def substitution(text: str) -> LineMap | None:
    """Return what `sed` does with `s/=/: /`, or with options and more of them before it.

    Only substitutions are known that leave the names of all variables as they are.
    """
    match = re.fullmatch(r"(?P<options>(?:-[nEr] )*)(?P<script>s.*)", text)
    if match is None:
        return None
    is_extended = re.search("[Er]", match["options"]) is not None
    is_silent = "n" in match["options"]
    steps: list[tuple[re.Pattern[str], str, int, bool]] = []
    at = 0
    script = match["script"]
    while at < len(script):
        found = _SUBSTITUTION.match(script, at)
        if found is None or (step := _step(found, is_extended=is_extended)) is None:
            return None
        steps.append(step)
        at = found.end()
        if at < len(script) and not (separator := re.compile(r"\s*;\s*").match(script, at)):
            return None
        at = separator.end() if at < len(script) and separator else at
    if is_silent and len(steps) > 1:
        return None

    def change(line: str) -> str | None:
        prints = not is_silent
        for pattern, replacement, count, prints_changed in steps:
            line, number = pattern.subn(replacement, line, count=count)
            if prints_changed and not is_silent:
                return None if number == 0 else "\n"  # it would be written twice
            prints = prints or bool(number and prints_changed)
        return line if prints else None

    return change


def _step(found: re.Match[str], *, is_extended: bool) -> tuple[re.Pattern[str], str, int, bool] | None:
    source, replacement, flags = found[2], found[3], found[4]
    if not (
        source in ("^", "=", "$")
        or _NAME_AND_VALUE.fullmatch(source)
        or (replacement == "" and _DECLARATION.fullmatch(source))
    ):
        return None
    pattern = compiled(source, "extended" if is_extended else "basic")
    if pattern is None or "&" in replacement or re.search(r"\\[^12t]", replacement):
        return None
    return pattern, replacement.replace("\\t", "\t"), 0 if flags == "g" else 1, flags == "p"


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
