"""Translate regular expressions of grep, rg, sed and awk into Python's."""

from __future__ import annotations

import re
from functools import lru_cache
from math import comb, inf
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
_REGEX_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|P<\w+>))?|(?P<count>[*+?]|\{\d+(?:,\d*)?\})\??|.",
    re.DOTALL,
)
_MAX_LENGTH: Final = 300
_MAX_WAYS: Final = 100_000
"""Ways in which a group that is repeated can match."""
_MAX_STEPS: Final = 10_000_000
"""Steps of a search: a second, more or less."""


@lru_cache(256)
def compiled(
    pattern: str, syntax: str, *, ignores_case: bool = False, options: int = 0
) -> re.Pattern[str] | None:
    """Return Python's form of a pattern, None without; `syntax` is basic, extended, perl or fixed."""
    if len(pattern) > _MAX_LENGTH:
        return None
    if syntax == "fixed":
        translated: str | None = "|".join(re.escape(line) for line in pattern.split("\n"))
    elif "\n" in pattern:
        return None
    else:
        translated = pattern if syntax == "perl" else _translated(pattern, basic=syntax == "basic")
    if translated is None or _is_exponential(translated):
        return None
    try:
        return re.compile(translated, options | (re.IGNORECASE if ignores_case else 0))
    except (re.error, OverflowError, RecursionError):
        return None


def is_quick(pattern: re.Pattern[str], text: str, steps: int = _MAX_STEPS) -> bool:
    """Return whether a search in a text takes no more than a number of steps, by default a second or so.

    They grow with a power of the length: one for each repetition, and one for where it starts.
    """
    degree = _degree(pattern.pattern)
    return comb(len(text) + degree, degree) <= steps


@lru_cache(256)
def _degree(pattern: str) -> int:
    repetitions = len(re.findall(r"(?<!\\)[*+]|\{\d+,\d*\}", pattern))
    return repetitions + (not pattern.startswith(("^", "(?:^")))


def _is_exponential(pattern: str) -> bool:
    """Return whether a group is repeated that can match the same text in several ways."""
    ways: list[float] = [1]
    """In how many ways what stands in each open group can match."""
    atom: float = 1
    """The same for what stands before the offset."""
    for token in _REGEX_TOKEN.finditer(pattern):
        count = token["count"]
        if count is not None:
            least, most = _bounds(count)
            if most > 1 and atom**most > _MAX_WAYS:
                return True
            atom = atom ** min(most, _MAX_WAYS) * (most - least + 1)
            continue
        ways[-1] *= atom
        atom = 1
        if token[0].startswith("("):
            ways.append(1)
        elif token[0] == ")" and len(ways) > 1:
            atom = ways.pop()
        elif token[0] == "|":
            ways[-1] += 1
    return False


def _bounds(sign: str) -> tuple[int, float]:
    """Return how often `*`, `+`, `?` or `{2,3}` repeats at least and at most."""
    if sign in "*+?":
        return int(sign == "+"), 1 if sign == "?" else inf
    least, comma, most = sign.strip("{}").partition(",")
    return int(least), (float(most) if most else inf) if comma else int(least)


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
