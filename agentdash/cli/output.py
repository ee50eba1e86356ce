"""Where headless commands print: documents for programs, tables for people."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from rich.console import Console

_T = TypeVar("_T")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # Rich would end with 1, which has a meaning of its own in `check`


def console(*, soft_wrap: bool = False) -> Console:
    """As wide as the terminal; wide enough for a whole row where the output goes to a file or a program."""
    return _Console(width=None if sys.stdout.isatty() else 200, highlight=False, soft_wrap=soft_wrap)


async def until_unheard(work: Coroutine[Any, Any, _T]) -> _T | None:
    """Does some work, but no longer than somebody reads what it prints: None when the reader of a pipe has left."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    out = sys.stdout.fileno()
    if piped := stat.S_ISFIFO(os.fstat(out).st_mode):
        loop.add_reader(
            out, task.cancel
        )  # a pipe that is written to becomes "readable" when its other end is closed
    try:
        return await task
    except asyncio.CancelledError:
        if (here := asyncio.current_task()) is not None and here.cancelling():
            raise
        return None
    finally:
        if piped:
            with suppress(OSError):
                loop.remove_reader(out)
