"""Output of the headless commands: the console, and pipes that their reader closes."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import cache
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar, cast

import click
import msgspec

from agentdash.report.elements import document_json

if TYPE_CHECKING:
    import asyncio

    from rich.console import Console

_T = TypeVar("_T")
_BLANKS_AT_END: Final = re.compile(r" +$", re.MULTILINE)
_PIPED_COLUMNS: Final = 200
_COLUMNS: Final = range(20, 10_000)
"""Narrower tables would lose whole columns; wider ones are padded with blanks for ever."""
_MAX_WARNINGS: Final = 5
"""Lines on stderr: the document has all of them."""


@cache
def _console_type() -> type[Console]:
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True  # Rich would exit with 1, which means "findings" in `check`

    return PipedConsole


class _Trimmed:
    """A text stream without blanks at the ends of lines, with which Rich fills its tables."""

    encoding: Final = "utf-8"

    def write(self, text: str) -> int:
        sys.stdout.write(_BLANKS_AT_END.sub("", text))
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()

    def isatty(self) -> bool:
        return False


def console(*, soft_wrap: bool = False) -> Console:
    """Return a console for stdout: as wide as the terminal or `COLUMNS`, else 200 columns."""
    if sys.stdout.isatty():
        return _console_type()(highlight=False, soft_wrap=soft_wrap)
    return _console_type()(
        file=cast("IO[str]", _Trimmed()), width=_piped_width(), highlight=False, soft_wrap=soft_wrap
    )


def notes_console() -> Console:
    """Return a console for what is not data: it prints to stderr."""
    return _console_type()(stderr=True, highlight=False, soft_wrap=True)


def _piped_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) in _COLUMNS else _PIPED_COLUMNS


def warn_unreadable(problems: Sequence[object]) -> None:
    """Print what could not be read on stderr: documents and tables are often piped."""
    lines = [f"agentdash: {problem}" for problem in problems[:_MAX_WARNINGS]]
    if len(problems) > _MAX_WARNINGS:
        lines.append(f"agentdash: and {len(problems) - _MAX_WARNINGS} more")
    with suppress(BrokenPipeError):  # the document has them too
        for line in lines:
            click.echo(line, err=True)


async def until_pipe_closes(work: Coroutine[Any, Any, _T], *, with_stdin: bool = False) -> _T | None:
    """Return the result of `work`; cancel it and return None if the reader of stdout's pipe closes it.

    Args:
        with_stdin: whether to cancel it also when stdin ends, if that is a pipe or a socket.
    """
    import asyncio

    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    out = sys.stdout.fileno()
    if piped := stat.S_ISFIFO(os.fstat(out).st_mode):
        loop.add_reader(out, task.cancel)  # the write end becomes "readable" when the read end is closed
    stdin = _watch_stdin(loop, task) if with_stdin else None
    try:
        return await task
    except asyncio.CancelledError:
        if (here := asyncio.current_task()) is not None and here.cancelling():
            raise
        return None
    finally:
        if stdin is not None:
            loop.remove_reader(stdin)
        if piped:
            with suppress(OSError):
                loop.remove_reader(out)


def _watch_stdin(loop: asyncio.AbstractEventLoop, task: asyncio.Future[Any]) -> int | None:
    """Cancel a task when stdin ends; return the watched descriptor, or None if stdin cannot be watched."""
    stdin = sys.stdin.fileno()
    mode = os.fstat(stdin).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return None

    def read() -> None:
        try:
            data = os.read(stdin, 1 << 12)
        except OSError:
            data = b""
        if not data:
            task.cancel()

    loop.add_reader(stdin, read)
    return stdin


# ------------------------------------------------------------
# Documents on stdout. Apart from `output`, which imports Rich: `status --json` is called often


def print_document(document: msgspec.Struct) -> None:
    """Print a document as JSON: indented in a terminal, on one line in a pipe or file; secrets masked."""
    print_text(document_json(document, indent=2 if sys.stdout.isatty() else None))


def print_text(text: str | bytes, *, nl: bool = True) -> None:
    """Print a document, or as much as the reader of the pipe takes (`| head`): the exit code is the same."""
    with suppress(BrokenPipeError):
        click.echo(text, nl=nl)
