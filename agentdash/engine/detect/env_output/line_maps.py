"""Filters that write the lines of a dump in another form: `NAME=value` becomes `NAME: value`, and so on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.builtins import not_found
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


# ---------------------------------------------------------------- awk

_FIELD: Final = re.compile(r"\$(\d)|(NR)\b|\"((?:[^\"\\]|\\.)*)\"")
_PATTERNS: Final = (
    re.compile(r"(?P<negated>!?)\s*/(?P<regex>[^/]*)/"),
    re.compile(r"\$(?P<field>[01])\s*(?P<operator>!?~)\s*/(?P<regex>[^/]*)/"),
    re.compile(r'\$(?P<field>[01])\s*(?P<operator>[!=]=)\s*"(?P<text>[^"\\]*)"'),
    re.compile(r'index\(\s*\$(?P<field>[01])\s*,\s*"(?P<part>[^"\\]*)"\s*\)(?P<place>\s*(?:==\s*1|>\s*0))?'),
)


def awk_program(program: str, separator: str) -> LineMap | None:
    """Return what `awk -F= '/CODEX/ { print $1 ": " $2 }'` does with a line; None for other programs."""
    match = re.fullmatch(r"(?P<pattern>[^{}]*?)\s*(?:\{(?P<action>[^{}]*)\})?\s*", program.strip(), re.DOTALL)
    if match is None or (separator and len(separator) != 1):
        return None
    text = match["pattern"].strip()
    joins_any = "||" in text
    if joins_any and "&&" in text:
        return None
    tests = [_test(test.strip()) for test in re.split(r"&&|\|\|", text)] if text else []
    action = (match["action"] if match["action"] is not None else "print").strip().rstrip(";").strip()
    write = _action(action)
    if write is None or any(test is None for test in tests):
        return None

    def change(line: str) -> str | None:
        fields = [line, *(line.split(separator) if separator else line.split())]
        found = [test(fields) for test in tests if test]
        return write(fields) if (any(found) if joins_any else all(found)) else None

    return change


def _test(text: str) -> Callable[[list[str]], bool] | None:
    match = next((found for pattern in _PATTERNS if (found := pattern.fullmatch(text))), None)
    if match is None:
        return None
    groups = match.groupdict()
    field = int(groups.get("field") or 0)
    is_negated = (groups.get("negated") or groups.get("operator") or "").startswith("!")
    if groups.get("regex") is not None:
        pattern = compiled(groups["regex"], "extended")
        if pattern is None:
            return None
        return lambda fields: (pattern.search(fields[field]) is None) is is_negated
    if groups.get("text") is not None:
        return lambda fields: (fields[field] == groups["text"]) is not is_negated
    at_start = "1" in (groups.get("place") or "")
    part = groups["part"]
    return lambda fields: fields[field].startswith(part) if at_start else part in fields[field]


def _action(text: str) -> Callable[[list[str]], str | None] | None:
    if match := re.fullmatch(r"print(?:\s+(.*))?", text, re.DOTALL):
        pieces = [_pieces(part) for part in _arguments(match[1] or "$0")]
        if any(piece is None for piece in pieces):
            return None
        return lambda fields: " ".join("".join(_text(p, fields) for p in piece or ()) for piece in pieces)
    if match := re.fullmatch(r'printf\s*\(?\s*"((?:[^"\\]|\\.)*)\\n"\s*,(.*?)\)?', text, re.DOTALL):
        template = match[1].replace("\\t", "\t")
        pieces = [_pieces(part) for part in _arguments(match[2])]
        if any(piece is None for piece in pieces) or not re.fullmatch(r"(?:[^%\\]|%-?\d*s)*", template):
            return None
        if template.count("%") != len(pieces):
            return None
        return lambda fields: (
            template % tuple("".join(_text(p, fields) for p in piece or ()) for piece in pieces)
        )
    return None


def _arguments(text: str) -> list[str]:
    return re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+', text) or [text]


def _pieces(text: str) -> list[tuple[str, str, str]] | None:
    """Return the fields and texts that are joined; None for other expressions."""
    if _FIELD.sub("", text).strip():
        return None
    return _FIELD.findall(text)


def _text(piece: tuple[str, str, str], fields: list[str]) -> str:
    field, number, text = piece
    if field:
        return fields[int(field)] if int(field) < len(fields) else ""
    return "\n" if number else text.replace("\\t", "\t").replace('\\"', '"')


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
