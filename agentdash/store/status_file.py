"""The status file: the fleet as an agentdash outside a sandbox sees it, for those that run inside one.

One file for each Codex home, `status-<hash of its path>.json` in agentdash's state directory: a snapshot
without screens and timelines, its writer, and the time. It is replaced whole when the fleet has changed, at
most once a second, and from time to time when it has not, so that its age has a meaning. Its writer holds a
lock beside it. A file that others may have written, or with a time in the future, is not believed.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

from agentdash import __version__
from agentdash.config import state_folder
from agentdash.files import ensure_private_directory, read_bytes, untrusted, write_private
from agentdash.model.events import Event, SourceSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line, is_clean_json
from agentdash.model.secrets import mask_fields
from agentdash.model.source import Clock, Emit
from agentdash.model.states import State
from agentdash.model.times import ago, possible_time
from agentdash.model.worker import Assessment, Snapshot, Worker
from agentdash.store.line_file import line_content, line_path

HEARTBEAT: Final = 15.0
"""Seconds after which the file is written again although nothing has changed."""
TOO_OLD: Final = 60.0
"""Seconds after which a file is outdated: its writer has ended, or hangs."""
_MAX_CLOCK_SKEW_S: Final = 5.0
"""How far in the future a file may be written: clocks are corrected in small steps."""
START: Final = "start `agentdash publish`, or the dashboard, outside the sandbox"
_WRITE_INTERVAL_S: Final = 1.0
"""Shortest time between two writes."""
_WRITE_COST_FACTOR: Final = 100
"""Least pause between two writes, as a multiple of the time that one takes: at most 1 % of a core."""
_MAX_WRITE_INTERVAL_S: Final = 5.0
_CHECK_INTERVAL_S: Final = 5.0
"""Between two checks of the file while nothing changes: its writer may have ended, or it may be gone."""
_MAX_CALLS: Final = 5
"""Calls kept of each worker."""
_MAX_FILE_BYTES: Final = 64 << 20
"""Size above which a file is malformed: 1,000 workers take about 5 MB."""


class Engine(Protocol):
    """What a publisher reads from the engine, and reports its health to."""

    @property
    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; None before the first."""
        ...

    @property
    def fleet(self) -> Fleet:
        """Return the newest fleet."""
        ...

    async def wait_for_snapshot(self, last: Snapshot | None) -> Snapshot | None:
        """Return the newest snapshot as soon as it is not `last`."""
        ...

    def emit(self, events: Sequence[Event]) -> None:
        """Accept events."""
        ...


class UnpublishedError(Exception):
    """There is no usable status file; the message has the reason and the remedy, in one line."""


class Published(msgspec.Struct, frozen=True):
    """The content of the file."""

    schema: Literal["agentdash.published/1"]
    version: str
    """Of the agentdash that wrote it."""
    pid: int
    home: str
    """The Codex home."""
    written_at: float
    """Unix seconds."""
    snapshot: Snapshot

    def age(self, now: float) -> float:
        """Return the seconds since it was written."""
        return max(0.0, now - self.written_at)


def status_file(home: Path) -> Path:
    """Return the path of the status file of a Codex home."""
    path = str(home.expanduser().resolve())
    return state_folder() / f"status-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.json"


def read_published(path: Path) -> Published:
    """Return the content of the file, however old.

    Raises:
        UnpublishedError: it does not exist, cannot be read, or may have been written by others.
    """
    try:
        if (problem := untrusted(path)) is not None:
            raise UnpublishedError(f"the status file is not believed ({clean_line(problem)}): {START}")
        content = read_bytes(path, _MAX_FILE_BYTES, follow=False)
        if not is_clean_json(content):
            raise UnpublishedError(f"the status file is not believed (it has control characters): {START}")
        return msgspec.json.decode(content, type=Published)
    except FileNotFoundError:
        raise UnpublishedError(f"there is no status file: {START}") from None
    except OSError as error:
        raise UnpublishedError(
            f"{clean_line(str(path))} cannot be read ({error.strerror}): {START}"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnpublishedError(
            f"{clean_line(str(path))} is of another version of agentdash: restart the one that writes it"
        ) from error


def current_files(now: float) -> dict[Path, Published]:
    """Return the status files of all Codex homes that are not outdated."""
    found: dict[Path, Published] = {}
    for path in sorted(state_folder().glob("status-*.json")):
        with suppress(UnpublishedError):
            published = read_published(path)
            if outdated(published, now) is None:
                found[path] = published
    return found


def outdated(published: Published, now: float) -> str | None:
    """Return why the file does not show the present, and the remedy, or None if it does."""
    if possible_time(published.written_at) is None or published.written_at > now + _MAX_CLOCK_SKEW_S:
        return f"the status file was written in the future, or the clock was set back: {START}"
    if published.age(now) <= TOO_OLD:
        return None
    return f"the status file was written {ago(now, published.written_at)} ago: {START}"


def unreachable(worker: Worker, why: str, at: float) -> Worker:
    """Return a worker as unreachable: nothing can be known of it inside the sandbox."""
    evidence = Evidence(EvidenceSource.STATUS_FILE, at, "no-status-file", why, agrees=True)
    return replace(worker, assessment=Assessment(State.UNREACHABLE, None, why, (evidence,)))


# ---------------------------------------------------------------- writing


class Publisher:
    """Writes the status file of a Codex home.

    Args:
        home: the Codex home.
        clock: the time of writing.
    """

    def __init__(self, home: Path, clock: Clock) -> None:
        self.path = status_file(home)
        self._home = clean_line(str(home.expanduser().resolve()))
        self._clock = clock
        self._last_snapshot: Snapshot | None = None
        self._written: dict[str, tuple[Worker, Worker]] = {}
        """Workers of that snapshot by their ids, and as they were written."""
        self._written_at = 0.0
        self._lock: int | None = None
        """Descriptor of the lock, while this process is the writer."""
        self._identity: tuple[int, int] | None = None
        """Of the file as written by this process."""
        self._health: tuple[bool, str] = (True, "written")
        """As emitted last."""

    async def keep(self, hub: Engine) -> None:
        """Write the hub's snapshots until cancelled; then remove the file. A file that another agentdash
        writes is left alone."""
        try:
            while True:
                snapshot = hub.snapshot
                began = time.monotonic()
                if snapshot is not None and hub.fleet.processes_at is not None:
                    self._publish(snapshot, hub.emit)
                affordable = _WRITE_COST_FACTOR * (time.monotonic() - began)
                await asyncio.sleep(max(_WRITE_INTERVAL_S, min(affordable, _MAX_WRITE_INTERVAL_S)))
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_INTERVAL_S):
                        await hub.wait_for_snapshot(snapshot)
        finally:
            self.withdraw()

    def write(self, snapshot: Snapshot) -> None:
        """Replace the file.

        Raises:
            OSError: it cannot be written.
        """
        now = self._clock.now()
        written = {worker.id: (worker, self._as_written(worker)) for worker in snapshot.workers}
        self._written = written
        masked: Snapshot = mask_fields(replace(snapshot, workers=()))
        published = Published(
            schema="agentdash.published/1",
            version=__version__,
            pid=os.getpid(),
            home=self._home,
            written_at=now,
            snapshot=replace(masked, workers=tuple(each for _, each in written.values())),
        )
        self._identity = _identity(write_private(self.path, msgspec.json.encode(published)))
        write_private(line_path(self.path), line_content(snapshot, home=self._home, written_at=now))
        self._last_snapshot = snapshot
        self._written_at = now

    def _as_written(self, worker: Worker) -> Worker:
        """Return a worker without secrets, and without what is long and not shown by `status`."""
        before, written = self._written.get(worker.id, (None, None))
        if before is worker and written is not None:
            return written
        pane = replace(worker.pane, screen=()) if worker.pane else None
        shown = replace(worker, pane=pane, calls=worker.calls[:_MAX_CALLS], moments=())
        changes = {
            name: getattr(written, name)
            if getattr(before, name, self) is getattr(worker, name)
            else mask_fields(getattr(shown, name))
            for name in Worker.__struct_fields__
        }
        return replace(worker, **changes)

    def keeper(self) -> int | None:
        """Return the pid of another agentdash that writes the file, or None: this one does, from now on.

        Raises:
            OSError: there can be no lock.
        """
        while self._lock is None:
            ensure_private_directory(self.path.parent)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            lock = os.open(self._lock_path, flags, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.pread(lock, 20, 0)
                os.close(lock)
                return int(pid) if pid.isdigit() else 0
            if os.fstat(lock).st_nlink:  # else its writer has removed it in between
                self._lock = lock
                try:
                    os.ftruncate(lock, 0)
                    os.pwrite(lock, b"%d" % os.getpid(), 0)
                except OSError:  # a full disk: else this process would take its own lock for another's
                    self.withdraw()
                    raise
            else:
                os.close(lock)
        return None

    def withdraw(self) -> None:
        """Remove the files that this process wrote, and let another one write them."""
        lock, self._lock = self._lock, None
        with suppress(OSError):
            if self._is_own():
                self.path.unlink()
                line_path(self.path).unlink()
        if lock is not None:
            with suppress(OSError):
                self._lock_path.unlink()
            os.close(lock)

    @property
    def _lock_path(self) -> Path:
        return self.path.with_suffix(".lock")

    def _publish(self, snapshot: Snapshot, emit: Emit) -> None:
        try:
            keeper = self.keeper()
            if keeper is not None:
                self._emit_health(emit, ok=True, detail=f"pid {keeper} writes it")
                return
            is_due = self._clock.now() - self._written_at >= HEARTBEAT
            if is_due or snapshot is not self._last_snapshot or not self._is_own():
                self.write(snapshot)
        except OSError as error:
            detail = f"{self.path} cannot be written: {error.strerror or error}"
            self._emit_health(emit, ok=False, detail=clean_line(detail))
        else:
            self._emit_health(emit, ok=True, detail="written")

    def _is_own(self) -> bool:
        try:
            return _identity(self.path.lstat()) == self._identity
        except OSError:
            return False

    def _emit_health(self, emit: Emit, *, ok: bool, detail: str) -> None:
        if (ok, detail) != self._health:
            self._health = (ok, detail)
            emit([SourceSeen(at=self._clock.now(), name="status file", ok=ok, detail=detail)])


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_ino, stat.st_mtime_ns
