"""What was probably meant by a name that is unknown."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return `. Did you mean 'x'?` where a known name is close to `name`; else nothing.

    Args:
        alike: how much of the names has to agree, from 0 to 1.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - few names are unknown

    close = get_close_matches(name, list(known), n=1, cutoff=alike)
    return f". Did you mean '{close[0]}'?" if close else ""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return what to write instead of `name`: the known name that is close to it, or else all of them."""
    names = list(known)
    return did_you_mean(name, names) or f": choose from {', '.join(names)}"
