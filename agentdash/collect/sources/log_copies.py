"""Copies of session logs: a thread that has several files is read from the one that changed last."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from agentdash.collect.tail.follower import Change, FileKnown, FileMoved, FileVanished
from agentdash.collect.tail.log_file import FileGrown


class LogCopies:
    """The files of threads. Backups and links have the name of the log, and with it the thread.

    Args:
        reread: reads a file from its beginning; its first `FileGrown` has `reset`.
    """

    def __init__(self, reread: Callable[[Path], Iterable[Change]]) -> None:
        self._reread = reread
        self._read: dict[str, tuple[Path, float]] = {}
        """The file that each thread is read from, and when it changed (unix seconds)."""
        self._others: dict[str, dict[Path, float]] = {}
        """Further files of threads, and when these changed."""

    def changes(self, thread: str, change: Change) -> Iterator[Change]:
        """Yield what a change of one of its files is to a thread: none where another file is read."""
        if isinstance(change, FileMoved):
            yield from self._moved(thread, change)
        elif isinstance(change, FileVanished):
            yield from self._vanished(thread, change)
        elif isinstance(change, FileGrown | FileKnown):
            yield from self._grown(thread, change)
        elif self._path(thread) in (None, change.path):
            yield change

    def _path(self, thread: str) -> Path | None:
        return self._read[thread][0] if thread in self._read else None

    def _grown(self, thread: str, change: FileGrown | FileKnown) -> Iterator[Change]:
        modified = change.modified if isinstance(change, FileGrown) else math.inf
        path, known = self._read.get(thread, (change.path, modified))
        if path == change.path:
            self._read[thread] = (path, modified)
            yield change
        elif modified > known and not _is_same(path, change.path):
            yield from self._switch(thread, change.path, modified)
        else:
            self._others.setdefault(thread, {})[change.path] = modified

    def _switch(self, thread: str, path: Path, modified: float) -> Iterator[Change]:
        """Read a thread from another of its files."""
        others = self._others.setdefault(thread, {})
        others.pop(path, None)
        if thread in self._read:
            former, at = self._read[thread]
            others[former] = at
        self._read[thread] = (path, modified)
        yield from self._reread(path)

    def _moved(self, thread: str, change: FileMoved) -> Iterator[Change]:
        others = self._others.get(thread, {})
        if change.old in others:
            others[change.new] = others.pop(change.old)
        else:
            self._read[thread] = (change.new, self._read.get(thread, (change.new, 0.0))[1])
            yield change

    def _vanished(self, thread: str, change: FileVanished) -> Iterator[Change]:
        others = self._others.get(thread, {})
        others.pop(change.path, None)
        if self._path(thread) not in (None, change.path):
            return
        self._read.pop(thread, None)
        if others:
            newest = max(others, key=others.__getitem__)
            yield from self._switch(thread, newest, others[newest])
        else:
            self._others.pop(thread, None)
            yield change


def _is_same(path: Path, other: Path) -> bool:
    """Return whether two paths are hard links of one file."""
    try:
        return path.samefile(other)
    except OSError:
        return False
