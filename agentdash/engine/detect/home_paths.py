"""Home directories by the customs of Linux and macOS."""

from __future__ import annotations

import re
from typing import Final

_HOME: Final = re.compile(r"(/(?:home|Users)/[^/]+|/root)(?:/|$)")


def home_of(directory: str | None) -> str | None:
    """Return the usual home directory that a directory is or lies in; None where it is in none."""
    match = _HOME.match(directory or "")
    return match[1] if match else None
