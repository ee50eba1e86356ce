"""Detect the platform of a thread's commands from the paths that it shows."""

from __future__ import annotations

import re
from typing import Final, Literal

_HOME: Final = re.compile(
    r"^(?:(?:CODEX_)?HOME=|PWD=)?(?:(?P<macos>/Users/)|/home/|/root(?:/|$))", re.MULTILINE
)
_HOMES: Final = ("/Users/", "/home/", "/root")


def platform(text: str) -> Literal["linux", "darwin"] | None:
    """Return the platform that a working directory, or an output with `HOME` or `CODEX_HOME`, belongs to."""
    if not any(place in text for place in _HOMES):  # a hundred times as fast, and true of most outputs
        return None
    match = _HOME.search(text)
    if not match:
        return None
    return "darwin" if match["macos"] else "linux"
