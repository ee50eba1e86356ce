"""Determine whether a process may write a path: by its mounts, and by modes and owners. Nothing is opened:
`lstat` and `readlink` only. Landlock and security modules, which cannot be read from outside, may refuse
more.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from agentdash.collect.processes import linux
from agentdash.model.state_paths import Mount, MountTable, WriteAccess

# Paths are strings here, as the process sees them; they are resolved below /proc/PID/root.
# ruff: noqa: PTH115, PTH116


_MAX_LINKS: Final = 40
"""Symlinks followed in one path: the limit of the kernel."""
_WRITE: Final = 2
_SEARCH: Final = 1
"""Permission bits of a mode."""


class PathRights:
    """Checks what one process may do with paths.

    Args:
        pid: of the process, in agentdash's pid namespace.
        mounts: its mount table, if it has been read already.
    """

    def __init__(self, pid: int, mounts: Sequence[Mount] | None = None) -> None:
        self._root = f"/proc/{pid}/root"
        mounts = linux.mounts(pid) if mounts is None else mounts
        self._table = None if mounts is None else MountTable(mounts)
        """None: not readable."""
        self._user = credentials_of(pid)

    def can_write(self, path: str) -> WriteAccess:
        """Return whether it may write a path as things are; for a missing one, whether it may create it with
        its parent directories.

        Args:
            path: absolute, as the process sees it.
        """
        user, table = self._user, self._table
        if table is None or user is None or not path.startswith("/"):
            return WriteAccess("unknown")
        try:
            found = _resolve(self._root, path)
        except (OSError, ValueError):  # of another user, gone, or not a path
            return WriteAccess("unknown")
        nearest, missing = found.nearest, bool(found.missing)
        mount = table.of(posixpath.normpath(posixpath.join(nearest.path, found.missing)))
        # writing to devices, pipes and sockets does not write to a mount
        if nearest.is_directory or stat.S_ISREG(nearest.stat.st_mode):
            if mount is None:
                return WriteAccess("unknown", missing=missing)
            if mount.read_only:
                return WriteAccess("read-only-mount", missing)
        wanted = _WRITE | _SEARCH if nearest.is_directory else _WRITE
        if user.allows(nearest.stat, wanted) and all(
            user.allows(each.stat, _SEARCH) for each in found.passed
        ):
            return WriteAccess("allowed", missing=missing)
        return WriteAccess("unknown" if user.is_capable else "mode", missing=missing)


class _Step(NamedTuple):
    """An existing component of a resolved path."""

    path: str
    stat: os.stat_result

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.stat.st_mode)


class _Resolved(NamedTuple):
    """A path without links."""

    nearest: _Step
    """What it leads to, as far as that exists."""
    passed: list[_Step]
    """The directories on the way."""
    missing: str = ""
    """The rest of the path, which does not exist."""


def _resolve(root: str, path: str) -> _Resolved:
    """Resolve symlinks within the root of a process.

    Args:
        root: where the root can be opened.
        path: absolute, as the process sees it.

    Raises:
        OSError: not permitted here, a loop of symlinks, or a component that is not a directory.
    """
    todo = path.strip("/").split("/")[::-1]
    steps = [_Step("/", os.stat(f"{root}/"))]
    passed: list[_Step] = []
    links = 0
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if not steps[-1].is_directory:
            raise NotADirectoryError(f"{steps[-1].path} is not a directory")
        passed.append(steps[-1])
        if name == "..":
            steps = steps[:-1] or steps
            continue
        below = posixpath.join(steps[-1].path, name)
        try:
            found = os.lstat(f"{root}{below}")
        except FileNotFoundError:
            return _Resolved(steps[-1], passed, "/".join((name, *reversed(todo))))
        if not stat.S_ISLNK(found.st_mode):
            steps.append(_Step(below, found))
            continue
        links += 1
        if links > _MAX_LINKS:
            raise OSError(f"too many links: {path}")
        target = os.readlink(f"{root}{below}")
        todo += target.split("/")[::-1]
        if target.startswith("/"):
            steps = steps[:1]
    return _Resolved(steps[-1], passed)


class Credentials(msgspec.Struct, frozen=True):
    """The identity of a process towards filesystems (`/proc/PID/status`), in the ids of agentdash's
    namespace."""

    uid: int
    gid: int
    groups: frozenset[int]
    is_capable: bool = False
    """Whether it has any capability, by which it may be allowed more than modes grant."""

    def allows(self, entry: os.stat_result, wanted: int) -> bool:
        """Return whether mode and owner of a file or directory grant all wanted permission bits."""
        if entry.st_uid == self.uid:
            shift = 6
        else:
            shift = 3 if entry.st_gid == self.gid or entry.st_gid in self.groups else 0
        return (entry.st_mode >> shift) & wanted == wanted


def credentials_of(pid: int) -> Credentials | None:
    """Return the credentials of a process, or None if it is gone or unreadable."""
    status = linux.status(pid)
    try:
        return Credentials(
            uid=int(status[b"Uid"].split()[3]),
            gid=int(status[b"Gid"].split()[3]),
            groups=frozenset(map(int, status.get(b"Groups", b"").split())),
            is_capable=int(status[b"CapEff"], 16) != 0,
        )
    except (KeyError, IndexError, ValueError):
        return None
