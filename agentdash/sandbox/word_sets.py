"""Sets of words: names of programs, of options, of functions."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())
