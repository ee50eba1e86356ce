"""SQLite files of the state directory, which something that is watched may have made, replaced or changed.

Opened are regular files that are this user's alone, of bounded size, and whose schema is ours: no foreign
trigger or view runs. SQLite plays a journal beside the file back, and removes a file that this names; it
follows links in the place of a journal, and writes there. We leave journals only if we are killed: they name
no file. Write-ahead logs are never made.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from agentdash.files import ensure_private_directory, open_regular, untrusted

_BUSY_TIMEOUT_S: Final = 0.5
"""For another writer; then the write fails."""
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names another file: "super-journal" in "Database File Format" of SQLite."""
_SCHEMA: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master"


COMPANIONS: Final = ("-journal", "-wal", "-shm")
"""The ends of the names of files that SQLite makes beside another."""


class ForeignFileError(OSError):
    """The file is not one that agentdash has made."""


@contextmanager
def reading(path: Path, tables: str, max_bytes: int) -> Iterator[sqlite3.Connection | None]:
    """Open a file for reading, for the block; yield None if it does not exist, or has no tables yet.

    Args:
        path: the file.
        tables: the statements that make its tables.
        max_bytes: size above which it is not ours.

    Raises:
        OSError: it is not believed, or cannot be opened.
        sqlite3.Error: it cannot be used.
    """
    if not os.path.lexists(path):
        yield None
        return
    with _opened(path, tables, max_bytes, "ro") as database:
        yield database if database.execute(_SCHEMA).fetchone() else None


@contextmanager
def writing(path: Path, tables: str, max_bytes: int) -> Iterator[sqlite3.Connection]:
    """Open a file for writing, for the block, as `reading` does; make it if need be, but not its tables."""
    ensure_private_directory(path.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):
        os.close(os.open(path, flags, 0o600))
    with _opened(path, tables, max_bytes, "rw") as database:
        database.execute("PRAGMA synchronous = OFF")  # losing a second costs less than a slow disk
        yield database


@contextmanager
def _opened(path: Path, tables: str, max_bytes: int, mode: str) -> Iterator[sqlite3.Connection]:
    if (problem := untrusted(path)) is not None:
        raise ForeignFileError(problem)
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):  # SQLite would open a pipe or a device
        raise ForeignFileError("not a regular file")
    if found.st_size > max_bytes or found.st_nlink > 1:
        raise ForeignFileError("it has another name, or is too large")
    _check_journals(path)
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S)) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        with closing(sqlite3.connect(":memory:")) as model:
            model.executescript(tables)
            known = set(model.execute(_SCHEMA))
        if not known.issuperset(database.execute(_SCHEMA)):
            raise ForeignFileError("it has other tables")
        yield database


def _check_journals(path: Path) -> None:
    """Check that what SQLite opens beside the file is a plain journal, if anything.

    Raises:
        OSError: it is not.
    """
    for suffix in ("-wal", "-shm"):
        if os.path.lexists(f"{path}{suffix}"):
            raise ForeignFileError(f"beside it is {path.name}{suffix}")
    with suppress(FileNotFoundError):
        journal = f"{path}-journal"
        if not stat.S_ISREG(os.lstat(journal).st_mode):
            raise ForeignFileError("its journal is not a regular file")
        with open_regular(journal, follow=False) as descriptor:
            found = os.fstat(descriptor)
            end = os.pread(descriptor, len(_JOURNAL_MAGIC), max(0, found.st_size - len(_JOURNAL_MAGIC)))
        if found.st_nlink > 1 or end == _JOURNAL_MAGIC:
            raise ForeignFileError("its journal names another file")
