"""Output of the headless commands: the console, and pipes that their reader closes."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import click
from rich.console import Console

_T = TypeVar("_T")
_MAX_WARNINGS: Final = 5
"""Lines on stderr: the document has all of them."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # Rich would exit with 1, which means "findings" in `check`


def console(*, soft_wrap: bool = False) -> Console:
    """Return a console as wide as the terminal, or 200 columns where stdout is a file or a pipe."""
    return _Console(width=None if sys.stdout.isatty() else 200, highlight=False, soft_wrap=soft_wrap)


def warn_unreadable(problems: Sequence[object]) -> None:
    """Print what could not be read on stderr: documents and tables are often piped."""
    for problem in problems[:_MAX_WARNINGS]:
        click.echo(f"agentdash: {problem}", err=True)
    if len(problems) > _MAX_WARNINGS:
        click.echo(f"agentdash: and {len(problems) - _MAX_WARNINGS} more", err=True)


async def until_pipe_closes(work: Coroutine[Any, Any, _T]) -> _T | None:
    """Return the result of `work`; cancel it and return None if the reader of stdout's pipe closes it."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    out = sys.stdout.fileno()
    if piped := stat.S_ISFIFO(os.fstat(out).st_mode):
        loop.add_reader(out, task.cancel)  # the write end becomes "readable" when the read end is closed
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
