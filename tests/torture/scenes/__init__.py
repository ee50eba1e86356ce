"""Scenes: faults of what runs beside agentdash, for `python -m tests.torture`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from tests.torture.stage import Stage

Play = Callable[[Stage], Iterator[str]]


class Scene(msgspec.Struct):
    """A fault that needs other processes, and what must hold while it lasts."""

    name: str
    play: Play
    """Yields what was wrong."""
    needs_root: bool = False
    """Whether only root can arrange it; the commands may still run as another user."""
    missing: Callable[[], str | None] = lambda: None
    """Returns what has to be installed to play it; None where all is."""


SCENES: Final[list[Scene]] = []


def scene(
    name: str, *, needs_root: bool = False, missing: Callable[[], str | None] = lambda: None
) -> Callable[[Play], Play]:
    """Return a decorator that adds a function to the scenes."""

    def add(play: Play) -> Play:
        SCENES.append(Scene(name=name, play=play, needs_root=needs_root, missing=missing))
        return play

    return add


from tests.torture.scenes import (  # noqa: E402 - they add their scenes
    files,  # noqa: F401
    hosts,  # noqa: F401
    outputs,  # noqa: F401
    processes,  # noqa: F401
    store,  # noqa: F401
    terminal,  # noqa: F401
    tmux,  # noqa: F401
)
