"""Determine what a process may do with a path: write, read, connect. Nothing is opened: `lstat`, `readlink`
and `listxattr` only.

It is never `False` where the kernel's own rules let the process do it: a writable directory lets its entries
be replaced (also one that others are mounted below), an owner may change the mode, access lists and
capabilities grant more than modes; where that is not certain, it is not known. What is not visible from
outside (Landlock, security modules, seccomp) only refuses more. Not considered: programs
with set-user-id, other processes that it may trace.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterator, Sequence
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
    """How it has it (`create`, `replace`), what refuses it, or why that is not known."""
    at: str = ""
    """The path by which it is granted, free of links: the file, or the directory in which it is created."""


class _Step(NamedTuple):
    """An existing component of a resolved path."""

    path: str
    stat: os.stat_result

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.stat.st_mode)


class _Resolved(NamedTuple):
    """A path without links."""

    steps: list[_Step]
    """The components that exist, `/` first."""
    links: list[list[_Step]]
    """The components up to each link on the way, the link last."""
    missing: str = ""
    """The rest of the path, which does not exist."""


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
        self._points = {mount.point for mount in self.mounts or ()}
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
        nearest, missing = found.steps[-1], bool(found.missing)
        mount = self._table.of(posixpath.normpath(posixpath.join(nearest.path, found.missing)))
        # writing to devices, pipes and sockets does not write to a mount
        if nearest.is_directory or stat.S_ISREG(nearest.stat.st_mode):
            if mount is None:
                return WriteAccess("unknown", missing=missing)
            if mount.read_only:
                return WriteAccess("read-only-mount", missing)
        passed = [step for link in found.links for step in link[:-1]] + found.steps[:-1]
        if all(user.allows(each.stat, _SEARCH) for each in passed) and user.allows(
            nearest.stat, _to_write(nearest)
        ):
            return WriteAccess("allowed", missing=missing)
        return WriteAccess("unknown" if user.is_capable else "mode", missing=missing)

    def may(self, action: Action, path: str) -> Right:
        """Return whether the process could write (also create or replace), read, or connect to a path.

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
        last = found.steps[-1]
        if action == "write":
            return self._may_write(user, found)
        if found.missing:
            return Right(False, "not there")
        if action == "connect" and not stat.S_ISSOCK(last.stat.st_mode):
            return Right(False, "no socket")
        return _right(self._allows(user, found.steps, _WRITE if action == "connect" else _READ), "", last)

    # ------------------------------------------------------------ rules; None: not known

    def _may_write(self, user: Credentials, found: _Resolved) -> Right:
        """Return whether it may write a file or directory, create it, or put another in its place."""
        last = found.steps[-1]
        direct = self._may_write_to(user, found.steps)
        if direct:
            return Right(True, "create" if found.missing else "", last.path)
        others = [each for steps in (found.steps, *found.links) for each in self._replaced(user, steps)]
        for right in others:
            if right.granted:
                return right
        if direct is None or any(right.granted is None for right in others):
            return _right(None, "", last)
        return Right(False, "read-only mount") if self._is_read_only(last.path) else _right(False, "", last)

    def _replaced(self, user: Credentials, steps: list[_Step]) -> Iterator[Right]:
        """Yield whether each entry on the way may be renamed, and another put in its place."""
        for number in range(len(steps) - 1, 0, -1):
            entry, above = steps[number], steps[number - 1]
            if entry.path in self._points:  # what a mount lies on stays where it is
                continue
            granted = self._may_write_to(user, steps[:number])
            is_sticky = bool(above.stat.st_mode & stat.S_ISVTX)
            if is_sticky and user.uid not in (entry.stat.st_uid, above.stat.st_uid):
                granted = None if granted is not False and user.is_capable else False
            yield _right(granted, "replace", above)

    def _may_write_to(self, user: Credentials, steps: list[_Step]) -> bool | None:
        last = steps[-1]
        if last.is_directory or stat.S_ISREG(last.stat.st_mode):
            read_only = self._is_read_only(last.path)
            if read_only is not False:
                return None if read_only is None or user.is_capable else False
        return self._allows(user, steps, _to_write(last))

    def _allows(self, user: Credentials, steps: list[_Step], wanted: int) -> bool | None:
        """Return whether it may search the directories on the way, and has all wanted bits of the last."""
        rights = [self._grants(user, step, _SEARCH) for step in steps[:-1]]
        rights.append(self._grants(user, steps[-1], wanted))
        return False if False in rights else None if None in rights else True

    def _grants(self, user: Credentials, step: _Step, wanted: int) -> bool | None:
        if user.allows(step.stat, wanted):
            return True
        is_changeable = user.is_capable or step.stat.st_uid == user.uid
        return None if is_changeable or self._has_access_list(step.path) else False

    def _is_read_only(self, path: str) -> bool | None:
        """Return whether the mount of a path refuses changes."""
        mount = self._table.of(path)
        return None if mount is None else mount.read_only

    def _has_access_list(self, path: str) -> bool:
        try:
            names = os.listxattr(f"{self._root}{path}", follow_symlinks=False)
        except OSError as error:
            return error.errno not in (errno.ENOTSUP, errno.ENOSYS)
        return any(name in names for name in _ACCESS_LISTS)


def _right(granted: bool | None, how: str, step: _Step) -> Right:
    if granted:
        return Right(True, how, step.path)
    return Right(granted, "mode" if granted is False else "owner, access list or mount may allow it")


def _to_write(step: _Step) -> int:
    """Return the permission bits by which a file is written, or entries are made in a directory."""
    return _WRITE | _SEARCH if step.is_directory else _WRITE


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
    links: list[list[_Step]] = []
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if not steps[-1].is_directory:
            raise NotADirectoryError(f"{steps[-1].path} is not a directory")
        if name == "..":
            steps = steps[:-1] or steps
            continue
        below = posixpath.join(steps[-1].path, name)
        mount = table.of(below) if table else None
        if mount is not None and mount.fstype in _NAMES_ARE_NO_PLACES:
            raise PermissionError(f"in {mount.fstype}")
        try:
            found = os.lstat(f"{root}{below}")
        except FileNotFoundError:
            return _Resolved(steps, links, "/".join((name, *reversed(todo))))
        if not stat.S_ISLNK(found.st_mode):
            steps = [*steps, _Step(below, found)]
            continue
        links.append([*steps, _Step(below, found)])
        if len(links) > _MAX_LINKS:
            raise OSError(f"too many links: {path}")
        target = os.readlink(f"{root}{below}")
        todo += target.split("/")[::-1]
        if target.startswith("/"):
            steps = steps[:1]
    return _Resolved(steps, links)
