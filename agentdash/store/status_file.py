"""The status file: the fleet as an agentdash outside a sandbox sees it, for those that run inside one.

One file for each Codex home, `status-<hash of its path>.json` in agentdash's state directory: a snapshot
without screens and timelines, its writer, and the time. It is replaced whole when the fleet has changed, at
most once a second, and from time to time when it has not, so that its age has a meaning. A file that others
may have written, with a time in the future, or of another boot is not believed, and replaced by a writer.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

from agentdash import __version__, procfs
from agentdash.config import state_folder
from agentdash.files import read_bytes, untrusted, write_private
from agentdash.model.events import Event, SourceSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line, is_clean_json
from agentdash.model.secrets import mask_fields
from agentdash.model.source import Clock, Emit
from agentdash.model.states import State
from agentdash.model.thread import Call
from agentdash.model.times import ago, possible_time
from agentdash.model.worker import Assessment, Snapshot, Worker
from agentdash.store.line_file import boot_id, line_content, line_path

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
_MAX_TAIL_CHARS: Final = 500
"""Of the output of each."""
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
    boot: str = ""
    """The kernel's id of the boot; empty where it has none, and in files of 0.1.0."""
    pid_namespace: int = 0
    """Inode of the pid namespace in which `pid` is valid; 0: not known."""
    pid_start: str = ""
    """Start of the process in clock ticks since the boot, since pids are reused; empty: not known."""

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
    if published.boot and (boot := boot_id()) and published.boot != boot:
        return f"the status file was written before the machine was restarted: {START}"
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
        self._home = clean_line(str(home))
        self._home_path = home.expanduser().resolve()
        self._clock = clock
        self._last_snapshot: Snapshot | None = None
        self._written: dict[str, tuple[Worker, Worker]] = {}
        """Workers of that snapshot by their ids, and as they were written."""
        self._written_at = 0.0
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
        published = Published(
            schema="agentdash.published/1",
            version=__version__,
            pid=os.getpid(),
            home=self._home,
            written_at=now,
            snapshot=snapshot,
            boot=boot_id(),
            pid_namespace=_pid_namespace(),
            pid_start=process_start(os.getpid()),
        )
        written = write_private(self.path, msgspec.json.encode(self._masked(published)))
        self._identity = _identity(written)
        home = clean_line(str(self._home_path))
        line = line_content(snapshot, home=home, written_at=now, boot=published.boot)
        write_private(line_path(self.path), line)
        self._last_snapshot = snapshot
        self._written_at = now

    def keeper(self) -> int | None:
        """Return the pid of another agentdash that writes the file, or None if none does, or if that
        cannot be verified."""
        return self._other()[0]

    def withdraw(self) -> None:
        """Remove the file if this process wrote it."""
        with suppress(OSError):
            if self._identity is not None and _identity(self.path.lstat()) == self._identity:
                self.path.unlink()
                line_path(self.path).unlink()

    def _other(self) -> tuple[int | None, str | None]:
        """Return the pid of another agentdash that writes the file, and why a file of others is not
        believed."""
        try:
            if _identity(self.path.lstat()) == self._identity:
                return None, None
            published = read_published(self.path)
        except FileNotFoundError:
            return None, None
        except (OSError, UnpublishedError) as error:
            return None, clean_line(str(error)).partition(": start")[0]
        if (problem := outdated(published, self._clock.now())) is not None:
            return None, problem.partition(": start")[0]
        if published.pid == os.getpid():
            return None, None
        if published.pid_namespace not in (0, _pid_namespace()):
            return None, f"it was written by pid {published.pid} of another pid namespace"
        if published.pid_start not in ("", process_start(published.pid)) or not _exists(published.pid):
            return None, f"its writer, pid {published.pid}, has ended"
        return published.pid, None

    def _publish(self, snapshot: Snapshot, emit: Emit) -> None:
        now = self._clock.now()
        keeper, distrusted = self._other()
        if keeper is not None:
            self._emit_health(emit, ok=True, detail=f"pid {keeper} writes it")
            return
        is_lost = self._identity is not None and not self._is_own()
        is_due = snapshot is not self._last_snapshot or now - self._written_at >= HEARTBEAT
        if not (is_due or is_lost or distrusted):
            return
        try:
            self.write(snapshot)
        except OSError as error:
            detail = f"{self.path} cannot be written: {error.strerror or error}"
            self._emit_health(emit, ok=False, detail=clean_line(detail))
            return
        if distrusted is not None:
            self._emit_health(emit, ok=True, detail=f"replaced: {distrusted}")
        elif not self._health[0] or self._health[1].startswith("pid "):
            self._emit_health(emit, ok=True, detail="written")

    def _masked(self, published: Published) -> Published:
        """Return the content without secrets, and without what is long."""
        workers = published.snapshot.workers
        written = [_written(worker, *self._written.get(worker.id, (None, None))) for worker in workers]
        self._written = {worker.id: (worker, out) for worker, out in zip(workers, written, strict=True)}
        masked: Published = mask_fields(replace(published, snapshot=replace(published.snapshot, workers=())))
        return replace(masked, snapshot=replace(masked.snapshot, workers=tuple(written)))

    def _is_own(self) -> bool:
        try:
            return _identity(self.path.lstat()) == self._identity
        except OSError:
            return False

    def _emit_health(self, emit: Emit, *, ok: bool, detail: str) -> None:
        if (ok, detail) != self._health:
            self._health = (ok, detail)
            emit([SourceSeen(at=self._clock.now(), name="status file", ok=ok, detail=detail)])


def _brief_calls(calls: Sequence[Call]) -> tuple[Call, ...]:
    return tuple(replace(call, tail=call.tail[-_MAX_TAIL_CHARS:]) for call in calls[:_MAX_CALLS])


_SHORTENED: Final[dict[str, Callable[[Any], Any]]] = {
    "pane": lambda pane: replace(pane, screen=()) if pane else None,
    "calls": _brief_calls,
    "moments": lambda _: (),
}
"""Fields of a worker that are long and not shown by `status`, and what is written of them."""


def _written(worker: Worker, before: Worker | None, written: Worker | None) -> Worker:
    """Return a worker as it is written: shortened, and with secrets masked. What is as before is not
    searched again."""
    fields: dict[str, Any] = {}
    for name in worker.__struct_fields__:
        value = getattr(worker, name)
        if before is not None and (value is (old := getattr(before, name)) or value == old):
            fields[name] = getattr(written, name)
        else:
            fields[name] = mask_fields(_SHORTENED[name](value) if name in _SHORTENED else value)
    return Worker(**fields)


def process_start(pid: int) -> str:
    """Return when a process started, in clock ticks since the boot; empty where that is not known."""
    try:
        return procfs.stat(pid).started
    except OSError:
        return ""


def _pid_namespace() -> int:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_ino, stat.st_mtime_ns


def _exists(pid: int) -> bool:
    if pid <= 0:  # these address groups of processes
        return False
    try:
        os.kill(pid, 0)  # signal 0 only checks
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
