"""A session log from the standard input, as a file."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import click

from agentdash.files import is_abandoned

STDIN: Final = "-"
"""The argument that stands for the standard input."""
STDIN_NAME: Final = "<stdin>"
"""The file of a session log from the standard input, in messages and documents."""
_PREFIX: Final = "agentdash-stdin-"
"""Of the names of directories with such a copy."""
_NAMES: Final = ("stdin.jsonl", "stdin.jsonl.zst")
_MAX_BYTES: Final = 4 << 30
"""Larger than any session log; an endless stream must not fill the disk."""
_BLOCK_BYTES: Final = 1 << 20
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


@contextmanager
def without_stdin(targets: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Replace `-` among arguments by the path of a copy of the standard input, for the block.

    Raises:
        click.UsageError: as `log_from_stdin`.
    """
    if STDIN not in targets:
        yield tuple(targets)
        return
    with log_from_stdin() as path:
        try:
            yield tuple(str(path) if target == STDIN else target for target in targets)
        except click.UsageError as problem:
            raise click.UsageError(problem.message.replace(str(path), STDIN_NAME), problem.ctx) from problem


@contextmanager
def log_from_stdin() -> Iterator[Path]:
    """Copy the standard input, plain or compressed, into a private file that is removed after the block.

    The terminal takes the place of the standard input, so that a screen has keys.

    Raises:
        click.UsageError: it is a terminal, or has more than is read.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("- reads a session log from the standard input, which is a terminal")
    with _temporary_folder() as folder:
        yield _copy(folder)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Make a private directory for the block, and remove those of killed processes."""
    import tempfile  # few commands have this argument

    for abandoned in filter(is_abandoned, Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        _remove(abandoned)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # file systems without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a directory with copies of the standard input, and nothing else."""
    with suppress(OSError):
        for name in _NAMES:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _copy(folder: Path) -> Path:
    source = sys.stdin.buffer
    block = source.read(_BLOCK_BYTES)
    path = folder / _NAMES[block.startswith(_ZSTD_MAGIC)]
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
