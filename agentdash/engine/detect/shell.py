"""Shell scripts as far as they can be read without running them."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Final

_PREFIX: Final = re.compile(r"\w+=.*|if|then|else|do|fi|done|\{|\}|!|command|builtin", re.DOTALL)
"""What may stand before the first word of a simple command."""


@lru_cache(512)
def statements(script: str) -> tuple[tuple[str, ...], ...]:
    """The simple commands of a shell script, as words; quotes removed, nothing expanded. What cannot be split is left out."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    found: list[tuple[str, ...]] = []
    words: list[str] = []
    try:
        for token in lexer:
            if token and set(token) <= set(";&|()\n"):
                found.append(tuple(words))
                words = []
            elif words or not _PREFIX.fullmatch(token):
                words.append(token)
    except ValueError:  # an open quote: a heredoc, or not a shell script
        pass
    return tuple(words for words in (*found, tuple(words)) if words)
