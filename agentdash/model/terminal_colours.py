"""How many colours are used on a terminal, by what its environment claims: as Rich decides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TRUE_COLOUR: Final = "16 million colours"
MANY: Final = "256 colours"
SIXTEEN: Final = "16 colours"
NONE: Final = "no colours"
_TRUE_COLOUR_TERMS: Final = ("truecolor", "24bit")
_COLOURLESS_TERMS: Final = ("dumb", "unknown")
_MANY_SUFFIXES: Final = ("256color", "kitty")


def terminal_colours(environment: Mapping[str, str]) -> str:
    """Return the colours that are used: `COLORTERM` decides, then the end of `TERM`; `NO_COLOR` removes all.

    Without `TERM` nothing is claimed, and 16 million are used.
    """
    if environment.get("NO_COLOR"):
        return NONE
    term = environment.get("TERM", "").strip().lower()
    if term in _COLOURLESS_TERMS:
        return NONE
    if not term or environment.get("COLORTERM", "").strip().lower() in _TRUE_COLOUR_TERMS:
        return TRUE_COLOUR
    return MANY if term.rpartition("-")[2] in _MANY_SUFFIXES else SIXTEEN
