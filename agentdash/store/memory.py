"""Remember observations and pane occupants across restarts, in one small SQLite file.

The kernel facts of a command, and which worker ran in which pane, are gone with the process. A one-shot
command, or a dashboard that is started a second later, reads them here. The file has no message texts and no
secrets. Rows are dropped after 30 days, and the oldest ones when there are too many. Several processes may
write at once.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from agentdash.model.memory import PastWorker, ThreadMemory
from agentdash.model.observation import Escape, SandboxObservation

NAME: Final = "memory.sqlite"
"""The file, in agentdash's state directory."""
_VERSION: Final = 1
"""Of the tables. A file of another version is left alone and reported."""
_KEPT_S: Final = 30 * 86_400.0
_MAX_ROWS: Final = 20_000
"""Of each table; about 10 MB."""
_BUSY_TIMEOUT_S: Final = 0.5
"""For another writer; then the write is put off to the next time."""
_MAX_BYTES: Final = 64 << 20
"""A larger file was not written by this module."""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS observation (
    home TEXT, thread TEXT, fact BLOB, first REAL, last REAL, PRIMARY KEY (home, thread, fact)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tmux_escape (
    home TEXT, thread TEXT, fact BLOB, last REAL, PRIMARY KEY (home, thread, fact)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pane (
    server TEXT, pane TEXT, server_pid INTEGER, worker TEXT, fact BLOB, last REAL,
    PRIMARY KEY (server, pane, server_pid, worker)) WITHOUT ROWID;
"""
_T = TypeVar("_T")


class MemoryFileError(Exception):
    """The file cannot be used. The message is one line."""


class Memory:
    """The file of one state directory, for one Codex home.

    Args:
        folder: agentdash's state directory; it is created with mode 0700 when something is written.
        home: the Codex home whose threads are meant.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        self.path = folder / NAME
        self._home = str(home)

    def threads(self, wanted: Iterable[str] | None = None) -> list[ThreadMemory]:
        """Return what is remembered of threads: of all, or of these.

        Raises:
            MemoryFileError: the file is there and cannot be used.
        """
        names = None if wanted is None else set(wanted)
        found: dict[str, ThreadMemory] = {}
        with self._reading() as database:
            if database is None:
                return []
            query = "SELECT thread, fact, first, last FROM observation WHERE home = ? ORDER BY first"
            for thread, fact, first, last in database.execute(query, (self._home,)):
                if names is not None and thread not in names:
                    continue
                observation = _decoded(fact, SandboxObservation)
                if observation is not None:
                    memory = found.get(thread) or ThreadMemory(thread)
                    restored = replace(observation, first=first, last=last)
                    found[thread] = replace(memory, observations=(*memory.observations, restored))
            for thread, fact in database.execute(
                "SELECT thread, fact FROM tmux_escape WHERE home = ? ORDER BY last", (self._home,)
            ):
                if (names is None or thread in names) and (escape := _decoded(fact, Escape)) is not None:
                    memory = found.get(thread) or ThreadMemory(thread)
                    found[thread] = replace(memory, escapes=(*memory.escapes, escape))
        return list(found.values())

    def past_workers(self) -> list[PastWorker]:
        """Return the workers of panes, the newest last.

        Raises:
            MemoryFileError: the file is there and cannot be used.
        """
        with self._reading() as database:
            if database is None:
                return []
            rows = database.execute("SELECT fact FROM pane ORDER BY last")
            return [past for (fact,) in rows if (past := _decoded(fact, PastWorker)) is not None]

    def save(self, threads: Iterable[ThreadMemory], past: Iterable[PastWorker], now: float) -> None:
        """Add facts, or renew those that are known.

        Raises:
            MemoryFileError: the file cannot be written.
        """
        observations = [
            (self._home, memory.thread, _essence(each), each.first, each.last)
            for memory in threads
            for each in memory.observations
        ]
        escapes = [
            (self._home, memory.thread, msgspec.json.encode(each), each.at)
            for memory in threads
            for each in memory.escapes
        ]
        panes = [
            (
                each.pane.server,
                each.pane.id,
                each.server_pid or 0,
                each.worker,
                msgspec.json.encode(each),
                each.seen,
            )
            for each in past
        ]
        with self._writing() as database:
            database.executemany(
                "INSERT INTO observation VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "first = min(first, excluded.first), last = max(last, excluded.last)",
                observations,
            )
            database.executemany(
                "INSERT INTO tmux_escape VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET last = excluded.last",
                escapes,
            )
            database.executemany(
                "INSERT INTO pane VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "fact = excluded.fact, last = excluded.last WHERE excluded.last >= last",
                panes,
            )
            _prune(database, now)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        if not self.path.exists():
            yield None
            return
        with self._errors():
            if not self.path.is_file() or self.path.stat().st_size > _MAX_BYTES:
                raise MemoryFileError(f"{self.path} is not a file of agentdash")
            uri = f"{self.path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S)) as database:
                _check_version(database, self.path)
                yield database

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._errors():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _create(self.path)
            with closing(sqlite3.connect(self.path, timeout=_BUSY_TIMEOUT_S)) as database:
                if database.execute("PRAGMA user_version").fetchone()[0] == 0:
                    database.executescript(_TABLES + f"PRAGMA user_version = {_VERSION};")
                _check_version(database, self.path)
                database.execute("PRAGMA synchronous = OFF")  # losing a second costs less than a slow disk
                with database:
                    yield database

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise MemoryFileError(f"{self.path} cannot be used: {error}") from error


def _create(path: Path) -> None:
    """Create the file, readable by its owner alone, where it is missing; never follow a link or open a device."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise MemoryFileError(f"{path} is not a regular file")
    finally:
        os.close(descriptor)


def _check_version(database: sqlite3.Connection, path: Path) -> None:
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version != _VERSION:
        raise MemoryFileError(f"{path} has version {version}, this agentdash reads version {_VERSION}")


def _prune(database: sqlite3.Connection, now: float) -> None:
    for table in ("observation", "tmux_escape", "pane"):
        database.execute(f"DELETE FROM {table} WHERE last < ?", (now - _KEPT_S,))  # noqa: S608 - names above
        count = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        if count > _MAX_ROWS:
            oldest = f"SELECT last FROM {table} ORDER BY last LIMIT 1 OFFSET ?"  # noqa: S608
            (limit,) = database.execute(oldest, (count - _MAX_ROWS,)).fetchone()
            database.execute(f"DELETE FROM {table} WHERE last < ?", (limit,))  # noqa: S608


def _essence(observation: SandboxObservation) -> bytes:
    """Return the observation without what differs between equal ones: that is the row's key."""
    return msgspec.json.encode(
        replace(observation, policy=-1, first=0.0, last=0.0, count=1, calls=(), pids=())
    )


def _decoded(fact: bytes, kind: type[_T]) -> _T | None:
    """Decode a fact; None where another version wrote it."""
    try:
        return msgspec.json.decode(fact, type=kind)
    except (msgspec.DecodeError, TypeError, RecursionError):
        return None
