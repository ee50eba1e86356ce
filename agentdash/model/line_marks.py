"""The lines of a session log that hold on: what a turn began with, and what was changed since."""

from __future__ import annotations

from typing import Final

import msgspec


class LineMarks(msgspec.Struct, frozen=True):
    """What the lines of a log contain, and no others, that hold until the next such line."""

    turn: tuple[bytes, ...] = ()
    """In the line that begins a turn: the first one that is found counts."""
    beside: tuple[bytes, ...] = ()
    """In other lines at the beginning of a turn."""
    later: tuple[bytes, ...] = ()
    """In lines that change what a turn began with."""


NO_MARKS: Final = LineMarks()
