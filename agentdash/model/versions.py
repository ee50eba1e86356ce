"""Versions of worker CLIs, compared.

A version that is newer than all that were measured is taken for the newest measured one, and that is said:
a new release loses no layer, no state and no row.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_DEVELOPMENT: Final = (0, 0, 0)
"""The `cli_version` of a development build of Codex is `0.0.0`: it is newer than all releases."""


@lru_cache(64)
def numbers_of(version: str | None) -> tuple[int, ...]:
    """Return the numbers of a version, `(2, 1, 332)`, without those of a pre-release; empty where it has
    none."""
    return tuple(int(part) for part in re.findall(r"\d+", (version or "").partition("-")[0]))


def is_before(version: str | None, first: tuple[int, ...]) -> bool | None:
    """Return whether a version is older than the first one that has something; None where it has no
    numbers."""
    found = numbers_of(version)
    if not found:
        return None
    return found != _DEVELOPMENT and found < first


def stand_in(version: str | None, measured: str) -> str | None:
    """Return the newest measured version for a newer one, whose rules are not known; else None."""
    newest = numbers_of(measured)
    found = numbers_of(version)
    return measured if found == _DEVELOPMENT or found[: len(newest)] > newest else None
