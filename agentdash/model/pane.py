"""A tmux pane, as the server describes it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from unicodedata import combining, east_asian_width

import msgspec


class PaneKey(msgspec.Struct, frozen=True, order=True):
    """A pane's identity: ids repeat between servers."""

    server: str
    """`default`, `-L NAME`, or a socket's path."""
    id: str
    """`%4`"""

    def __str__(self) -> str:
        return self.id if self.server == "default" else f"{self.server} {self.id}"

    @property
    def full(self) -> str:
        """Return the form that names the server too: `NAME:%4`, or `SOCKET:%4`."""
        return f"{self.server.removeprefix('-L ')}:{self.id}"

    def has_name(self, name: str) -> bool:
        """Return whether `name` is this pane: `%4`, `NAME:%4`, or as documents print it, `-L NAME %4`."""
        return name in (self.id, self.full, f"{self.server} {self.id}")


NO_SERVER: Final = "no server running"
"""The detail of a tmux source whose server is known not to run."""
REFUSED: Final = "refused"
"""The detail of a tmux source begins with it where something listens that is not proven to be a tmux server
of this user outside every sandbox."""


def tmux_source(server: str) -> str:
    """Return the name of the source that reads a tmux server (`PaneKey.server`): `tmux`, or `tmux NAME`."""
    return "tmux" if server == "default" else f"tmux {server.removeprefix('-L ')}"


class Pane(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pane of `list-panes`, and the screen last captured."""

    key: PaneKey
    session: str
    window: str
    """Window index and name, `2:api`."""
    pid: int
    """The first process of the pane, as its tmux server numbers it; 0 for a dead pane of tmux 3.8."""
    command: str
    """`pane_current_command`: often a wrapper, never proof of the program that runs."""
    title: str = ""
    width: int = 80
    height: int = 24
    active: bool = False
    dead: bool = False
    dead_status: int | None = None
    """Exit code, or None (a signal, or a child that tmux has not reaped)."""
    dead_signal: int | None = None
    dead_at: float | None = None
    """When it was first seen dead (unix seconds); tmux draws a note of that on the screen at once and again
    later."""
    in_mode: bool = False
    """Copy mode or a menu: the program's own screen is hidden behind it."""
    cursor_visible: bool = True
    server_pid: int | None = None
    screen: tuple[str, ...] = ()
    drawn_at: float | None = None
    """When the screen last changed (unix seconds); None before the first capture."""
    titled_at: float | None = None
    """When the title last changed."""
    moved_at: float | None = None
    """When the screen last changed in more than clocks and spinners, which a worker that waits for ever still
    draws."""


# ------------------------------------------------------------
# Screens that a worker CLI divides into columns


_DIVIDER: Final = "│"
_MIN_COLUMN_CELLS: Final = 20
_CACHED_SCREENS: Final = 512
"""Screens whose columns are kept for the next pass; each has some kB. With more panes none is found again."""


@lru_cache(_CACHED_SCREENS)
def columns(screen: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the columns of a screen that a line divides from the first row to the last, each as a screen, or
    the whole screen.

    A popup may cover the line in some rows, and is cut with them.
    """
    last = next((row for row in reversed(screen) if row), "")
    if _DIVIDER not in last or _DIVIDER not in screen[0]:
        return (screen,)
    dividers = [_dividers(row) for row in screen]
    for cell in sorted(dividers[0] & _dividers(last)):
        rows = sum(cell in found for found in dividers)
        if cell >= _MIN_COLUMN_CELLS and rows > len(screen) / 2:
            cut = [_cut(row, cell) for row in screen]
            return tuple(left.rstrip() for left, _ in cut), *columns(tuple(right for _, right in cut))
    return (screen,)


def _dividers(row: str) -> frozenset[int]:
    """Return the cells of the dividers in a row."""
    if _DIVIDER not in row:
        return frozenset()
    found, cell = set(), 0
    for char in row:
        if char == _DIVIDER:
            found.add(cell)
        cell += _cells(char)
    return frozenset(found)


def _cut(row: str, at: int) -> tuple[str, str]:
    """Return a row before a cell and after it."""
    cell = 0
    for index, char in enumerate(row):
        if cell >= at:
            return row[:index], row[index + 1 :]
        cell += _cells(char)
    return row, ""


def _cells(char: str) -> int:
    return 1 if char.isascii() else 0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1


# ------------------------------------------------------------
# What a worker CLI states on its own screen: its sandbox, model, context and cost


class ScreenUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The figures below an input box; None: not shown. They are the CLI's, and rounded as it shows them."""

    model: str | None = None
    """As the CLI names it, with the provider where it names that too."""
    context: int | None = None
    """Tokens in the context."""
    window: int | None = None
    """Tokens that the context has room for."""
    percent: float | None = None
    """How full the context is."""
    total: int | None = None
    """Tokens of the session."""
    cost: float | None = None
    """US dollars, by the CLI's own prices."""
