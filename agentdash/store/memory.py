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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from agentdash.model.events import Event, ObservationsRecalled, PanesRecalled, SourceSeen
from agentdash.model.fleet import Fleet, memory_of
from agentdash.model.memory import PastWorker, RememberedObservation, ThreadMemory, argument_digests, digest
from agentdash.model.observation import Escape
from agentdash.model.pane import Pane
from agentdash.model.requested import Requested
from agentdash.model.sanitize import clean_line, is_clean_json
from agentdash.model.secrets import mask_fields
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Snapshot, Worker
from agentdash.store.database import ForeignFileError, reading, writing
from agentdash.store.status_file import Engine

NAME: Final = "memory-2.sqlite"
"""The file, in agentdash's state directory."""
SOURCE: Final = "memory"
"""The name under which a failure is reported among the sources of a snapshot."""
_KEPT_S: Final = 30 * 86_400.0
_MAX_ROWS: Final = 40_000
"""Of facts about threads; about 20 MB."""
_MAX_PANES: Final = 500
"""Rows of panes: all of them are read at each start, in 2 ms."""
_MAX_BYTES: Final = 64 << 20
"""A larger file was not written by this module."""
_REWRITTEN_AFTER_S: Final = {"observation": 0.0, "escape": 0.0, "request": 86_400.0, "pane": 30.0}
"""By kind: how much later a fact has to be seen again to be written again."""
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS fact (
    home TEXT, owner TEXT, kind TEXT, key BLOB, fact BLOB, first REAL, last REAL,
    PRIMARY KEY (home, owner, kind, key)) WITHOUT ROWID;
"""
"""Facts about threads by home and thread; those about panes have neither."""
_INSERT: Final = (
    "INSERT INTO fact VALUES (:home, :owner, :kind, :key, :fact, :first, :last) ON CONFLICT DO UPDATE SET"
    " fact = CASE WHEN excluded.last >= last THEN excluded.fact ELSE fact END,"
    " first = min(first, excluded.first), last = max(last, excluded.last)"
)
_SELECT: Final = "SELECT home, owner, kind, key, fact, first, last FROM fact WHERE home = ? AND owner = ?"
_T = TypeVar("_T")


class MemoryFileError(Exception):
    """The file cannot be used. The message is one line."""


class _Fact(NamedTuple):
    """A row."""

    home: str
    owner: str
    kind: str
    key: bytes
    """What is the same for equal facts."""
    fact: bytes
    first: float
    last: float


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
        """The rows that this object has read or written, by owner, kind and key."""

    def threads(self, wanted: Iterable[str]) -> list[ThreadMemory]:
        """Return what is remembered of these threads.

        Raises:
            MemoryFileError: the file is there and cannot be used.
        """
        with self._errors(), reading(self.path, _TABLE, _MAX_BYTES) as database:
            if database is None:
                return []
            owners = database.execute("SELECT DISTINCT owner FROM fact WHERE home = ?", (self._home,))
            remembered = {owner for (owner,) in owners}  # few of those that are wanted
            rows = {
                thread: self._rows(database, f"{_SELECT} ORDER BY first", self._home, thread)
                for thread in wanted
                if thread in remembered
            }
        return [memory for thread in rows if (memory := _memory(thread, rows[thread])) is not None]

    def past_workers(self) -> list[PastWorker]:
        """Return the newest workers of panes, the newest last.

        Raises:
            MemoryFileError: the file is there and cannot be used.
        """
        with self._errors(), reading(self.path, _TABLE, _MAX_BYTES) as database:
            if database is None:
                return []
            rows = self._rows(database, f"{_SELECT} ORDER BY last DESC LIMIT {_MAX_PANES}", "", "")
        found = [(row, _decoded(row.fact, PastWorker)) for row in reversed(rows)]
        return [replace(past, seen=row.last) for row, past in found if past is not None]

    def _rows(self, database: sqlite3.Connection, select: str, *values: str) -> list[_Fact]:
        rows = [_Fact(*row) for row in database.execute(select, values)]
        self._known |= {(row.owner, row.kind, row.key): row for row in rows}
        return rows

    def save(self, threads: Iterable[ThreadMemory], past: Iterable[PastWorker], now: float) -> None:
        """Add what is new since this object has read or written it; nothing where files cannot be written.

        Raises:
            MemoryFileError: the file cannot be used.
        """
        facts = [fact for memory in threads for fact in _facts_of(memory, self._home, now)]
        news = [fact for fact in (*facts, *map(_pane_fact, past)) if self._is_news(fact)]
        if not news or not _is_writable(self.path.parent):
            return
        with self._errors(), writing(self.path, _TABLE, _MAX_BYTES) as database:
            database.executescript(_TABLE)
            with database:
                database.executemany(_INSERT, [fact._asdict() for fact in news])
                database.execute("DELETE FROM fact WHERE last < ?", (now - _KEPT_S,))
                _prune(database, "home = ''", _MAX_PANES)
                _prune(database, "home != ''", _MAX_ROWS)
        self._known |= {(fact.owner, fact.kind, fact.key): fact for fact in news}

    def _is_news(self, fact: _Fact) -> bool:
        known = self._known.get((fact.owner, fact.kind, fact.key))
        if known is None or fact.fact != known.fact or fact.first < known.first:
            return True
        return fact.last > known.last + _REWRITTEN_AFTER_S[fact.kind]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ForeignFileError as error:
            raise MemoryFileError(f"not believed: {self.path}: {error}") from error
        except (sqlite3.Error, OSError) as error:
            raise MemoryFileError(f"{self.path} cannot be used: {error}") from error


def _facts_of(memory: ThreadMemory, home: str, now: float) -> Iterator[_Fact]:
    def fact(kind: str, value: object, first: float, last: float, key: bytes | None = None) -> _Fact:
        encoded = msgspec.json.encode(mask_fields(value))
        return _Fact(home, memory.thread, kind, encoded if key is None else key, encoded, first, last)

    for each in memory.observations:
        seen = each.observation
        # without what differs between equal ones
        essence = replace(seen, policy=-1, first=0.0, last=0.0, count=1, calls=(), pids=())
        yield fact("observation", replace(each, observation=essence), seen.first, seen.last)
    for escape in memory.escapes:
        yield fact("escape", escape, escape.at, escape.at)
    for request in memory.requests:
        since = request.since or 0.0
        yield fact("request", request, since, now, key=b"%f" % since)


def _pane_fact(past: PastWorker) -> _Fact:
    fact = msgspec.json.encode(mask_fields(replace(past, seen=0.0)))
    key = f"{past.pane.server} {past.pane.id} {past.server_pid} {past.worker}"
    return _Fact("", "", "pane", key.encode(), fact, past.seen, past.seen)


def _memory(thread: str, rows: Sequence[_Fact]) -> ThreadMemory | None:
    """Return what rows have of a thread, or None if another version, or another program, wrote them."""
    observations, escapes, requests = [], [], []
    for row in rows:
        match row.kind:
            case "observation" if (known := _decoded(row.fact, RememberedObservation)) is not None:
                seen = replace(known.observation, first=row.first, last=row.last)
                observations.append(replace(known, observation=seen))
            case "escape" if (escape := _decoded(row.fact, Escape)) is not None:
                escapes.append(escape)
            case "request" if (request := _decoded(row.fact, Requested)) is not None:
                requests.append(request)
    if not (observations or escapes or requests):
        return None
    return ThreadMemory(thread, tuple(observations), tuple(escapes), tuple(requests))


def _is_writable(folder: Path) -> bool:
    """Return whether files can be created in a directory, or the directory itself can be created."""
    existing = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    return os.access(existing, os.W_OK)


def _prune(database: sqlite3.Connection, where: str, limit: int) -> None:
    """Drop the oldest rows beyond a number."""
    # the texts are those of this module
    oldest = f"SELECT last FROM fact WHERE {where} ORDER BY last DESC LIMIT 1 OFFSET ?"  # noqa: S608
    found = database.execute(oldest, (limit,)).fetchone()
    if found is not None:
        database.execute(f"DELETE FROM fact WHERE {where} AND last <= ?", found)  # noqa: S608


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
        self._saved: dict[str, tuple[Thread, tuple[Requested, ...]]] = {}
        """Threads and their requests, as saved last."""
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
                    detail = failure or "written again"
                    seen = SourceSeen(at=self._clock.now(), name=SOURCE, ok=failure is None, detail=detail)
                    hub.emit([seen])
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
        self._memory.save(self._changed_threads(fleet), workers, self._clock.now())
        self._fleet = fleet
        self._snapshot = snapshot

    def _changed_threads(self, fleet: Fleet) -> Iterator[ThreadMemory]:
        for thread in fleet.threads.values():
            now = (thread, fleet.requests.get(thread.id, ()))
            before = self._saved.get(thread.id)
            if before is None or before[0] is not now[0] or before[1] is not now[1]:
                self._saved[thread.id] = now
                yield replace(memory_of(thread), requests=now[1])


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
        arguments=argument_digests(occupant.process.argv) if occupant else (),
    )


class MemorySource:
    """Recalls what the memory file has of panes, once, or of each thread as it becomes known.

    A single pass polls that of panes before these are linked to threads, and that of threads behind all
    sources that name threads.

    Args:
        memory: the file.
        clock: the time of the events.
        of_threads: whether it is that of threads.
    """

    name = SOURCE

    def __init__(self, memory: Memory, clock: Clock, *, of_threads: bool) -> None:
        self._memory = memory
        self._clock = clock
        self._of_threads = of_threads
        self._recalled: set[str] = set()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what is remembered, or the source's health where the file cannot be used."""
        new = fleet.threads.keys() - self._recalled
        self._recalled |= new
        return await asyncio.to_thread(self._read, new)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what is remembered; of threads as they appear."""
        fleet = channel.value
        emit(await self.poll(fleet))
        while self._of_threads:
            fleet = await channel.wait_for_change(fleet)
            if fleet.threads.keys() - self._recalled:
                emit(await self.poll(fleet))

    def _read(self, threads: set[str]) -> list[Event]:
        at = self._clock.now()
        try:
            if self._of_threads:
                return [ObservationsRecalled(at=at, memory=each) for each in self._memory.threads(threads)]
            workers = tuple(self._memory.past_workers())
        except MemoryFileError as error:
            return [SourceSeen(at=at, name=self.name, ok=False, detail=clean_line(str(error)))]
        return [PanesRecalled(at=at, workers=workers)] if workers else []
