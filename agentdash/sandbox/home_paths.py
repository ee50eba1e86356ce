"""Home directories by the customs of Linux, macOS, the BSDs, Solaris and WSL."""

from __future__ import annotations

import re
from typing import Final

_HOME: Final = re.compile(
    r"(?:/private)?/(?:(?:home|Users|var/home|export/home|usr/home|mnt/[a-z]/Users)/[^/]+|root|var/root)"
    r"(?=/|$)"
)
"""`/var/home` is that of Fedora's immutable variants, `/var/root` that of root on macOS."""


def home_of(directory: str | None) -> str | None:
    """Return the usual home directory that a directory is or lies in; None where it is in none."""
    match = _HOME.match(directory or "")
    return match[0] if match else None
