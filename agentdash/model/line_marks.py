"""How to find the lines of a session log that stay in force: how a turn began, and what changed since."""

from __future__ import annotations

from typing import Final

import msgspec


class LineMarks(msgspec.Struct, frozen=True):
    """Bytes that occur only in lines which stay in force until the next such line."""

    turn: tuple[bytes, ...] = ()
    """In the line that begins a turn: the first one that is found counts."""
    beside: tuple[bytes, ...] = ()
    """In other lines at the beginning of a turn."""
    later: tuple[bytes, ...] = ()
    """In lines that change what a turn began with."""


NO_MARKS: Final = LineMarks()
