"""`echo` and `printf`."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.dump_maps import has_whole_words, is_piece_of_line, mapped, spread
from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    Trimmed,
    Words,
    alternatives,
    concrete,
    either,
    errors_of,
    joined,
)
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result

_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
}
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<letter>[abefnrtv\\])|(?P<octal>0?[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2}))"
)
_CONVERSION: Final = re.compile(
    r"%(?:%|(?P<flags>[-#0 +]*)(?P<width>\d*|\*)(?:\.(?P<precision>\d*|\*))?(?P<type>[a-zA-Z]))"
)
_PLAIN: Final = re.compile(r"[\w./:=@%+,-]+")
_MAX_ROUNDS: Final = 100
_MAX_WIDTH: Final = 60
"""Characters of a padded value."""


def echo(call: Call) -> list[Result]:
    """Return what `echo` writes: shells differ in options and backslashes."""
    arguments = list(call.arguments)
    options = ""
    skipped: list[str] = []
    while arguments and (text := concrete(arguments[0])) and re.fullmatch(r"-[neE]+", text):
        options += text[1:]
        skipped.append(text)
        arguments.pop(0)
    end: Parts = () if "n" in options else ("\n",)
    plain = _spaced(arguments)
    readings: list[Parts] = [(*plain, *end)]
    if any(isinstance(part, str) and "\\" in part for part in plain):
        decoded = _decoded(plain)
        readings = [(*decoded, *end)] if "e" in options else [(*plain, *end), (*decoded, *end)]
    if "e" in options or "E" in options:  # dash writes these options, and decodes escapes always
        kept = [option for option in skipped if option != "-n"]
        readings.append((" ".join(kept), *((" ",) if plain else ()), *_decoded(plain), *end))
    if arguments and concrete(arguments[0]) == "-" and call.state.dialect in ("", "zsh"):
        readings.append((*_spaced(arguments[1:]), *end))  # the end of options in zsh
    return [Result(out=either(map(joined, readings)))]


def _spaced(arguments: list[Parts]) -> Parts:
    parts: list[Part] = []
    for number, argument in enumerate(arguments):
        before = (" ",) if number else ()
        match argument:
            case (Words(parts=inner),):
                words = spread(inner)
                parts.append(Choice(((*before, *words), words)))  # without the blank where there are none
            case _:
                parts += (*before, *argument)
    return joined(parts)


def _decoded(parts: Parts) -> Parts:
    return joined(_ESCAPE.sub(_character, part) if isinstance(part, str) else part for part in parts)


def _character(match: re.Match[str]) -> str:
    if match["letter"]:
        return _ESCAPES[match["letter"]]
    return chr(int(match["octal"], 8) & 0xFF if match["octal"] else int(match["hex"], 16))


def printf(call: Call) -> list[Result]:
    """Return what `printf` writes; with `-v` it assigns."""
    arguments = list(call.arguments)
    name = None
    if len(arguments) >= 2 and concrete(arguments[0]) == "-v":
        name = concrete(arguments[1])
        del arguments[:2]
        if name is None:
            return UNKNOWN
    if arguments and concrete(arguments[0]) == "--":
        arguments.pop(0)
    if not arguments:
        return [Result(status=2, err=(ANY,))]
    out = _formatted(arguments[0], arguments[1:])
    if name is not None:
        assigned = [Result(state=call.state.with_variable(name, out))] if call.state.dialect != "dash" else []
        message: Parts = (Hole(Kind.QUIET_LINE), "printf: ", Hole(Kind.QUIET_LINE), "\n")
        unknown = [Result(err=message, status=2)] if call.state.dialect not in ("bash", "zsh") else []
        return [*assigned, *unknown]
    numbers = re.search(r"%[^a-zA-Z%]*[diufegxXo]", concrete(call.arguments[0]) or "%d") is not None
    return [Result(out=out, err=errors_of("printf") if numbers else (), status=None if numbers else 0)]


def _formatted(template: Parts, arguments: list[Parts]) -> Parts:
    if not all(isinstance(part, str) for part in template):
        text = "".join(part for part in template if isinstance(part, str))
        return _decoded(template) if "%" not in text and not arguments else (ANY,)
    text = concrete(template) or ""
    match arguments:
        case [(Words(parts=(Dump() as dump,) | (Trimmed(parts=(Dump() as dump,)),)) as listed,)] if (
            text.count("%") == 1 and "%s" in text and (not listed.is_split or has_whole_words((dump,)))
        ):
            return _lines_by_format(text, dump)
        case [(Words(parts=(Names() as names,)),)] if text in ("%s\\n", "%s\n"):
            return (names,) if True in names.present else (Choice(((names,), ("\n",))),)
        case _:
            pass
    rest = list(arguments)
    if len(rest) == 1 and rest[0] and isinstance(words := rest[0][0], Words):
        match words.parts:
            case (Trimmed(parts=(Choice(options=options),)),) | (Choice(options=options),):
                each = [msgspec.structs.replace(words, parts=option) for option in options]
                found = [_formatted(template, [(one,)] if one.parts else []) for one in each]
                return (Choice(tuple(found)),)
            case _:
                pass
    parts: list[Part] = []
    for _ in range(_MAX_ROUNDS):
        before = len(rest)
        parts += _round(text, rest)
        if not rest or len(rest) == before:
            return joined(parts)
    return (ANY,)


def _lines_by_format(template: str, dump: Dump) -> Parts:
    """Return what `printf '%s\\n' "${lines[@]}"` writes of the lines of a dump."""
    before, _, after = _ESCAPE.sub(_character, template).partition("%s")
    if not after.endswith("\n") or "\n" in before + after[:-1]:
        return (ANY,)
    lines = mapped(msgspec.structs.replace(dump, nul=False), lambda line: f"{before}{line}{after[:-1]}")
    if True in (dump.required(0), dump.required(1)):
        return lines
    return (Choice((lines, (before + after,))),)


def _round(template: str, rest: list[Parts]) -> list[Part]:
    """Return one pass over the format; takes the arguments that it uses."""
    parts: list[Part] = []
    at = 0
    for match in _CONVERSION.finditer(template):
        parts.append(_ESCAPE.sub(_character, template[at : match.start()].replace('\\"', '"')))
        at = match.end()
        if match[0] == "%%":
            parts.append("%")
        elif "*" in (match["width"], match["precision"]):
            parts.append(ANY)
            rest.clear()
        else:
            parts += _converted(match, rest.pop(0) if rest else ())
    parts.append(_ESCAPE.sub(_character, template[at:].replace('\\"', '"')))
    return parts


def _converted(match: re.Match[str], argument: Parts) -> Parts:
    if options := alternatives(argument):
        return (Choice(tuple(_converted(match, option) for option in options)),)
    text = concrete(argument)
    kind = match["type"]
    if kind == "q":
        if text == "":
            return ("''",)
        if text is not None:
            return argument if _PLAIN.fullmatch(text) else (ANY,)
        return argument if all(isinstance(p, str) or p == _other(p) for p in argument) else (ANY,)
    if kind in "diu" and text is not None and (text == "" or text.isdecimal()):
        return (str(int(text or "0")),) if not (match["flags"] or match["width"]) else (ANY,)
    if kind not in "sb" or (
        kind == "b" and text is None and not all(isinstance(p, str) or _other(p) for p in argument)
    ):
        return (ANY,)
    if kind == "b":
        argument = _decoded(argument)
        text = concrete(argument)
    if not (match["width"] or match["precision"]):
        return argument
    width = int(match["width"] or 0)
    is_left = "-" in match["flags"]
    if text is None:
        return _padded(argument, width, is_left=is_left) if not match["precision"] else (ANY,)
    if match["precision"]:
        text = text[: int(match["precision"])]
    return (text.ljust(width) if is_left else text.rjust(width),)


def _padded(argument: Parts, width: int, *, is_left: bool) -> Parts:
    """Return text of unknown length with as many blanks beside it as it may need."""
    known = sum(len(part) for part in argument if isinstance(part, str))
    if not all(map(is_piece_of_line, argument)) or width > _MAX_WIDTH:
        return (ANY,)
    blanks = Choice(tuple((" " * count,) if count else () for count in range(max(width - known, 0) + 1)))
    return (*argument, blanks) if is_left else (blanks, *argument)


def _other(part: Part) -> Part | None:
    return part if isinstance(part, Hole) and part.kind is Kind.OTHER else None
