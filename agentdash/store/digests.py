"""Keep digests of session files, so that what was read and judged once is known at once: one SQLite file.

A digest is valid for one file as it was: path, device, inode, size, times, the rules for commands beside it,
and the rules of this agentdash. Whatever is doubted is as if it were not there: then the session file is read
again. Nothing here ever fails. Several processes may write at once.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import struct
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.model.command_rules import codex_home_of
from agentdash.store.database import COMPANIONS, ForeignFileError, reading, writing

NAME: Final = "digests.sqlite"
"""The file, in the state directory of agentdash."""
_MAX_BYTES: Final = 192 << 20
"""Of the file: digests of about 100,000 sessions. A larger one is begun anew."""
_MAX_BODY_BYTES: Final = 2 << 20
"""Of one digest: a larger one costs more than it saves."""
_KEPT_S: Final = 90 * 86_400.0
_SETTLED_NS: Final = 100_000_000
"""A file that was changed less than this before it was read may change again within the same tick of the
clock of its file system, with the same size: it gets no digest."""
_IDENTITY: Final = struct.Struct("<8sQQQ8s16s16s")
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS digest (
    path BLOB PRIMARY KEY, identity BLOB, body BLOB, written REAL);
"""
_SELECT: Final = "SELECT body FROM digest WHERE path = ? AND identity = ?"
_RULE_PACKAGES: Final = ("agents", "collect", "engine", "model", "report", "replay")
"""Packages whose sources decide what a digest contains."""


class FileState(NamedTuple):
    """A file as it was at one moment."""

    identity: bytes
    """Differs whenever the file or the rules do."""
    size: int
    settled: bool
    """Whether a later change is certain to give another identity."""


class DigestStore:
    """The digests in one state directory.

    Args:
        folder: agentdash's state directory; it is created with mode 0700 when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def load(self, states: Mapping[Path, FileState]) -> dict[Path, bytes]:
        """Return the valid digests of files."""
        found: dict[Path, bytes] = {}
        with suppress(sqlite3.Error, OSError), reading(self.path, _TABLE, _MAX_BYTES) as database:
            if database is None:
                return {}
            for path, state in states.items():
                row = database.execute(_SELECT, (_key(path), state.identity)).fetchone()
                if row is not None and isinstance(row[0], bytes):
                    found[path] = row[0]
        return found

    def save(self, digests: Iterable[tuple[Path, FileState, bytes]]) -> None:
        """Keep digests; none of files that have changed since their state was taken, or may still change
        within a tick of the clock."""
        now = time.time()
        rows = [
            (_key(path), state.identity, body, now)
            for path, state, body in digests
            if state.settled and len(body) <= _MAX_BODY_BYTES and _is_unchanged(path, state)
        ]
        if not rows:
            return
        try:
            with writing(self.path, _TABLE, _MAX_BYTES) as database:
                database.executescript(_TABLE)
                with database:
                    database.executemany("INSERT OR REPLACE INTO digest VALUES (?, ?, ?, ?)", rows)
                    database.execute("DELETE FROM digest WHERE written < ?", (now - _KEPT_S,))
        except (sqlite3.DatabaseError, ForeignFileError) as error:
            if not isinstance(error, sqlite3.OperationalError):
                self._remove()
        except OSError:
            return

    def _remove(self) -> None:
        """Remove a damaged file: the next run begins anew."""
        with suppress(OSError):
            for suffix in ("", *COMPANIONS):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)


def file_state(path: Path) -> FileState | None:
    """Return the state of a file now, or None if it is not a regular file or cannot be examined."""
    try:
        found = os.stat(path)  # noqa: PTH116 - of thousands of files at each start
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    identity = _IDENTITY.pack(
        rules(),
        found.st_dev,
        found.st_ino,
        found.st_size,
        _rules_beside(os.path.abspath(path)),  # noqa: PTH100 - links are not resolved
        *(at.to_bytes(16, "little", signed=True) for at in (found.st_mtime_ns, found.st_ctime_ns)),
    )
    return FileState(identity, found.st_size, settled=time.time_ns() - changed > _SETTLED_NS)


def file_states(paths: Iterable[Path]) -> dict[Path, FileState]:
    """Return the states of those files that there are, to be taken before they are read."""
    return {path: state for path in paths if (state := file_state(path)) is not None}


def _rules_beside(path: str) -> bytes:
    """Return what identifies the rules for commands (`rules/*.rules`) of the Codex home that a file lies in:
    denials are judged by them."""
    home = codex_home_of(path)
    return b"" if home is None else _rules_of(home)


@lru_cache(maxsize=64)
def _rules_of(home: str) -> bytes:
    try:
        with os.scandir(f"{home}/rules") as listing:
            files = [(each.name, each.stat()) for each in listing if each.name.endswith(".rules")]
    except OSError:
        return b""
    known = sorted((name, found.st_size, found.st_mtime_ns) for name, found in files)
    return hashlib.blake2b(repr(known).encode(), digest_size=8).digest() if known else b""


def _is_unchanged(path: Path, before: FileState) -> bool:
    now = file_state(path)
    return now is not None and now.identity == before.identity


@cache
def rules() -> bytes:
    """Return what identifies the rules by which files are read and judged: the sources of this agentdash.

    Sources are compared by name, size and time, so that a changed checkout does not use digests of another.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.blake2b(repr(sys.version_info[:2]).encode(), digest_size=8)
    for name in _RULE_PACKAGES:
        for folder, folders, files in os.walk(package / name):
            folders[:] = sorted(each for each in folders if each != "__pycache__")
            for file in sorted(files):
                found = os.stat(os.path.join(folder, file))  # noqa: PTH116, PTH118 - 300 files at each start
                digest.update(f"{folder}/{file} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.digest()


def _key(path: Path) -> bytes:
    return os.fsencode(os.path.abspath(path))  # noqa: PTH100 - links are not resolved
