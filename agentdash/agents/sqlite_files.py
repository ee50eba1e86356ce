"""Open databases of worker CLIs for reading, without a trace: no lock, log or index is made or changed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final
from urllib.parse import quote

_MAX_STEPS: Final = 5_000_000
"""Instructions of SQLite's virtual machine for one statement, about a tenth of a second: a schema may have
views that never end."""
_MAX_ROW_BYTES: Final = 64 << 20
"""Of a row or value; longer ones fail their statement."""


def database_stamp(file: Path) -> tuple[int, ...]:
    """Return what changes when a database or its write-ahead log is written or replaced; the inode first."""
    stamp: list[int] = []
    for part in (file, _write_ahead_log(file)):
        try:
            found = part.stat()
        except OSError:
            stamp.append(0)
        else:
            stamp += found.st_ino, found.st_size, found.st_mtime_ns
    return tuple(stamp)


def _write_ahead_log(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def open_database(file: Path) -> sqlite3.Connection:
    """Open a database for reading, with texts decoded leniently.

    With neither a write-ahead log nor a journal no process writes: then SQLite must not create them, as it
    would even to read. Otherwise the shared index of the log is mapped read-only. A statement that takes too
    long, or reads a value that is too large, fails.

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    for part in (file, _write_ahead_log(file)):
        if part.exists() and not part.is_file():  # SQLite would block on opening a pipe
            raise sqlite3.OperationalError(f"{part.name}: not a regular file")
    busy = _write_ahead_log(file).exists() or file.with_name(f"{file.name}-journal").exists()
    mode = "mode=ro&readonly_shm=1" if busy else "mode=ro&immutable=1"
    database = sqlite3.connect(f"file:{quote(os.fsencode(file))}?{mode}", uri=True, timeout=0)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_ROW_BYTES)
    database.set_progress_handler(lambda: 1, _MAX_STEPS)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return database
