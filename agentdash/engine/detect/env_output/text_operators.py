"""Operators of `${name…}` that change a text: `#`, `%`, `/`, `^`, `,` and `:`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from agentdash.engine.detect.env_output.dump_maps import mapped_text
from agentdash.engine.detect.env_output.patterns import ANY, Hole, Kind, Parts
from agentdash.sandbox.shell import Parameter, Text

_CUTTING: Final = ("#", "##", "%", "%%", ":")


def operated_text(value: Parts, parameter: Parameter) -> Parts:
    """Return what an expansion makes of a value."""
    operator = parameter.operator
    if operator in _CUTTING and all(isinstance(p, Hole) and p.kind is Kind.QUIET_LINE for p in value):
        return value  # a part of a line in which no flag is named is another one
    argument: str | None = "" if parameter.argument is None else _literal(parameter)
    if not argument and operator in ("/", "//"):  # the grammar has no argument for one with backslashes
        argument = parameter.raw.partition(operator)[2].removesuffix("}")
        change = _replacement(argument, operator)
    else:
        change = None if argument is None else _change(operator, argument)
    if change is None or argument is None:
        return (ANY,)
    found = mapped_text(value, change, argument)
    return (ANY,) if found is None else found


def _literal(parameter: Parameter) -> str | None:
    """Return the text behind an operator; None where it has quotes or expansions in it."""
    if parameter.argument is None or re.search(r"[\\'\"$`]", parameter.argument.raw):
        return None
    pieces = parameter.argument.pieces
    return "".join(p.text for p in pieces if isinstance(p, Text)) if all(map(_is_text, pieces)) else None


def _is_text(piece: object) -> bool:
    return isinstance(piece, Text)


def _change(operator: str, argument: str) -> Callable[[str], str] | None:
    """Return what an operator does with a text."""
    if operator in ("#", "##", "%", "%%", "/", "//"):
        pattern, _, replacement = argument.partition("/") if operator[0] == "/" else (argument, "", "")
        if not pattern or (operator[0] == "/" and pattern[0] in "#%") or "&" in replacement:
            return None
        if (matches := _glob(pattern, is_long=operator not in ("#", "%"))) is None:
            return None
        return lambda text: _cut(text, operator, matches, replacement)
    if operator in ("^", "^^", ",", ",,") and not argument:
        return lambda text: _cased(text, operator)
    if operator == ":" and (numbers := re.fullmatch(r"\s*(\d+)\s*(?::\s*(\d+)\s*)?", argument)):
        start = int(numbers[1])
        return lambda text: text[start : None if numbers[2] is None else start + int(numbers[2])]
    return None


_TOKEN: Final = re.compile(r"\\(?P<escaped>[\\/\"$`])|\$'(?P<control>\\[ntr])'|(?P<plain>[^\\\"'$`*?\[&])")
_CONTROLS: Final = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}


def _replacement(argument: str, operator: str) -> Callable[[str], str] | None:
    """Return what `//` does with a text: a character with a backslash before it stands for itself."""
    texts = [""]
    at = 0
    while at < len(argument):
        if (match := _TOKEN.match(argument, at)) is None:
            return None
        at = match.end()
        if match["plain"] == "/" and len(texts) == 1:
            texts.append("")
        else:
            texts[-1] += match["escaped"] or match["plain"] or _CONTROLS[match["control"]]
    old, new = texts if len(texts) > 1 else (texts[0], "")
    if not old or old[0] in "#%":
        return None
    return lambda text: text.replace(old, new, 1 if operator == "/" else -1)


def _glob(pattern: str, *, is_long: bool) -> str | None:
    """Return the regular expression of a shell pattern; None for character classes that differ by locale."""
    if re.search(r"[@!+?*]\(|\[:", pattern):
        return None
    found: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "[" and (end := pattern.find("]", at + 2)) > 0:
            inner = pattern[at + 1 : end].replace("\\", "\\\\")
            found.append("[" + ("^" + inner[1:] if inner[0] in "!^" else inner) + "]")
            at = end
        else:
            star = ".*" if is_long else ".*?"
            found.append({"*": star, "?": "."}.get(char, re.escape(char)))
        at += 1
    return "".join(found)


def _cut(text: str, operator: str, matches: str, replacement: str) -> str:
    try:
        pattern = re.compile(matches, re.DOTALL)
    except re.error:
        return text + "\0"  # which no shell writes: the text is not known
    if operator[0] == "/":
        return pattern.sub(lambda _: replacement, text, count=1 if operator == "/" else 0)
    if operator[0] == "#":
        match = pattern.match(text)
        return text[match.end() :] if match else text
    starts = range(len(text), -1, -1) if operator == "%" else range(len(text) + 1)
    start = next((at for at in starts if pattern.fullmatch(text, at)), len(text))
    return text[:start]


def _cased(text: str, operator: str) -> str:
    change = str.upper if operator[0] == "^" else str.lower
    return change(text) if len(operator) == 2 else change(text[:1]) + text[1:]
