"""What was probably meant by a name that is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_CUTOFF: Final = 0.7
"""How much of a name has to be right: `version` is not `sessions`."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `. Did you mean 'x'?` where a known name is close to `name`; else nothing."""
    from difflib import get_close_matches  # noqa: PLC0415 - few names are unknown

    close = get_close_matches(name, list(known), n=1, cutoff=_CUTOFF)
    return f". Did you mean '{close[0]}'?" if close else ""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return what to write instead of `name`: the known name that is close to it, or else all of them."""
    names = list(known)
    return did_you_mean(name, names) or f": choose from {', '.join(names)}"
