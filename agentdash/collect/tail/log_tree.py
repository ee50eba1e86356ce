"""Find the logs below some directories.

Paths are strings here: a tree has thousands of them, and is scanned several times a minute.
"""

from __future__ import annotations

import errno
import os
import stat as modes
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from agentdash.collect.tail.log_file import failure_reason

_LINK_DEPTH: Final = 3
"""Levels below a root on which links to directories are followed: year, month, day. A loop ends there."""


class FoundLog(NamedTuple):
    """A log, where it is, and its state when the tree was scanned."""

    path: str
    stat: os.stat_result


def log_key(path: str) -> str:
    """Return by what a log is known, compressed or not: its path without `.zst`."""
    return path.removesuffix(".zst")


class LogTree:
    """The directories below some roots, and the logs in them.

    Args:
        roots: absolute paths; they need not exist yet.
        suffixes: of the names of logs.
    """

    def __init__(self, roots: Sequence[str], suffixes: tuple[str, ...]) -> None:
        self._roots = roots
        self._suffixes = suffixes
        self._max_separators = max((root.count(os.sep) for root in roots), default=0) + _LINK_DEPTH
        self.links: set[str] = set()
        """Logs that are symbolic links: events of what they point to are not delivered."""
        self.scanned_at = 0.0
        """When the tree was scanned last, on the monotonic clock."""
        self.cost_s = 0.0
        """How long that took."""

    def scan(self) -> tuple[dict[str, FoundLog], dict[str, str]]:
        """Return all logs by their keys, and what cannot be listed or found, with the reasons."""
        began = time.monotonic()
        found: dict[str, FoundLog] = {}
        unreadable: dict[str, str] = {}
        self.links.clear()
        folders = list(self._roots)
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.name.endswith(self._suffixes):
                            self._add_entry(entry, found, unreadable)
                        elif entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        elif entry.name.isdecimal():  # named as a year, a month or a day
                            self._add_linked(entry, folders, unreadable)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                unreadable[folder] = failure_reason(error)
        self.scanned_at = time.monotonic()
        self.cost_s = self.scanned_at - began
        return found, unreadable

    def _add_linked(self, entry: os.DirEntry[str], folders: list[str], unreadable: dict[str, str]) -> None:
        """Add a directory that is a link, as `CodexHome` does; state it where it is no directory."""
        try:
            if entry.is_dir() and entry.path.count(os.sep) <= self._max_separators:
                folders.append(entry.path)
            else:
                unreadable[entry.path] = os.strerror(errno.ENOTDIR)
        except OSError as error:  # a loop of links
            unreadable[entry.path] = failure_reason(error)

    def _add_entry(
        self, entry: os.DirEntry[str], found: dict[str, FoundLog], unreadable: dict[str, str]
    ) -> None:
        try:
            stat = entry.stat()
        except FileNotFoundError:  # deleted since it was listed, or a dangling link
            return
        except OSError as error:  # a loop of links
            unreadable[entry.path] = failure_reason(error)
            return
        key = log_key(entry.path)
        if not modes.S_ISREG(stat.st_mode):  # never opened: a pipe or a device would block
            unreadable[entry.path] = "not a regular file"
        elif key == entry.path or key not in found:
            found[key] = FoundLog(entry.path, stat)
            if entry.is_symlink():
                self.links.add(key)
