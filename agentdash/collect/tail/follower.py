"""Follow JSONL files below some directories: appended lines, and files that move, shrink, are replaced,
compressed or deleted.

The lines are not interpreted here. File events only reduce the latency: everything is found without them as
well.
"""

from __future__ import annotations

import asyncio
import math
import os
import stat as modes
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import cache
from pathlib import Path, PurePath
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.collect.tail.log_file import (
    FileGrown,
    FileUnreadable,
    LogFile,
    ReadLimits,
    failure_reason,
    file_state,
)

# Paths are strings inside: a sweep lists thousands of them, several times a minute.
# ruff: noqa: PTH112, PTH116


_RECENT_POLL_INTERVAL_S: Final = 0.4
"""Between two polls of the files that were written to recently."""
_NO_ROOTS_INTERVAL_S: Final = 0.05
"""Between two looks while none of the directories exists: the first file is created together with the
first directory."""
_RECENT_NS: Final = 600_000_000_000
"""A file counts as recently written for 10 minutes."""
_SWEEP_INTERVAL_S: Final = 5.0
"""Between two sweeps: file events may miss a change."""
_SWEEP_COST_FACTOR: Final = 500
"""Least pause between two sweeps, as a multiple of the time that a sweep takes: bounds the cost of large
trees to 0.2 % of a core."""
_URGENT_SWEEP_COST_FACTOR: Final = 10
"""The same when the tree is known to have changed."""
_MAX_SWEEP_INTERVAL_S: Final = 20.0
_MAX_RECENT_BYTES: Final = 2 << 20
"""Of the logs that are read at first because they changed recently, beyond the newest ones, as far as they
are read at first: all logs of a home that was copied have changed, and a day of scripted sessions has
thousands."""
_MAX_PORTION_S: Final = 0.02
"""Time that reading may block the event loop."""
_FILL_AFTER_S: Final = 2.0
"""From the skimming of a file to reading it whole: the newest sessions are on the screen by then."""


_LINK_DEPTH: Final = 3
"""Levels below a root on which links to directories are followed: year, month, day. A loop ends there."""


class FileMoved(msgspec.Struct, frozen=True):
    """The log has this path now. If it is read from another file, a `FileGrown` with `reset` follows."""

    path: Path


class FileVanished(msgspec.Struct, frozen=True):
    """The log has no file any more."""

    path: Path


Change = FileGrown | FileMoved | FileVanished | FileUnreadable


class FoundFile(NamedTuple):
    """The file that a log is read from, and its state when the tree was listed."""

    path: str
    stat: os.stat_result

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Sort key: a log is read from the file that ranks highest."""
        return not self.path.endswith(".zst"), self.stat.st_mtime_ns, self.path


class LogFollower:
    """Follows all logs below some directories.

    A log may have several files: plain and compressed ones, backups, links. It is read from a plain one
    before a compressed one, and from the one that changed last. Compressed files (`.zst`) are read again
    whenever they change.

    Args:
        roots: the directories; they need not exist yet.
        log_of: returns which log a file of this path is, or None if it is not a log.
        limits: how much of a file is read.
        newest: how many of the newest logs are read at first; the others are read when they change. None:
            all.
        since: logs that were changed after this (unix seconds) are read at first too, the newest first, up to
            a size. `unread_recent` are the others.
        is_open: whether a program has a log open: such logs are read at first in any case.
        whole: logs that are read at first, and whole, whatever their size.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        log_of: Callable[[PurePath], str | None],
        limits: ReadLimits,
        *,
        newest: int | None = None,
        since: float = math.inf,
        is_open: Callable[[str], bool] = lambda _: False,
        whole: Container[str] = (),
    ) -> None:
        self._roots = [str(root.absolute()) for root in roots]
        self._log_of: Callable[[str], str | None] = cache(lambda path: log_of(PurePath(path)))
        self._max_separators = max((root.count(os.sep) for root in self._roots), default=0) + _LINK_DEPTH
        self._swept_at = 0.0
        """When the tree was listed last, on the monotonic clock."""
        self._cost_s = 0.0
        """How long that took."""
        self._limits = limits
        self._newest = newest
        self._since = since
        self._is_open = is_open
        self._whole = whole
        self._has_swept = False
        self.unread_recent: dict[str, int] = {}
        """Logs that changed recently and were not read at first, and their sizes in bytes."""
        self._logs: dict[str, LogFile] = {}
        self.unreadable: Mapping[str, str] = {}
        """Directories that cannot be listed, entries that are not readable files, and the reasons."""
        self._recent: set[str] = set()
        """Logs that were read recently."""
        self._skimmed: dict[str, float] = {}
        """Logs that are to be read whole, and when they were skimmed, on the monotonic clock."""
        self._filling: str | None = None
        """The log that is being read whole."""
        self._needs_sweep = False
        """Whether a change was noticed that only a sweep can resolve."""

    # ------------------------------------------------------------ changes

    def sweep(self) -> Iterator[Change]:
        """List the whole tree and yield what has changed since the last sweep, newest files first. For the
        first sweep, all is new."""
        self._needs_sweep = False
        found, unreadable = self._scan()
        if self._logs.keys() - found.keys():
            # a file may have moved while the tree was listed: list it again before a file counts as vanished
            found, unreadable = self._scan()
        for path, reason in unreadable.items():
            if self.unreadable.get(path) != reason:
                yield FileUnreadable(Path(path), reason)
        for path in self.unreadable.keys() - unreadable.keys():
            if (key := self._log_of(path)) is not None and key not in found:
                yield FileVanished(Path(path))
        self.unreadable = unreadable
        yield from self._match_logs(found)
        changed = [key for key, file in found.items() if self._logs[key].read_state != file_state(file.stat)]
        changed.sort(key=lambda key: found[key].stat.st_mtime_ns, reverse=True)
        chosen = set(changed) if self._has_swept else self._chosen(changed, found)
        self._has_swept = True
        for key in changed:
            if key in chosen:
                yield from self._read(key)
            else:  # it is read when it changes
                self._logs[key].read_state = file_state(found[key].stat)

    def _match_logs(self, found: Mapping[str, FoundFile]) -> Iterator[Change]:
        """Match the known logs with the files that were found: vanished, new, moved."""
        hidden = tuple(f"{folder}/" for folder in self.unreadable)
        for key in self._logs.keys() - found.keys():
            if not self._logs[key].path.startswith(hidden):
                gone = self._logs.pop(key)
                if gone.emitted:
                    yield FileVanished(Path(gone.path))
        for key, (path, _) in found.items():
            if (log := self._logs.get(key)) is None:
                limits = replace(self._limits, skim_above=None) if key in self._whole else self._limits
                self._logs[key] = LogFile(path, limits)
            elif log.path != path:
                log.path = path
                if log.emitted:
                    yield FileMoved(Path(path))

    def _chosen(self, changed: list[str], found: Mapping[str, FoundFile]) -> set[str]:
        """Return the logs to read at first: the newest, open ones, and some recent ones.

        Args:
            changed: all logs, newest change first.
            found: their files.
        """
        if self._newest is None:
            return set(changed)
        chosen = set(changed[: self._newest])
        chosen.update(key for key in changed[self._newest :] if key in self._whole or self._is_open(key))
        room = _MAX_RECENT_BYTES
        for key in changed:
            size, modified = found[key].stat.st_size, found[key].stat.st_mtime
            if key in chosen or modified < self._since:
                continue
            room -= min(size, self._limits.skim_above or size)
            if room < 0:
                self.unread_recent[key] = size
            else:
                chosen.add(key)
        return chosen

    def fill(self, key: str) -> Iterator[Change]:
        """Read a skimmed log whole: its first `FileGrown` has `reset`. Yields nothing if no gap was left."""
        self._skimmed.pop(key, None)
        log = self._logs.get(key)
        if log is not None and log.skimmed:
            log.restart(whole=True)
            self._filling = key
            try:
                yield from log.read()
            except FileNotFoundError:
                self._needs_sweep = True
            finally:
                self._filling = None

    async def follow(self) -> AsyncIterator[list[Change]]:
        """Yield changes as they happen, beginning with a sweep, until closed; read skimmed logs whole
        meanwhile.

        Uses file events where available. Since these may be missing, appends to recently written files are
        noticed within 0.4 s in any case, everything else within a few seconds.
        """
        from agentdash.collect.tail.fs_events import FileWatcher  # noqa: PLC0415 - not needed to sweep

        watch = FileWatcher(self._roots)
        hints: set[str] = set()
        polled_at = 0.0
        sweeping = True
        fill: Iterator[list[Change]] = iter(())
        try:
            while True:
                for portion in _portions(self.sweep() if sweeping else self._poll(hints)):
                    yield portion
                    await asyncio.sleep(0)
                if portion := next(fill, []):
                    yield portion
                elif time.monotonic() >= self._next_fill():
                    fill = _portions(self.fill(next(iter(self._skimmed))))
                next_poll = polled_at + _RECENT_POLL_INTERVAL_S if self._recent else math.inf
                next_fill = 0.0 if self._filling else self._next_fill()
                pause = min(self._next_sweep(), next_poll, next_fill) - time.monotonic()
                hints = self._known_logs(
                    await watch.wait(pause if watch.begun else min(pause, _NO_ROOTS_INTERVAL_S))
                )
                sweeping = await watch.renew() or time.monotonic() >= self._next_sweep()
                if time.monotonic() >= polled_at + _RECENT_POLL_INTERVAL_S:
                    self._forget_old()
                    hints |= self._recent
                    polled_at = time.monotonic()
        finally:
            await watch.close()

    def _next_sweep(self) -> float:
        """Return when the next sweep is due, on the monotonic clock: soon if the tree has changed, but never
        at noticeable cost."""
        if self._needs_sweep:
            return self._swept_at + _URGENT_SWEEP_COST_FACTOR * self._cost_s
        affordable = min(_SWEEP_COST_FACTOR * self._cost_s, _MAX_SWEEP_INTERVAL_S)
        return self._swept_at + max(_SWEEP_INTERVAL_S, affordable)

    def _forget_old(self) -> None:
        """Forget which logs were read recently, except those that were written to in the last minutes."""
        since = time.time_ns() - _RECENT_NS
        self._recent = {key for key in self._recent if key in self._logs and self._logs[key].modified > since}

    def _next_fill(self) -> float:
        """Return when a skimmed log is to be read whole, on the monotonic clock."""
        return next(iter(self._skimmed.values()), math.inf) + _FILL_AFTER_S

    def _known_logs(self, paths: set[str]) -> set[str]:
        """Return the logs that are read from `paths`. Another file, or a new directory, requires a sweep."""
        known: set[str] = set()
        for path in paths:
            key = self._log_of(path)
            if key is not None and key in self._logs and self._logs[key].path == path:
                known.add(key)
            elif key is not None or os.path.isdir(path):
                self._needs_sweep = True
        return known

    def _poll(self, keys: Iterable[str]) -> Iterator[Change]:
        """Yield what was appended to these logs. Any other change is left to a sweep."""
        for key in list(keys):
            if (log := self._logs.get(key)) is None:
                continue
            try:
                stat = os.stat(log.path)
            except OSError:
                self._needs_sweep = True
                continue
            if log.read_state != file_state(stat):
                yield from self._read(key)

    def _read(self, key: str) -> Iterator[Change]:
        log = self._logs.get(key)
        if log is None or key == self._filling:
            return
        self._recent.add(key)
        self.unread_recent.pop(key, None)
        try:
            yield from log.read()
        except FileNotFoundError:
            self._needs_sweep = True
        if log.skimmed:
            self._skimmed.setdefault(key, time.monotonic())

    # ------------------------------------------------------------ the tree

    def _scan(self) -> tuple[dict[str, FoundFile], dict[str, str]]:
        """Return the files of all logs, and what cannot be listed or found, with the reasons."""
        began = time.monotonic()
        found: dict[str, FoundFile] = {}
        unreadable: dict[str, str] = {}
        folders = list(self._roots)
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        self._add(entry, found, folders, unreadable)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                unreadable[folder] = failure_reason(error)
        self._swept_at = time.monotonic()
        self._cost_s = self._swept_at - began
        return found, unreadable

    def _add(
        self,
        entry: os.DirEntry[str],
        found: dict[str, FoundFile],
        folders: list[str],
        unreadable: dict[str, str],
    ) -> None:
        """Add a directory, or a file of a log, unless the log is read from another one."""
        try:
            if (key := self._log_of(entry.path)) is None:
                # a link that is named as a year, a month or a day is followed
                follows = entry.name.isdecimal() and entry.path.count(os.sep) <= self._max_separators
                if entry.is_dir(follow_symlinks=follows):
                    folders.append(entry.path)
                return
            file = FoundFile(entry.path, entry.stat())
        except FileNotFoundError:  # deleted since it was listed, or a dangling link
            return
        except OSError as error:  # a loop of links
            unreadable[entry.path] = failure_reason(error)
            return
        if not modes.S_ISREG(file.stat.st_mode):  # never opened: a pipe or a device would block
            unreadable[entry.path] = "not a regular file"
        elif key not in found or file.rank > found[key].rank:
            found[key] = file


def _portions(changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Group changes into portions that take a limited time to find, so that other tasks may run in
    between."""
    portion: list[Change] = []
    began = time.monotonic()
    for change in changes:
        portion.append(change)
        if time.monotonic() - began > _MAX_PORTION_S:
            yield portion
            portion = []
            began = time.monotonic()
    if portion:
        yield portion
