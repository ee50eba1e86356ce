"""The status file: what an agentdash outside keeps for those who cannot look themselves, because they run inside of a sandbox.

One file for each Codex home, `status-<hash of its path>.json` in agentdash's state directory: a snapshot without screens and timelines,
who wrote it, and when. It is replaced whole when the fleet has changed, at most once a second, and now and then when it has not, so that
its age means something.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

from agentdash import __version__
from agentdash.config import state_folder
from agentdash.model.clock import Clock
from agentdash.model.events import Event, SourceSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Emit
from agentdash.model.states import State
from agentdash.model.times import ago
from agentdash.model.worker import Assessment, Snapshot, Worker

HEARTBEAT: Final = 15.0
"""Seconds after which the file is written again although nothing has changed."""
TOO_OLD: Final = 60.0
"""Seconds after which a file is no news any more: its writer has gone, or hangs."""
START: Final = "start `agentdash publish`, or the dashboard, outside of the sandbox"
_SPACING: Final = 1.0
"""Seconds between two writings, at least."""
_CALLS: Final = 5
"""Calls kept of each worker."""


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

    def emit(self, events: Sequence[Event]) -> None:
        """Accept events."""
        ...


class UnpublishedError(Exception):
    """There is no status file that could be used; says why, and what to do, in one line."""


class Published(msgspec.Struct, frozen=True):
    """What the file holds."""

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
        """Seconds since it was written."""
        return max(0.0, now - self.written_at)


def status_file(home: Path) -> Path:
    """Where the status of a Codex home is kept."""
    path = str(home.expanduser().resolve())
    return state_folder() / f"status-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.json"


def read_published(path: Path) -> Published:
    """What the file holds, however old.

    Raises:
        UnpublishedError: it is not there, or cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Published)
    except FileNotFoundError:
        raise UnpublishedError(f"there is no status file: {START}") from None
    except OSError as error:
        raise UnpublishedError(
            f"{clean_line(str(path))} cannot be read ({error.strerror}): {START}"
        ) from error
    except msgspec.DecodeError as error:
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
    """Why the file is no news any more, and what to do; None where it is."""
    if published.age(now) <= TOO_OLD:
        return None
    return f"the status file was written {ago(now, published.written_at)} ago: {START}"


def unreachable(worker: Worker, why: str, at: float) -> Worker:
    """A worker of which nothing can be known from here."""
    evidence = Evidence(EvidenceSource.STATUS_FILE, at, "no-status-file", why, agrees=True)
    return replace(worker, assessment=Assessment(State.UNREACHABLE, None, why, (evidence,)))


# ---------------------------------------------------------------- writing


class Publisher:
    """Keeps the status file of a Codex home.

    Args:
        home: the Codex home.
        clock: what tells the time.
    """

    def __init__(self, home: Path, clock: Clock) -> None:
        self.path = status_file(home)
        self._home, self._clock = clean_line(str(home)), clock
        self._told: Snapshot | None = None
        self._written = 0.0
        self._mine: tuple[int, int] | None = None
        self._trouble: str | None = None

    async def keep(self, hub: Engine) -> None:
        """Writes what the hub shows until cancelled; then removes the file. A file that another agentdash keeps is left to that one."""
        try:
            while True:
                if hub.snapshot is not None and hub.fleet.processes_at is not None:
                    self._publish(hub.snapshot, hub.emit)
                await asyncio.sleep(_SPACING)
        finally:
            self.withdraw()

    def write(self, snapshot: Snapshot) -> None:
        """Replaces the file.

        Raises:
            OSError: it cannot be written.
        """
        now = self._clock.now()
        published = Published(
            "agentdash.published/1", __version__, os.getpid(), self._home, now, _brief(snapshot)
        )
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".status-", dir=self.path.parent)  # 0600
        try:
            with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
                file.write(msgspec.json.encode(published))
                stat = os.fstat(descriptor)
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._mine = _identity(stat)
        self._told, self._written = snapshot, now

    def keeper(self) -> int | None:
        """The pid of another agentdash that keeps the file."""
        try:
            if _identity(self.path.stat()) == self._mine:
                return None
            published = read_published(self.path)
        except (OSError, UnpublishedError):
            return None
        alive = (
            published.pid != os.getpid()
            and outdated(published, self._clock.now()) is None
            and _is_there(published.pid)
        )
        return published.pid if alive else None

    def withdraw(self) -> None:
        """Removes the file, where it is ours."""
        with suppress(OSError):
            if self._mine is not None and _identity(self.path.stat()) == self._mine:
                self.path.unlink()

    def _publish(self, snapshot: Snapshot, emit: Emit) -> None:
        now = self._clock.now()
        if (snapshot is self._told and now - self._written < HEARTBEAT) or self.keeper() is not None:
            return
        try:
            self.write(snapshot)
            trouble = None
        except OSError as error:
            trouble = clean_line(f"{self.path} cannot be written: {error.strerror or error}")
        if trouble != self._trouble:
            self._trouble = trouble
            emit([SourceSeen(at=now, name="status file", ok=trouble is None, detail=trouble or "written")])


def _brief(snapshot: Snapshot) -> Snapshot:
    """Without what is long and not asked for from afar: screens, timelines, old calls."""
    return replace(snapshot, workers=tuple(map(_brief_worker, snapshot.workers)))


def _brief_worker(worker: Worker) -> Worker:
    pane = replace(worker.pane, screen=()) if worker.pane else None
    calls = tuple(replace(call, tail=call.tail[-500:]) for call in worker.calls[:_CALLS])
    return replace(worker, pane=pane, moments=(), calls=calls)


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_ino, stat.st_mtime_ns


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # 0 is no signal: it only asks
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
