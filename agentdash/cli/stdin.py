"""A session log from the standard input, as a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import click

STDIN: Final = "-"
"""The argument that stands for the standard input."""
STDIN_NAME: Final = "<stdin>"
"""The file of a session log from the standard input, in messages and documents."""
_MAX_BYTES: Final = 4 << 30
"""Larger than any session log; an endless stream must not fill the disk."""
_BLOCK_BYTES: Final = 1 << 20
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


@contextmanager
def without_stdin(targets: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Replace `-` among arguments by the path of a private copy of the standard input, for the block.

    The terminal takes the place of the standard input, so that a screen has keys.

    Raises:
        click.UsageError: the standard input is a terminal, or has more than is read.
    """
    if STDIN not in targets:
        yield tuple(targets)
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("- reads a session log from the standard input, which is a terminal")
    from tempfile import TemporaryDirectory  # few commands have this argument

    with TemporaryDirectory(prefix="agentdash-stdin-") as folder:
        path = str(_copy(Path(folder)))
        try:
            yield tuple(path if target == STDIN else target for target in targets)
        except click.UsageError as problem:
            raise click.UsageError(problem.message.replace(path, STDIN_NAME), problem.ctx) from problem


def _copy(folder: Path) -> Path:
    source = sys.stdin.buffer
    block = source.read(_BLOCK_BYTES)
    path = folder / ("stdin.jsonl.zst" if block.startswith(_ZSTD_MAGIC) else "stdin.jsonl")
    copied = 0
    with path.open("wb") as file:
        while block:
            copied += len(block)
            if copied > _MAX_BYTES:
                raise click.UsageError(f"the standard input has more than {_MAX_BYTES >> 30} GB")
            file.write(block)
            block = source.read(_BLOCK_BYTES)
    with suppress(OSError):  # there is no terminal: exports need none
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        os.dup2(terminal, 0)
        os.close(terminal)
    return path
