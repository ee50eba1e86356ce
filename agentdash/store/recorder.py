"""Writes the journal: takes what the hub folds, and keeps it in files of bounded size, number and age.

The dashboard comes first: taking is a matter of microseconds, writing happens in a thread, and when it fails, that is shown as the health
of a source, and everything else goes on.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from agentdash.model.clock import Clock
from agentdash.model.events import Event, SourceSeen, encode
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Emit, FleetChannel
from agentdash.store.journal import NAME, RECORDED, Header, Packer, known

_ROOM: Final = 20_000
"""Events that wait to be written, at most: some seconds of the busiest fleet."""
_GATHER: Final = 0.5
"""Seconds for which events are gathered before they are written: what is lost when agentdash is killed."""


class Limits(msgspec.Struct, frozen=True):
    """How much is kept."""

    part: int = 8 << 20
    """Bytes of a file, after which the next one begins."""
    total: int = 512 << 20
    """Bytes of all files of a folder; the oldest go first."""
    age: float = 30 * 86_400.0
    """Seconds after which a file goes."""


_USUAL: Final = Limits()


class Recorder:
    """A source that only listens: it says how the recording does.

    Args:
        folder: made if need be, for its owner alone, as are all files in it.
        clock: what tells the time.
        version: agentdash's own.
        host: the machine's name.
        limits: how much is kept.
    """

    name = "recording"

    def __init__(
        self, folder: Path, clock: Clock, *, version: str, host: str, limits: Limits = _USUAL
    ) -> None:
        self._folder, self._clock, self._limits = folder, clock, limits
        self._version, self._host = version, host
        begun = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock.now()))
        self._recording = f"journal-{begun}-{os.getpid()}"
        self._pending: list[Event] = []
        self._news = asyncio.Event()
        self._lost = 0
        self._stopped = False
        self._packer = Packer()
        self._file: int | None = None
        self._part = self._size = 0

    # ------------------------------------------------------------ listening

    def take(self, events: Sequence[Event]) -> None:
        """Takes what was folded. What cannot be kept is counted."""
        news = [
            event
            for event in events
            if isinstance(event, RECORDED) and not (isinstance(event, SourceSeen) and event.name == self.name)
        ]
        if not news:
            return
        if self._stopped or len(self._pending) + len(news) > _ROOM:
            self._lost += len(news)
            return
        self._pending += news
        self._news.set()

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """A single look is not recorded."""
        del fleet
        return ()

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Writes, until cancelled or until that fails."""
        writing: asyncio.Future[None] | None = None
        try:
            await asyncio.to_thread(self._begin, channel.value)
            emit([self._health(f"to {clean_line(str(self._folder))}")])
            while True:
                await self._news.wait()
                await asyncio.sleep(_GATHER)
                self._news.clear()
                events, self._pending = self._pending, []
                lost = self._lost
                writing = asyncio.ensure_future(asyncio.to_thread(self._write, events, channel.value))
                await asyncio.shield(writing)
                if lost:
                    emit([self._health(f"{lost:,} events came too fast and are not in it", ok=False)])
        except OSError as error:
            self._stopped = True
            self._lost += len(self._pending)
            self._pending.clear()
            why = clean_line(error.strerror or str(error))
            emit([self._health(f"has stopped: {why} ({clean_line(str(self._folder))})", ok=False)])
        finally:
            if writing is not None and not writing.done():
                await writing
            self._close(channel.value)

    def _health(self, detail: str, *, ok: bool = True) -> SourceSeen:
        return SourceSeen(at=self._clock.now(), name=self.name, ok=ok, detail=detail)

    # ------------------------------------------------------------ writing

    def _begin(self, fleet: Fleet) -> None:
        """The next part, which repeats what is known by now; what is too old or too much goes."""
        self._end()
        self._part += 1
        self._packer = Packer()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._prune()
        path = self._folder / f"{self._recording}-{self._part:04d}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0
        repeated = [event for event in map(self._packer.pack, known(fleet)) if event is not None]
        header = Header(agentdash=self._version, host=self._host, at=self._clock.now(), known=len(repeated))
        self._append(b"\n".join([msgspec.json.encode(header), *map(encode, repeated), b""]))

    def _write(self, events: Sequence[Event], fleet: Fleet) -> None:
        packed = [event for event in map(self._packer.pack, events) if event is not None]
        self._append(b"".join(encode(event) + b"\n" for event in packed))
        if self._size > self._limits.part:
            self._begin(fleet)

    def _append(self, data: bytes) -> None:
        if self._file is None:
            return
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._size += len(data)

    def _close(self, fleet: Fleet) -> None:
        """Writes what is left, as far as that works: nobody is there any more to be told."""
        try:
            if not self._stopped:
                self._write(self._pending, fleet)
        except OSError:
            pass
        self._pending = []
        self._end()

    def _end(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _prune(self) -> None:
        """Only files that have a journal's name are ever removed."""
        found = [
            (path.stat().st_mtime, path.stat().st_size, path)
            for path in self._folder.iterdir()
            if NAME.fullmatch(path.name)
        ]
        room = self._limits.total - self._limits.part
        for modified, size, path in sorted(found, reverse=True):
            room -= size
            if room < 0 or self._clock.now() - modified > self._limits.age:
                path.unlink(missing_ok=True)
