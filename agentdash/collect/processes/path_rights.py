"""Determine what a process may do with a path: by its mounts, and by modes and owners. Nothing is opened:
`lstat`, `readlink` and `listxattr` only.

Where capabilities, access lists, owners or a directory above, in which it may be replaced, could grant what
modes forbid, it is not known. Landlock, security modules and seccomp, which cannot be read from outside, only
refuse more. Not considered: programs with set-user-id, other processes that it may trace.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from agentdash.collect.processes import linux
from agentdash.model.reach import Action
from agentdash.model.state_paths import Mount, MountTable, WriteAccess

# Paths are strings here, as the process sees them; they are resolved below /proc/PID/root.
# ruff: noqa: PTH115, PTH116


_MAX_LINKS: Final = 40
"""Symlinks followed in one path: the limit of the kernel."""
_READ: Final = 4
_WRITE: Final = 2
_SEARCH: Final = 1
"""Permission bits of a mode."""
_ACCESS_LISTS: Final = ("system.posix_acl_access", "system.nfs4_acl", "system.richacl")
_NAMES_ARE_NO_PLACES: Final = ("proc", "autofs")
"""Filesystems whose links lead elsewhere than their text, or whose directories appear when they are used."""


class Right(NamedTuple):
    """Whether a process has a right to a path."""

    granted: bool | None
    """None: not known."""
    how: str = ""
    """`create`, or what refuses it, or why it is not known."""
    at: str = ""
    """The path by which it is granted, free of links: the file, or the directory in which it is created."""


class PathRights:
    """Checks what one process may do with paths.

    Args:
        pid: of the process, in agentdash's pid namespace.
        mounts: its mount table, if it has been read already.
    """

    def __init__(self, pid: int, mounts: Sequence[Mount] | None = None) -> None:
        self._root = f"/proc/{pid}/root"
        self.mounts = linux.mounts(pid) if mounts is None else mounts
        """None: not readable."""
        self._table = MountTable(self.mounts or ())
        self._user = credentials_of(pid)

    def can_write(self, path: str) -> WriteAccess:
        """Return whether it may write a path as things are; for a missing one, whether it may create it with
        its parent directories.

        Args:
            path: absolute, as the process sees it.
        """
        user = self._user
        if self.mounts is None or user is None or not path.startswith("/"):
            return WriteAccess("unknown")
        try:
            found = _resolve(self._root, path)
        except (OSError, ValueError):  # of another user, gone, or not a path
            return WriteAccess("unknown")
        nearest, missing = found.nearest, bool(found.missing)
        mount = self._table.of(posixpath.normpath(posixpath.join(nearest.path, found.missing)))
        # writing to devices, pipes and sockets does not write to a mount
        if nearest.is_directory or stat.S_ISREG(nearest.stat.st_mode):
            if mount is None:
                return WriteAccess("unknown", missing=missing)
            if mount.read_only:
                return WriteAccess("read-only-mount", missing=missing)
        may_pass = all(user.allows(above.stat, _SEARCH) for above, _ in found.passed)
        if may_pass and user.allows(nearest.stat, nearest.to_write):
            return WriteAccess("allowed", missing=missing)
        return WriteAccess("unknown" if user.is_capable else "mode", missing=missing)

    def may(self, action: Action, path: str) -> Right:
        """Return whether the process could write (also create), read, or connect to a path.

        Args:
            action: what it would do.
            path: absolute, as the process sees it.
        """
        user = self._user
        if user is None or not path.startswith("/"):
            return Right(None, "its credentials are not readable")
        try:
            found = _resolve(self._root, path, self._table)
        except (OSError, ValueError) as error:
            return Right(None, getattr(error, "strerror", None) or str(error))
        nearest = found.nearest
        if action != "write" and found.missing:
            return Right(False, "not there")
        if action == "connect" and not stat.S_ISSOCK(nearest.stat.st_mode):
            return Right(False, "no socket")
        wanted = {"write": nearest.to_write, "read": _READ, "connect": _WRITE}[action]
        granted = [self._grants(user, above, _SEARCH) for above, _ in found.passed]
        granted.append(self._grants(user, nearest, wanted))
        is_read_only = action == "write" and self._is_read_only(nearest)
        if all(granted) and is_read_only is False:
            return Right(True, "create" if found.missing else "", nearest.path)
        if action == "write" and any(self._is_replaceable(user, *each) for each in found.passed):
            return Right(None, "a directory above it may be changed")
        if is_read_only:
            return Right(None, "could mount again") if user.is_capable else Right(False, "read-only mount")
        if False in granted:
            return Right(False, "mode")
        return Right(None, "owner, capabilities or an access list may allow it")

    def _grants(self, user: Credentials, step: _Step, wanted: int) -> bool | None:
        is_allowed = user.allows(step.stat, wanted)
        if step.stat.st_uid == user.uid:
            return is_allowed or None
        if self._has_access_list(step.path):
            return None  # beside a list, the mode states the rights of the owner alone
        return is_allowed or (None if user.is_capable else False)

    def _is_replaceable(self, user: Credentials, above: _Step, entry: _Step) -> bool:
        """Return whether an entry of a directory could be renamed, and another put in its place."""
        if self._is_read_only(above) or any(mount.point == entry.path for mount in self.mounts or ()):
            return False  # what a mount lies on stays where it is
        owns = user.is_capable or user.uid in (entry.stat.st_uid, above.stat.st_uid)
        is_sticky = bool(above.stat.st_mode & stat.S_ISVTX)
        return (owns or not is_sticky) and self._grants(user, above, above.to_write) is not False

    def _is_read_only(self, step: _Step) -> bool | None:
        """Return whether the mount of a path refuses changes; None: not known."""
        if not (step.is_directory or stat.S_ISREG(step.stat.st_mode)):
            return False  # writing to devices, pipes and sockets does not write to a mount
        mount = self._table.of(step.path)
        return None if mount is None else mount.read_only

    def _has_access_list(self, path: str) -> bool:
        try:
            names = os.listxattr(f"{self._root}{path}", follow_symlinks=False)
        except OSError as error:
            return error.errno not in (errno.ENOTSUP, errno.ENOSYS)
        return any(name in names for name in _ACCESS_LISTS)


class _Step(NamedTuple):
    """An existing component of a resolved path."""

    path: str
    stat: os.stat_result

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.stat.st_mode)

    @property
    def to_write(self) -> int:
        """Return the permission bits by which it is written, or entries are made in it."""
        return _WRITE | _SEARCH if self.is_directory else _WRITE


class _Resolved(NamedTuple):
    """A path without links."""

    nearest: _Step
    """What it leads to, as far as that exists."""
    passed: list[tuple[_Step, _Step]]
    """The directories on the way, and what was looked up in each: links too."""
    missing: str = ""
    """The rest of the path, which does not exist."""


def _resolve(root: str, path: str, table: MountTable | None = None) -> _Resolved:
    """Resolve symlinks within the root of a process.

    Args:
        root: where the root can be opened.
        path: absolute, as the process sees it.
        table: its mounts, if places that cannot be seen from outside are refused.

    Raises:
        OSError: not permitted here, a loop of symlinks, a component that is not a directory, or a part of
            /proc, where links lead elsewhere than their text.
    """
    todo = path.strip("/").split("/")[::-1]
    steps = [_Step("/", os.stat(f"{root}/"))]
    passed: list[tuple[_Step, _Step]] = []
    links = 0
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if not steps[-1].is_directory:
            raise NotADirectoryError(f"{steps[-1].path} is not a directory")
        if name == "..":
            passed.append((steps[-1], steps[-1]))
            steps = steps[:-1] or steps
            continue
        below = posixpath.join(steps[-1].path, name)
        mount = table.of(below) if table else None
        if mount is not None and mount.fstype in _NAMES_ARE_NO_PLACES:
            raise PermissionError(f"in {mount.fstype}")
        try:
            found = os.lstat(f"{root}{below}")
        except FileNotFoundError:
            return _Resolved(steps[-1], passed, "/".join((name, *reversed(todo))))
        passed.append((steps[-1], _Step(below, found)))
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
    """Return the credentials of a process, or None if it is gone, unreadable, or may change its user."""
    status = linux.status(pid)
    try:
        (uid,) = set(map(int, status[b"Uid"].split()))
        return Credentials(
            uid=uid,
            gid=int(status[b"Gid"].split()[3]),
            groups=frozenset(map(int, status.get(b"Groups", b"").split())),
            is_capable=int(status[b"CapPrm"], 16) != 0,
        )
    except (KeyError, IndexError, ValueError):
        return None
