"""Translate regular expressions of grep, rg, sed and awk into Python's."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_CLASSES: Final = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "word": r"\w",
    "punct": r"!-/:-@\[-`{-~",
}
_MAX_LENGTH: Final = 300


@lru_cache(256)
def compiled(pattern: str, syntax: str, *, ignores_case: bool = False) -> re.Pattern[str] | None:
    """Return Python's form of a pattern, None without; `syntax` is basic, extended, perl or fixed."""
    if len(pattern) > _MAX_LENGTH:
        return None
    if syntax == "fixed":
        translated: str | None = "|".join(re.escape(line) for line in pattern.split("\n"))
    elif "\n" in pattern:
        return None
    else:
        translated = pattern if syntax == "perl" else _translated(pattern, basic=syntax == "basic")
    if translated is None or re.search(
        r"\([^)]*[*+][^)]*\)[*+{]", translated
    ):  # nested repetition: exponential time
        return None
    try:
        return re.compile(translated, re.IGNORECASE if ignores_case else 0)
    except (re.error, OverflowError, RecursionError):
        return None


def _translated(pattern: str, *, basic: bool) -> str | None:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            if at + 1 >= len(pattern):
                return None
            out.append(_escaped(pattern[at + 1], basic=basic))
            at += 2
        elif char == "[":
            stop, text = _bracket(pattern, at)
            if text is None:
                return None
            out.append(text)
            at = stop
        else:
            starts = not out or out[-1] in ("(", "|")
            out.append("\\" + char if (basic and char in "(){}|+?") or (char == "*" and starts) else char)
            at += 1
    return "".join(out)


def _escaped(char: str, *, basic: bool) -> str:
    if char in "(){}|+?":
        return char if basic else "\\" + char
    if char in "<>":
        return r"\b"
    if char in "wWsSbB":
        return "\\" + char
    return re.escape(char)


def _bracket(pattern: str, start: int) -> tuple[int, str | None]:
    """Return the offset behind a bracket expression, and Python's form of it."""
    at = start + 1
    out = "["
    if pattern[at : at + 1] == "^":
        out, at = "[^", at + 1
    first = True
    while at < len(pattern):
        if pattern[at] == "]" and not first:
            return at + 1, out + "]"
        if named := re.match(r"\[:(\w+):\]", pattern[at:]):
            if named[1] not in _CLASSES:
                return at, None
            out += _CLASSES[named[1]]
            at += named.end()
        else:
            out += "\\" + pattern[at] if pattern[at] in "\\[]" else pattern[at]
            at += 1
        first = False
    return at, None
