"""Output of the headless commands: the console, pipes that their reader closes, documents, progress."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final, Self, TextIO, TypeVar, cast

import click
import msgspec

from agentdash.report.elements import document_json

if TYPE_CHECKING:
    from rich.console import Console

_T = TypeVar("_T")
_D = TypeVar("_D", bound=msgspec.Struct)
_BLANKS_AT_END: Final = re.compile(r" +$", re.MULTILINE)
_PIPED_COLUMNS: Final = 200
_COLUMNS: Final = range(20, 10_000)
"""Narrower tables would lose whole columns; wider ones are padded with blanks for ever."""
_MAX_WARNINGS: Final = 5
"""Lines on stderr: the document has all of them."""


class _Piped:
    """A stream that is no terminal: without blanks at the ends of lines, with which Rich fills its tables.

    Its reader may close it: Rich would exit with 1 then, which means "findings" in `check`.
    """

    encoding: Final = "utf-8"

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(BrokenPipeError):
            self._stream.write(_BLANKS_AT_END.sub("", text))
        return len(text)

    def flush(self) -> None:
        with suppress(BrokenPipeError):
            self._stream.flush()

    def isatty(self) -> bool:
        return False


def console(*, soft_wrap: bool = False, notes: bool = False) -> Console:
    """Return a console: as wide as the terminal or `COLUMNS`, else 200 columns.

    Args:
        notes: for what is not data: it prints to stderr.
    """
    from rich.console import Console

    stream = sys.stderr if notes else sys.stdout
    if stream.isatty():
        return Console(stderr=notes, highlight=False, soft_wrap=soft_wrap)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) in _COLUMNS else _PIPED_COLUMNS
    return Console(file=cast("IO[str]", _Piped(stream)), width=width, highlight=False, soft_wrap=soft_wrap)


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
    stdin = sys.stdin.fileno() if with_stdin else -1

    def read_stdin() -> None:
        data = b""
        with suppress(OSError):
            data = os.read(stdin, 1 << 12)
        if not data:
            task.cancel()

    mode = os.fstat(stdin).st_mode if with_stdin else 0
    if watches_stdin := stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        loop.add_reader(stdin, read_stdin)
    try:
        return await task
    except asyncio.CancelledError:
        if (here := asyncio.current_task()) is not None and here.cancelling():
            raise
        return None
    finally:
        if watches_stdin:
            loop.remove_reader(stdin)
        if piped:
            with suppress(OSError):
                loop.remove_reader(out)


# ------------------------------------------------------------
# Documents on stdout. Apart from `output`, which imports Rich: `status --json` is called often


def print_document(document: msgspec.Struct) -> None:
    """Print a document as JSON: indented in a terminal, on one line in a pipe or file; secrets masked."""
    print_text(document_json(document, indent=2 if sys.stdout.isatty() else None))


def show(
    document: _D, as_json: bool, print_it: Callable[[_D, Console], object], *, soft_wrap: bool = True
) -> None:
    """Print a document as JSON, or as text by a function that prints it to a console."""
    if as_json:
        print_document(document)
    else:
        print_it(document, console(soft_wrap=soft_wrap))


def print_text(text: str | bytes, *, nl: bool = True) -> None:
    """Print a document, or as much as the reader of the pipe takes (`| head`): the exit code is the same."""
    with suppress(BrokenPipeError):
        click.echo(text, nl=nl)


# ------------------------------------------------------------
# The progress of long operations: a line on stderr if it is a terminal, erased at the end


_FIRST_LINE_AFTER_S: Final = 0.5
"""Most operations are done by then, and show no progress."""
_UPDATE_INTERVAL_S: Final = 0.1
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """Shows files and bytes done, and the estimated time left: `412 files, 210 of 1,000 MB, 23 s left`.

    Args:
        size: total size in bytes; 0: unknown.
    """

    def __init__(self, size: int = 0) -> None:
        self._size = size
        self._files = 0
        self._read = 0
        self._began = time.monotonic()
        self._next = self._began + _FIRST_LINE_AFTER_S
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def add(self, size: int) -> None:
        """Count one more file, of `size` bytes."""
        self._files += 1
        self.reach(self._read + size)

    def reach(self, size: int) -> None:
        """Set the number of bytes done so far."""
        self._read = size
        now = time.monotonic()
        if now >= self._next and sys.stderr.isatty():
            self._next = now + _UPDATE_INTERVAL_S
            self._is_shown = True
            sys.stderr.write(f"{_CLEAR}{self._line(now - self._began)}")
            sys.stderr.flush()

    def _line(self, seconds: float) -> str:
        files = f"{self._files:,} files, " if self._files else ""
        if not (self._size and self._read):
            return f"{files}{self._read / 1e6:,.0f} MB"
        left = max(0, self._size - self._read) * seconds / self._read
        return f"{files}{self._read / 1e6:,.0f} of {self._size / 1e6:,.0f} MB, {left:.0f} s left"
