"""Follows JSONL files below some directories: what is appended to them, and when they move, shrink, are replaced, compressed or deleted.

Knows nothing of what the lines say. Nothing depends on file events: they only make it faster.
"""

# Paths are strings inside: a sweep goes over thousands of them, several times a minute.
# ruff: noqa: PTH112, PTH116

from __future__ import annotations

import asyncio
import math
import os
import stat as modes
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from agentdash.collect.tail.log_file import (
    FileGrown,
    FileUnreadable,
    Limits,
    LogFile,
    identity,
    reason,
    state,
)

if TYPE_CHECKING:
    from agentdash.collect.tail.fs_events import FileWatcher

_GLANCE: Final = 0.4
"""Seconds between two looks at the files that were written to lately, and for directories that are not there yet."""
_FRESH: Final = 0.05
"""Likewise while none of the directories is there: the first file comes with the first."""
_LATELY: Final = 600_000_000_000
"""Nanoseconds."""
_SWEEP: Final = 5.0
_POLL: Final = 2.0
"""Seconds between two sweeps when nothing hints at a change: where there are file events, and where there are none."""
_CALM: Final = 700
_HURRY: Final = 10
"""How many times longer than listing the tree took the pause is before the next time: usually, and when the tree has changed."""
_LONGEST: Final = 20.0
"""Seconds of the longest pause, however big the tree."""
_MOMENT: Final = 0.02
"""Seconds that reading may keep everybody else waiting."""


class FileMoved(msgspec.Struct, frozen=True):
    """The same log is now elsewhere. Of one that was compressed or unpacked, a `Grown` with `reset` follows."""

    old: Path
    new: Path


class FileVanished(msgspec.Struct, frozen=True):
    """The file is not there any more."""

    path: Path


Change = FileGrown | FileMoved | FileVanished | FileUnreadable


class _Found(NamedTuple):
    path: str
    stat: os.stat_result


class LogFollower:
    """Follows all logs below some directories. `x.jsonl` and `x.jsonl.zst` are one log; where both exist the plain one counts.

    Args:
        roots: the directories; they need not exist yet.
        suffixes: of the files to follow. What ends in `.zst` is unpacked, and read again whenever it changes.
        skim_above: of files larger than so many bytes only the head and the tail are read at first.
        newest: how many of the newest files are read at first; the others are when they change. None: all.
        since: files that were changed after this (unix seconds) are read at first in any case.
        max_line: bytes of the longest line that is kept.
        batch: bytes that are read at once.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        suffixes: tuple[str, ...] = (".jsonl", ".jsonl.zst"),
        skim_above: int | None = None,
        newest: int | None = None,
        since: float | None = None,
        max_line: int = 32 << 20,
        batch: int = 4 << 20,
    ) -> None:
        self._roots = [str(root.absolute()) for root in roots]
        self._suffixes = suffixes
        self._limits = Limits(skim_above, max_line, batch)
        self._newest, self._since = newest, since or float("inf")
        """How many logs the next sweep reads; after the first one, all that have changed."""
        self._logs: dict[str, LogFile] = {}
        """By their paths without `.zst`."""
        self._refused: dict[str, str] = {}
        """Directories that cannot be listed, and why."""
        self._lively: set[str] = set()
        """Logs that were read lately."""
        self._uneasy = False
        """Whether something was seen that only a sweep can clear up."""
        self._swept = self._cost = 0.0
        """When the tree was listed last, on the monotonic clock, and how many seconds that took."""
        self._watch: FileWatcher | None = None

    @property
    def watching(self) -> str:
        """How `follow` hears of changes, for the status line: `events`, or `polling: ` and why."""
        return self._watch.state if self._watch is not None else "polling: not following"

    # ------------------------------------------------------------ looking

    def sweep(self) -> Iterator[Change]:
        """One pass over the whole tree: what has changed since the last one, newest files first. To the first, all is new."""
        self._uneasy = False
        found, refused = self._list()
        if (
            self._logs.keys() - found.keys()
        ):  # perhaps moved from under the listing: look twice before something counts as gone
            found, refused = self._list()
        for folder, why in refused.items():
            if self._refused.get(folder) != why:
                yield FileUnreadable(Path(folder), why)
        self._refused = refused
        yield from self._settle(found)
        changed = [
            key for key, log in self._logs.items() if key in found and log.seen != state(found[key].stat)
        ]
        changed.sort(key=lambda key: found[key].stat.st_mtime_ns, reverse=True)
        newest, self._newest = len(changed) if self._newest is None else self._newest, None
        for rank, key in enumerate(changed):
            if rank < newest or found[key].stat.st_mtime >= self._since:
                yield from self._read(key)
            else:
                self._logs[key].postpone(found[key].stat)

    def fill(self, path: Path) -> Iterator[Change]:
        """Reads a skimmed file whole: its first `Grown` has `reset`. Nothing happens where no gap was left."""
        key = _key(str(path))
        if key in self._logs and self._logs[key].skimmed:
            self._logs[key].restart(whole=True)
            yield from self._read(key)

    async def follow(self) -> AsyncIterator[list[Change]]:
        """Changes as they happen, for as long as anybody listens; begins with a sweep.

        File events are taken where there are any. Without them, appends to files written to in the last minutes are noticed within 0.4 s,
        everything else within a few seconds.
        """
        from agentdash.collect.tail.fs_events import FileWatcher  # noqa: PLC0415 - costs 50 ms that a single sweep need not pay

        self._watch = watch = FileWatcher(self._roots)
        hints: set[str] = set()
        glanced = 0.0
        try:
            while True:
                renewed = await watch.renew()
                if time.monotonic() >= glanced + _GLANCE:
                    hints |= self._lately()
                    glanced = time.monotonic()
                sweeping = renewed or time.monotonic() >= self._next_sweep(watch)
                for portion in _portions(self.sweep() if sweeping else self._poll(hints)):
                    yield portion
                    await asyncio.sleep(0)
                next_glance = glanced + _GLANCE if self._lively or not watch.complete else math.inf
                pause = min(self._next_sweep(watch), next_glance) - time.monotonic()
                hints = self._hinted(await watch.wait(pause if watch.begun else min(pause, _FRESH)))
        finally:
            await watch.close()

    def _next_sweep(self, watch: FileWatcher) -> float:
        """When the whole tree is due: soon if it has changed, and never so often that listing it is felt."""
        if self._uneasy:
            return self._swept + _HURRY * self._cost
        return self._swept + max(_SWEEP if watch.complete else _POLL, min(_CALM * self._cost, _LONGEST))

    def _lately(self) -> set[str]:
        """The logs that were written to in the last minutes."""
        since = time.time_ns() - _LATELY
        self._lively = {key for key in self._lively if key in self._logs and self._logs[key].modified > since}
        return self._lively

    def _hinted(self, paths: set[str]) -> set[str]:
        """The known logs among `paths`. A new one, or a new directory, means that the tree has changed."""
        keys = {_key(path) for path in paths if path.endswith(self._suffixes)}
        new = keys - self._logs.keys() or any(
            os.path.isdir(path) for path in paths if not path.endswith(self._suffixes)
        )
        self._uneasy = self._uneasy or bool(new)
        return keys & self._logs.keys()

    def _poll(self, keys: Iterable[str]) -> Iterator[Change]:
        """What is new in these logs alone. What is more than growth is left to a sweep."""
        for key in list(keys):
            if (log := self._logs.get(key)) is None:
                continue
            try:
                stat = os.stat(log.path)
            except OSError:
                self._uneasy = True
                continue
            if log.id != identity(stat):
                self._uneasy = True
            elif log.seen != state(stat):
                yield from self._read(key)

    def _read(self, key: str) -> Iterator[Change]:
        if key in self._logs:
            self._lively.add(key)
            try:
                yield from self._logs[key].read()
            except FileNotFoundError:
                self._uneasy = True

    # ------------------------------------------------------------ the tree

    def _list(self) -> tuple[dict[str, _Found], dict[str, str]]:
        """All logs there are, and the directories that cannot be listed, with the reason."""
        began = time.monotonic()
        found: dict[str, _Found] = {}
        refused: dict[str, str] = {}
        folders = list(self._roots)
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.name.endswith(self._suffixes):
                            self._note(entry, found)
                        elif entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                refused[folder] = reason(error)
        self._swept = time.monotonic()
        self._cost = self._swept - began
        return found, refused

    def _note(self, entry: os.DirEntry[str], found: dict[str, _Found]) -> None:
        try:
            stat = entry.stat()
        except FileNotFoundError:  # gone since it was listed, or a link to nothing
            return
        key = _key(entry.path)
        if modes.S_ISREG(stat.st_mode) and (key == entry.path or key not in found):
            found[key] = _Found(entry.path, stat)

    def _settle(self, found: dict[str, _Found]) -> Iterator[Change]:
        """Brings what is known of the tree up to date: who moved, who is gone, who is new."""
        gone = {
            key
            for key in self._logs.keys() - found.keys()
            if not any(key.startswith(f"{folder}/") for folder in self._refused)
        }
        loose = {
            log.id: key
            for key, log in self._logs.items()
            if key in gone or (key in found and log.id != identity(found[key].stat))
        }
        for key in found.keys() - self._logs.keys():
            old = loose.get(identity(found[key].stat))
            if old is not None and old in self._logs and self._logs[old].same(*found[key]):
                self._logs[key] = self._logs.pop(old)
                gone.discard(old)
                yield from _move(self._logs[key], found[key].path)
        for key in gone:
            log = self._logs.pop(key)
            if log.told:
                yield FileVanished(Path(log.path))
        for key, (path, _) in found.items():
            if key not in self._logs:
                self._logs[key] = LogFile(path, self._limits)
            elif (log := self._logs[key]).path != path:  # compressed, or unpacked
                log.restart()
                yield from _move(log, path)


def _move(log: LogFile, path: str) -> Iterator[Change]:
    yield from log.emit_grown()
    was, log.path = log.path, path
    if log.told:
        yield FileMoved(Path(was), Path(path))


def _key(path: str) -> str:
    return path.removesuffix(".zst")


def _portions(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Changes in portions that take a moment each to find: in between others may run."""
    portion: list[Change] = []
    began = time.monotonic()
    for change in changes:
        portion.append(change)
        if time.monotonic() - began > _MOMENT:
            yield portion
            portion, began = [], time.monotonic()
    if portion:
        yield portion
