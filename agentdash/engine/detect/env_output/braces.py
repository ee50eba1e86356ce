"""Brace expansion: `a{b,c}` and `{1..3}`."""

from __future__ import annotations

import re
from typing import Final

_LIST: Final = re.compile(r"\{(?P<items>[^{}]*,[^{}]*)\}|\{(?P<first>-?\d{1,4})\.\.(?P<last>-?\d{1,4})\}")
_MAX_WORDS: Final = 100


def braced(word: str) -> list[str]:
    """Return the words that an unquoted word becomes; nothing without braces, or where they are nested."""
    words = [word]
    if re.search(r"\{[^{}]*\{", word) or not _LIST.search(word):
        return []
    while len(words) <= _MAX_WORDS:
        found = [each for word in words for each in _expanded(word)]
        if found == words:
            return words
        words = found
    return []


def _expanded(word: str) -> list[str]:
    match = _LIST.search(word)
    if match is None:
        return [word]
    if match["items"] is not None:
        items = match["items"].split(",")
    else:
        first = int(match["first"])
        last = int(match["last"])
        step = 1 if first <= last else -1
        items = [str(number) for number in range(first, last + step, step)]
    return [word[: match.start()] + item + word[match.end() :] for item in items]
