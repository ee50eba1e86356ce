"""Journals: files with what only a live agentdash sees, of bounded size, number and age.

That is: panes and their screens, processes, locks, Codex's status feed, the health of sources. The contents
of rollouts are not in a journal: they stay where they are. A journal is JSON lines, `model.events.encode`
behind a header. A recording is one or more parts; each begins with what was known (`FleetKnown`), so that any
of them can be read alone. Of a screen that changes only the lines that differ are written, of a process that
works only its counters.

The dashboard comes first: recording an event takes microseconds, writing happens in a thread, and an error
while writing is shown as the health of a source while everything else goes on.
"""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import re
import stat
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, Union

import msgspec
from msgspec.structs import replace

from agentdash import __version__
from agentdash.config import journal_folder
from agentdash.files import create_private_directory, ensure_private_directory
from agentdash.model import events as e
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import RECORDED, Event, SourceSeen, encode
from agentdash.model.fleet import Fleet, FleetKnown, known_of
from agentdash.model.pane import PaneKey
from agentdash.model.process import Process, ProcessKey
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields
from agentdash.model.source import Clock, Emit, FleetChannel

PART_NAME: Final = re.compile(r"(journal-(\d{8}T\d{6}Z)-\d+)-(\d{4,})\.jsonl", re.ASCII)
"""The name of a part: its recording (when it began, and the pid of its agentdash), the time in that, the
part's number."""


class JournalHeader(msgspec.Struct, kw_only=True):
    """The first line of a part."""

    schema: Literal["agentdash.journal/1"] = "agentdash.journal/1"
    agentdash: str
    """The version that wrote it."""
    host: str
    at: float
    """When the part began (unix seconds)."""
    known: int = 0
    """The number of lines behind this one that repeat what was known by then: one `FleetKnown`; in journals
    of 0.1.0, events of all kinds."""


class ScreenChanged(e.Event, frozen=True, kw_only=True, tag="screen-changed"):
    """In journals alone: a `PaneDrawn`, as the difference to the screen before."""

    key: PaneKey
    height: int
    rows: dict[int, str]
    """The lines that differ, by their number from the top."""


class ProcessWorked(e.Event, frozen=True, kw_only=True, tag="process-worked"):
    """In journals alone: a `ProcessSeen` that differs from the one before in its counters only."""

    key: ProcessKey
    cpu: float
    io: int


HEADER_DECODER: Final = JsonDecoder(JournalHeader)
LINE_DECODER: Final[JsonDecoder[e.Event]] = JsonDecoder(
    Union[(*e.EVENTS, FleetKnown, ScreenChanged, ProcessWorked)]
)


class _Seen:
    """The screens and processes that the lines of a part contain so far."""

    def __init__(self) -> None:
        self.screens: dict[PaneKey, tuple[str, ...]] = {}
        self.processes: dict[ProcessKey, Process] = {}

    def add(self, event: e.Event) -> None:
        match event:
            case FleetKnown():
                self.screens |= {key: pane.screen for key, pane in event.panes}
                self.processes |= dict(event.processes)
            case e.PaneDrawn():
                self.screens[event.key] = event.screen
            case e.PaneGone():
                self.screens.pop(event.key, None)
            case e.ProcessSeen():
                self.processes[event.process.key] = event.process
            case e.ProcessGone():
                self.processes.pop(event.key, None)


class JournalPacker:
    """Leaves out what the lines before contain already. It is the inverse of `JournalUnpacker`."""

    def __init__(self) -> None:
        self._seen = _Seen()
        self._locks: e.LocksSeen | None = None

    def pack(self, event: e.Event) -> e.Event | None:
        """Return the event as it is to be written, or None if it adds nothing."""
        packed: e.Event | None = event
        match event:
            case e.PaneDrawn(since=None) if (before := self._seen.screens.get(event.key)) is not None:
                packed = _pack_screen(event, before)
            case e.ProcessSeen(process=process) if known := self._seen.processes.get(process.key):
                if replace(known, cpu=process.cpu, io=process.io) == process:
                    packed = ProcessWorked(at=event.at, key=process.key, cpu=process.cpu, io=process.io)
            case e.LocksSeen():
                if self._locks is not None and replace(self._locks, at=event.at) == event:
                    packed = None
                self._locks = event
        self._seen.add(event)
        return packed


def _pack_screen(event: e.PaneDrawn, before: tuple[str, ...]) -> e.Event:
    rows = {y: text for y, text in enumerate(event.screen) if y >= len(before) or text != before[y]}
    if 2 * len(rows) > len(event.screen):
        return event
    return ScreenChanged(at=event.at, key=event.key, height=len(event.screen), rows=rows)


class JournalUnpacker:
    """Adds what `JournalPacker` left out, as far as the lines before contain it."""

    _MAX_HEIGHT: Final = 10_000
    """Lines of the tallest screen that is unpacked: a damaged height must not exhaust memory."""

    def __init__(self) -> None:
        self._seen = _Seen()

    def unpack(self, event: e.Event) -> e.Event | None:
        """Return the event as it was before packing, or None if the lines before lack what it changes."""
        match event:
            case ScreenChanged():
                event = self._unpack_screen(event)
            case ProcessWorked():
                process = self._seen.processes.get(event.key)
                if process is None:
                    return None
                process = replace(process, cpu=event.cpu, io=event.io)
                event = e.ProcessSeen(at=event.at, process=process)
        self._seen.add(event)
        return event

    def _unpack_screen(self, event: ScreenChanged) -> e.PaneDrawn:
        height = max(0, min(event.height, self._MAX_HEIGHT))
        screen = list(self._seen.screens.get(event.key, ()))[:height]
        screen += [""] * (height - len(screen))
        for y, text in event.rows.items():
            if 0 <= y < height:
                screen[y] = text
        return e.PaneDrawn(at=event.at, key=event.key, screen=tuple(screen))


_MAX_PENDING_EVENTS: Final = 20_000
"""Events that wait to be written, at most: some seconds of the busiest fleet."""
_WRITE_INTERVAL_S: Final = 0.5
"""Time for which events are gathered before they are written: what is lost when agentdash is killed."""
_FLUSH_TIMEOUT_S: Final = 0.2
"""For a write that is under way at an exit by force."""
_PART_BYTES: Final = 8 << 20
"""Size of a file after which the next one begins: the unit of pruning, and fast to search."""
_TOTAL_BYTES: Final = 512 << 20
"""Size of all files of a folder; the oldest are removed first."""
_KEPT_S: Final = 30 * 86_400.0
"""Age at which a file is removed."""


class Recorder:
    """A source that emits nothing but the health of the recording.

    Args:
        folder: created if need be, readable by its owner alone, as are all files in it.
        clock: for the times of headers and for pruning.
    """

    name = "recording"

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        begun = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock.now()))
        self._recording = f"journal-{begun}-{os.getpid()}"
        self._pending: list[Event] = []
        self._has_pending = asyncio.Event()
        self._lost = 0
        self._stopped = False
        self._writing = threading.Lock()
        self._packer = JournalPacker()
        self._file: int | None = None
        self._part = 0
        self._size = 0

    # ------------------------------------------------------------ recording

    def record(self, events: Sequence[Event]) -> None:
        """Keep the events that were reduced for writing; what exceeds the limits is counted."""
        recorded = [event for event in events if isinstance(event, RECORDED) and not self._is_own(event)]
        if not recorded:
            return
        if self._stopped or len(self._pending) + len(recorded) > _MAX_PENDING_EVENTS:
            self._lost += len(recorded)
            return
        self._pending += recorded
        self._has_pending.set()

    def flush(self) -> None:
        """Write what is left, for an exit by force: from another thread, while the loop does not run."""
        if self._writing.acquire(timeout=_FLUSH_TIMEOUT_S):
            try:
                if self._file is not None and not self._stopped:
                    self._write_events(self._pending)
            finally:
                self._writing.release()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return nothing: a single snapshot is not recorded."""
        del fleet
        return ()

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Write until cancelled, or until an error."""
        writing: asyncio.Future[None] | None = None
        try:
            await asyncio.to_thread(self._begin_part, channel.value)
            emit([self._health(f"to {clean_line(str(self._folder))}")])
            while True:
                await self._has_pending.wait()
                await asyncio.sleep(_WRITE_INTERVAL_S)
                self._has_pending.clear()
                events, self._pending = self._pending, []
                lost = self._lost
                writing = asyncio.ensure_future(asyncio.to_thread(self._write, events, channel.value))
                await asyncio.shield(writing)
                if lost:
                    emit([self._health(f"{lost:,} events came too fast and are not in it", ok=False)])
        except OSError as error:
            emit([self._stop(error)])
        finally:
            if writing is not None and not writing.done():
                await writing
            self._close(channel.value)

    def _is_own(self, event: Event) -> bool:
        return isinstance(event, SourceSeen) and event.name == self.name

    def _stop(self, error: OSError) -> SourceSeen:
        self._stopped = True
        self._lost += len(self._pending)
        self._pending.clear()
        reason = clean_line(error.strerror or str(error))
        return self._health(f"has stopped: {reason} ({clean_line(str(self._folder))})", ok=False)

    def _health(self, detail: str, *, ok: bool = True) -> SourceSeen:
        return SourceSeen(at=self._clock.now(), name=self.name, ok=ok, detail=detail)

    # ------------------------------------------------------------ writing

    def _begin_part(self, fleet: Fleet) -> None:
        """Begin the next part with what is known, and remove old ones."""
        self._close_file()
        self._part += 1
        self._packer = JournalPacker()
        is_ours = self._folder == journal_folder()
        (ensure_private_directory if is_ours else create_private_directory)(self._folder)
        self._prune()
        path = self._folder / f"{self._recording}-{self._part:04d}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0
        now = self._clock.now()
        known = mask_fields(known_of(fleet, now))
        self._packer.pack(known)
        header = JournalHeader(agentdash=__version__, host=platform.node(), at=now, known=1)
        self._append(b"\n".join([msgspec.json.encode(header), encode(known), b""]))

    def _write(self, events: Sequence[Event], fleet: Fleet) -> None:
        with self._writing:
            self._write_events(events)
            if self._size > _PART_BYTES:
                self._begin_part(fleet)

    def _write_events(self, events: Sequence[Event]) -> None:
        # masked before packing: which lines hold a secret shows on the whole screen only
        packed = [event for event in map(self._packer.pack, map(mask_fields, events)) if event is not None]
        self._append(b"".join(encode(event) + b"\n" for event in packed))

    def _append(self, data: bytes) -> None:
        if self._file is None:
            return
        if os.fstat(self._file).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "its file was removed")
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._size += len(data)

    def _close(self, fleet: Fleet) -> None:
        """Write what is left; an error is dropped, since nothing can show it any more."""
        try:
            if not self._stopped:
                self._write(self._pending, fleet)
        except OSError:
            pass
        self._pending = []
        self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _prune(self) -> None:
        """Remove the oldest parts beyond the limits, and no other files."""
        parts = [
            (found.st_mtime, found.st_size, path)
            for path in self._folder.iterdir()
            if PART_NAME.fullmatch(path.name) and stat.S_ISREG((found := path.lstat()).st_mode)
        ]
        room = _TOTAL_BYTES - _PART_BYTES
        for modified, size, path in sorted(parts, reverse=True):
            room -= size
            if room < 0 or self._clock.now() - modified > _KEPT_S:
                path.unlink(missing_ok=True)
