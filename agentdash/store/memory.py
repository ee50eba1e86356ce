"""Remember observations and pane occupants across restarts, in one small SQLite file.

The kernel facts of a command, and which worker ran in which pane, are gone with the process. A one-shot
command, or a dashboard that is started a second later, reads them here. The file has no message texts and no
secrets. Rows are dropped after 30 days, and the oldest ones when there are too many. Several processes may
write at once.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from agentdash.model.events import Event, ObservationsRecalled, PanesRecalled, SourceSeen
from agentdash.model.fleet import Fleet, memory_of
from agentdash.model.memory import PastWorker, RememberedObservation, ThreadMemory, argument_digests, digest
from agentdash.model.observation import Escape
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.requested import Requested
from agentdash.model.sanitize import clean_line, is_clean_json
from agentdash.model.secrets import mask_fields
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Snapshot, Worker
from agentdash.store.database import ForeignFileError, reading, writing
from agentdash.store.status_file import Engine

NAME: Final = "memory.sqlite"
"""The file, in agentdash's state directory."""
SOURCE: Final = "memory"
"""The name under which a failure is reported among the sources of a snapshot."""
_VERSION: Final = 1
"""Of the tables. A file of another version is left alone and reported."""
_KEPT_S: Final = 30 * 86_400.0
_MAX_ROWS: Final = 20_000
"""Of observations, and of escapes; about 10 MB."""
_MAX_PANES: Final = 500
"""Rows of panes: all of them are read at each start, in 2 ms."""
_MAX_BYTES: Final = 64 << 20
"""A larger file was not written by this module."""
_SEEN_INTERVAL_S: Final = 30.0
"""Between two writes of a worker when nothing but the time of the last look differs."""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS observation (
    home TEXT, thread TEXT, fact BLOB, first REAL, last REAL, PRIMARY KEY (home, thread, fact)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tmux_escape (
    home TEXT, thread TEXT, fact BLOB, last REAL, PRIMARY KEY (home, thread, fact)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS request (
    home TEXT, thread TEXT, since REAL, fact BLOB, last REAL, PRIMARY KEY (home, thread, since)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pane (
    server TEXT, pane TEXT, server_pid INTEGER, worker TEXT, fact BLOB, last REAL,
    PRIMARY KEY (server, pane, server_pid, worker)) WITHOUT ROWID;
"""
_INSERTS: Final = {
    "observation": "INSERT INTO observation VALUES (:home, :thread, :fact, :first, :last)"
    " ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)",
    "tmux_escape": "INSERT INTO tmux_escape VALUES (:home, :thread, :fact, :last)"
    " ON CONFLICT DO UPDATE SET last = excluded.last",
    "request": "INSERT INTO request VALUES (:home, :thread, :first, :fact, :last)"
    " ON CONFLICT DO UPDATE SET fact = excluded.fact",
}
"""By table: how a fact about a thread is added."""
_INSERT_PANE: Final = (
    "INSERT INTO pane VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " fact = excluded.fact, last = excluded.last WHERE excluded.last >= last"
)
_SELECTS: Final = {
    "observation": "SELECT fact, first, last FROM observation WHERE home = ? AND thread = ? ORDER BY first",
    "tmux_escape": "SELECT fact, last, last FROM tmux_escape WHERE home = ? AND thread = ? ORDER BY last",
    "request": "SELECT fact, since, last FROM request WHERE home = ? AND thread = ? ORDER BY since",
}
_SELECT_THREADS: Final = (
    "SELECT thread FROM observation WHERE home = :home"
    " UNION SELECT thread FROM tmux_escape WHERE home = :home"
    " UNION SELECT thread FROM request WHERE home = :home"
)
_HAS_REQUESTS: Final = "SELECT 1 FROM sqlite_master WHERE name = 'request'"
"""agentdash 0.1.0 made no such table."""
_T = TypeVar("_T")


class MemoryFileError(Exception):
    """The file cannot be used. The message is one line."""


class _Fact(NamedTuple):
    """A row about a thread."""

    table: str
    thread: str
    fact: bytes
    first: float
    last: float

    @property
    def key(self) -> tuple[str, str, bytes]:
        """Return what is the same for equal facts."""
        return self.table, self.thread, self.fact


class Memory:
    """The file of one state directory, for one Codex home.

    Args:
        folder: agentdash's state directory; it is created with mode 0700 when something is written.
        home: the Codex home whose threads are meant.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        self.path = folder / NAME
        self._home = str(home)
        self._known: dict[tuple[str, str, bytes], _Fact] = {}
        """The facts about threads that this object has read or written."""
        self._panes: dict[tuple[PaneKey, str], PastWorker] = {}
        """The same of panes."""

    def changed_at(self) -> int | None:
        """Return when the file was changed last (ns), or None if it cannot be told."""
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return None

    def threads(self, wanted: Iterable[str]) -> list[ThreadMemory]:
        """Return what is remembered of these threads.

        Raises:
            MemoryFileError: the file is there and cannot be used.
        """
        with self._reading() as database:
            if database is None:
                return []
            # few of those that there are
            remembered = {thread for (thread,) in database.execute(_SELECT_THREADS, {"home": self._home})}
            found = [self._thread(database, thread) for thread in wanted if thread in remembered]
            return [memory for memory in found if memory != ThreadMemory(memory.thread)]

    def _thread(self, database: sqlite3.Connection, thread: str) -> ThreadMemory:
        observations = [
            replace(known, observation=replace(known.observation, first=row.first, last=row.last))
            for known, row in self._facts(database, "observation", thread, RememberedObservation)
        ]
        escapes = [escape for escape, _ in self._facts(database, "tmux_escape", thread, Escape)]
        requests = [request for request, _ in self._facts(database, "request", thread, Requested)]
        return ThreadMemory(thread, tuple(observations), tuple(escapes), tuple(requests))

    def _facts(
        self, database: sqlite3.Connection, table: str, thread: str, kind: type[_T]
    ) -> Iterator[tuple[_T, _Fact]]:
        for fact, first, last in database.execute(_SELECTS[table], (self._home, thread)):
            if (decoded := _decoded(fact, kind)) is not None:
                row = _Fact(table, thread, fact, first, last)
                self._known[row.key] = row
                yield decoded, row

    def past_workers(self, limit: int = _MAX_PANES) -> list[PastWorker]:
        """Return the newest workers of panes, the newest last.

        Raises:
            MemoryFileError: the file is there and cannot be used.
        """
        with self._reading() as database:
            if database is None:
                return []
            rows = database.execute("SELECT fact FROM pane ORDER BY last DESC LIMIT ?", (limit,)).fetchall()
            found = [past for (fact,) in reversed(rows) if (past := _decoded(fact, PastWorker)) is not None]
        self._panes |= {(past.pane, past.worker): past for past in found}
        return found

    def save(self, threads: Iterable[ThreadMemory], past: Iterable[PastWorker], now: float) -> None:
        """Add what is new since this object has read or written it; nothing where files cannot be written.

        Raises:
            MemoryFileError: the file cannot be used.
        """
        facts = [fact for memory in threads for fact in _facts_of(memory, now) if self._is_news(fact)]
        panes = [each for each in past if self._is_new(each)]
        if not (facts or panes) or not _is_writable(self.path.parent):
            return
        with self._writing() as database:
            for fact in facts:
                database.execute(_INSERTS[fact.table], {"home": self._home, **fact._asdict()})
            database.executemany(_INSERT_PANE, [_pane_row(each) for each in panes])
            _prune(database, now)
        self._known |= {fact.key: fact for fact in facts}
        self._panes |= {(each.pane, each.worker): each for each in panes}

    def _is_news(self, fact: _Fact) -> bool:
        known = self._known.get(fact.key)
        if known is None or fact.table != "observation":
            return known is None
        return fact.first < known.first or fact.last > known.last

    def _is_new(self, past: PastWorker) -> bool:
        known = self._panes.get((past.pane, past.worker))
        if known is None:
            return True
        return replace(known, seen=past.seen) != past or past.seen - known.seen >= _SEEN_INTERVAL_S

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        with self._errors(), reading(self.path, _TABLES, _MAX_BYTES) as database:
            if database is not None:
                _check_version(database, self.path)
            has_all = database is not None and database.execute(_HAS_REQUESTS).fetchone() is not None
            yield database if has_all else None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), writing(self.path, _TABLES, _MAX_BYTES) as database:
            if database.execute("PRAGMA user_version").fetchone()[0] == 0:
                database.execute(f"PRAGMA user_version = {_VERSION}")
            _check_version(database, self.path)
            database.executescript(_TABLES)
            with database:
                yield database

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ForeignFileError as error:
            raise MemoryFileError(f"not believed: {self.path}: {error}") from error
        except (sqlite3.Error, OSError) as error:
            raise MemoryFileError(f"{self.path} cannot be used: {error}") from error


def _facts_of(memory: ThreadMemory, now: float) -> Iterator[_Fact]:
    for each in memory.observations:
        seen = each.observation
        yield _Fact("observation", memory.thread, _essence(each), seen.first, seen.last)
    for escape in memory.escapes:
        fact = msgspec.json.encode(mask_fields(escape))
        yield _Fact("tmux_escape", memory.thread, fact, escape.at, escape.at)
    for request in memory.requests:
        fact = msgspec.json.encode(mask_fields(request))
        yield _Fact("request", memory.thread, fact, request.since or 0.0, now)


def _pane_row(past: PastWorker) -> tuple[str, str, int, str, bytes, float]:
    key, fact = past.pane, msgspec.json.encode(mask_fields(past))
    return key.server, key.id, past.server_pid or 0, past.worker, fact, past.seen


def _is_writable(folder: Path) -> bool:
    """Return whether files can be created in a directory, or the directory itself can be created."""
    existing = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    return os.access(existing, os.W_OK)


def _check_version(database: sqlite3.Connection, path: Path) -> None:
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version != _VERSION:
        raise MemoryFileError(f"{path} has version {version}, this agentdash reads version {_VERSION}")


def _prune(database: sqlite3.Connection, now: float) -> None:
    limits = {"observation": _MAX_ROWS, "tmux_escape": _MAX_ROWS, "request": _MAX_ROWS, "pane": _MAX_PANES}
    for table, limit in limits.items():
        database.execute(f"DELETE FROM {table} WHERE last < ?", (now - _KEPT_S,))  # noqa: S608 - names above
        count = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
        if count > limit:
            oldest = f"SELECT last FROM {table} ORDER BY last LIMIT 1 OFFSET ?"  # noqa: S608
            (kept,) = database.execute(oldest, (count - limit,)).fetchone()
            database.execute(f"DELETE FROM {table} WHERE last < ?", (kept,))  # noqa: S608


def _essence(known: RememberedObservation) -> bytes:
    """Return the observation without what differs between equal ones: that is the row's key."""
    essence = replace(known.observation, policy=-1, first=0.0, last=0.0, count=1, calls=(), pids=())
    return msgspec.json.encode(mask_fields(replace(known, observation=essence)))


def _decoded(fact: bytes, kind: type[_T]) -> _T | None:
    """Decode a fact, or None if another version, or another program, wrote it."""
    try:
        return msgspec.json.decode(fact, type=kind) if is_clean_json(fact) else None
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, TypeError, RecursionError):
        return None


_SAVE_INTERVAL_S: Final = 1.0
"""Between two writes."""
_CHECK_INTERVAL_S: Final = 10.0
"""Between two looks at the fleet while no snapshot differs: what is saved hardly changes then."""


class MemoryKeeper:
    """Writes the memory file of a Codex home.

    Args:
        memory: the file.
        clock: the time of the rows.
    """

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._threads: Mapping[str, Thread] = {}
        """Of the newest fleet that was looked through."""
        self._fleet: Fleet | None = None
        self._snapshot: Snapshot | None = None
        self._failure: str | None = None

    async def keep(self, hub: Engine) -> None:
        """Save what the hub sees until cancelled, and once more then; a failure is reported as a source."""
        try:
            while True:
                await asyncio.sleep(_SAVE_INTERVAL_S)
                snapshot = hub.snapshot
                failure = await asyncio.to_thread(self.save, hub.fleet, snapshot)
                if failure != self._failure:
                    self._failure = failure
                    hub.emit([self._health(failure)])
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_INTERVAL_S):
                        await hub.wait_for_snapshot(snapshot)
        finally:
            self.save(hub.fleet, hub.snapshot)

    def save(self, fleet: Fleet, snapshot: Snapshot | None) -> str | None:
        """Save what is new in a fleet; return the error message if the file cannot be used."""
        is_unchanged = fleet is self._fleet and snapshot is self._snapshot
        if snapshot is None or fleet.processes_at is None or is_unchanged:
            return self._failure
        try:
            self._save(fleet, snapshot)
        except MemoryFileError as error:
            return clean_line(str(error))
        return None

    def _save(self, fleet: Fleet, snapshot: Snapshot) -> None:
        present = (
            _present(worker, worker.pane, fleet, snapshot.at)
            for worker in snapshot.workers
            if worker.pane is not None and worker.host is None and worker.state is not State.UNREACHABLE
        )
        workers = (*fleet.past_workers.values(), *present)
        self._memory.save(list(self._changed_threads(fleet)), workers, self._clock.now())
        self._fleet = fleet
        self._snapshot = snapshot

    def _health(self, failure: str | None) -> SourceSeen:
        return SourceSeen(
            at=self._clock.now(), name=SOURCE, ok=failure is None, detail=failure or "written again"
        )

    def _changed_threads(self, fleet: Fleet) -> Iterator[ThreadMemory]:
        requests = self._fleet.requests if self._fleet else {}
        if fleet.threads is not self._threads or fleet.requests is not requests:
            for thread in fleet.threads.values():
                asked = fleet.requests.get(thread.id, ())
                is_unchanged = self._threads.get(thread.id) is thread and requests.get(thread.id, ()) is asked
                if not is_unchanged and (thread.observations or thread.escapes or asked):
                    yield replace(memory_of(thread), requests=asked)
        self._threads = fleet.threads


def _present(worker: Worker, pane: Pane, fleet: Fleet, at: float) -> PastWorker:
    """Return what is kept of a worker that is in a pane now."""
    occupant, link = fleet.occupants.get(pane.key), fleet.links.panes.get(worker.id)
    decisive = worker.assessment.evidence[0] if worker.assessment.evidence else None
    return PastWorker(
        pane=pane.key,
        worker=worker.id,
        agent=worker.agent.name,
        seen=at,
        server_pid=pane.server_pid,
        name=pane.window,
        cwd=worker.cwd,
        pid=occupant.key.pid if occupant and not (link and link.claimed) else None,
        own=link is not None and (link.own or link.claimed),
        state=worker.state,
        since=worker.assessment.since,
        rule=decisive.rule if decisive else "",
        words=digest(decisive.text) if decisive else "",
        ended_at=occupant.gone_at if occupant else None,
        started=occupant.key.started if occupant else None,
        arguments=argument_digests(occupant.process.argv) if occupant and occupant.process else (),
    )


_REREAD_INTERVAL_S: Final = 1.0
_REREAD_PANES: Final = 50
"""The newest ones, which may have come and gone since."""


class _MemorySource:
    """Reads the memory file.

    Args:
        memory: the file.
        clock: the time of the events.
    """

    name = SOURCE

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock

    def _read(self, read: Callable[[], Sequence[Event]]) -> Sequence[Event]:
        """Return the events; the failure as the source's health where the file cannot be used."""
        try:
            return read()
        except MemoryFileError as error:
            failure = clean_line(str(error))
            return [SourceSeen(at=self._clock.now(), name=self.name, ok=False, detail=failure)]


class PaneMemorySource(_MemorySource):
    """Recalls the workers of panes. A single pass polls it before panes are linked to threads."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what is remembered of panes."""
        del fleet
        return self._read(self._panes)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what is remembered of panes, and then what other agentdashes saw of panes that are not there
        any more."""
        emit(await asyncio.to_thread(self._read, self._panes))
        read = self._memory.changed_at()
        while True:
            await asyncio.sleep(_REREAD_INTERVAL_S)
            if (changed := self._memory.changed_at()) != read:
                read = changed
                emit(await asyncio.to_thread(self._read, partial(self._unseen, channel.value)))

    def _panes(self) -> Sequence[Event]:
        return self._recalled(self._memory.past_workers())

    def _unseen(self, fleet: Fleet) -> Sequence[Event]:
        past = self._memory.past_workers(_REREAD_PANES)
        return self._recalled(
            [each for each in past if each.pane not in fleet.panes and each.pane not in fleet.past_workers]
        )

    def _recalled(self, workers: Sequence[PastWorker]) -> Sequence[Event]:
        return [PanesRecalled(at=self._clock.now(), workers=tuple(workers))] if workers else []


class ThreadMemorySource(_MemorySource):
    """Recalls the observations of each thread once it is known. A single pass polls it behind all sources
    that name threads."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        super().__init__(memory, clock)
        self._recalled: set[str] = set()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what is remembered of the threads that are known."""
        return self._read(partial(self._threads, fleet.threads))

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what is remembered of threads as they appear."""
        fleet = channel.value
        while True:
            if new := fleet.threads.keys() - self._recalled:
                emit(await asyncio.to_thread(self._read, partial(self._threads, new)))
            fleet = await channel.wait_for_change(fleet)

    def _threads(self, threads: Iterable[str]) -> Sequence[Event]:
        names = set(threads)
        self._recalled |= names
        at = self._clock.now()
        return [ObservationsRecalled(at=at, memory=memory) for memory in self._memory.threads(names)]
