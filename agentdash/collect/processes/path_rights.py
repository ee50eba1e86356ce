"""Determine what a process may do with a path: write, read, connect. Nothing is opened: `lstat`, `readlink`,
`statvfs` and `listxattr` only.

It is never `cannot` where the kernel's own rules let the process do it: an owner may change the mode, a
writable directory lets its entries be replaced (also one that others are mounted below), access lists grant
more than modes, and a process that may mount may mount again. What is not visible from outside (Landlock,
security modules, seccomp) only refuses more. Not considered: programs with set-user-id, other processes that
it may trace.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

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
_CHOWN: Final = 1 << 0
_DAC_OVERRIDE: Final = 1 << 1
_DAC_READ_SEARCH: Final = 1 << 2
_FOWNER: Final = 1 << 3
_SYS_ADMIN: Final = 1 << 21
"""Bits of `CapEff` (capability.h)."""
_MODE: Final = "mode"
_ABOVE: Final = "a directory above it"
_ACCESS_LIST: Final = "access list"
_ACCESS_LISTS: Final = ("system.posix_acl_access", "system.nfs4_acl", "system.richacl")
_NAMES_ARE_NO_PLACES: Final = ("proc", "autofs")
"""Filesystems whose links lead elsewhere than their text, or whose directories appear when they are used."""


class Right(NamedTuple):
    """Whether a process has a right to a path."""

    granted: bool | None
    """None: not visible."""
    how: str
    """How it has it, or what refuses it."""
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
        self._credentials = credentials_of(pid)
        self._strongest = _strongest(pid, self._credentials)
        self._is_remapped = linux.has_idmapped_mounts(pid)

    def can_write(self, path: str) -> WriteAccess:
        """Return whether it may write a path as things are; for a missing one, whether it may create it with
        its parent directories.

        Args:
            path: absolute, as the process sees it.
        """
        if self.mounts is None or self._credentials is None or not path.startswith("/"):
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
                return WriteAccess("read-only-mount", mount, missing)
        passed = [step for link in found.links for step in link[:-1]]
        passed += found.steps if missing else found.steps[:-1]
        wanted = _WRITE | _SEARCH if nearest.is_directory else _WRITE
        allows = self._credentials.allows
        allowed = all(allows(step.stat, _SEARCH) for step in passed) and allows(nearest.stat, wanted)
        return WriteAccess("allowed" if allowed else "mode", missing=missing)

    def may(self, action: Action, path: str) -> Right:
        """Return whether the process could write (also create or replace), read, or connect to a path.

        Args:
            action: what it would do.
            path: absolute, as the process sees it.
        """
        user = self._strongest
        if user is None or not path.startswith("/"):
            return Right(None, "its credentials are not readable")
        try:
            found = _resolve(self._root, path, self._table)
            if action == "write":
                right = self._may_write(user, found)
            elif found.missing:
                right = Right(False, "not there")
            elif action == "connect" and not stat.S_ISSOCK(found.steps[-1].stat.st_mode):
                right = Right(False, "no socket")
            else:
                right = self._may_use(user, found.steps, _WRITE if action == "connect" else _READ)
        except OSError as error:
            return Right(None, error.strerror or str(error))
        except (ValueError, _HiddenError) as error:
            return Right(None, str(error))
        is_by_mode = right.how in (_MODE, _ABOVE)
        return Right(None, "a mount with other owners") if is_by_mode and self._is_remapped else right

    # ------------------------------------------------------------ rules

    def _may_write(self, user: Credentials, found: _Resolved) -> Right:
        """Return whether it may write a file or directory, create it, or put another in its place."""
        direct = self._may_write_there(user, found.steps)
        if direct.granted:
            return direct._replace(how="create" if found.missing else direct.how)
        others = [self._may_replace(user, steps) for steps in (found.steps, *found.links)]
        granted = next((right for right in others if right.granted), None)
        return granted or next((right for right in (direct, *others) if right.granted is None), direct)

    def _may_write_there(self, user: Credentials, steps: list[_Step]) -> Right:
        last = steps[-1]
        if last.is_directory or stat.S_ISREG(last.stat.st_mode):
            read_only = self._is_read_only(last.path)
            if read_only is None:
                return Right(None, "its mount is not visible")
            if read_only:
                can_mount = user.capabilities & _SYS_ADMIN
                return Right(None, "could mount again") if can_mount else Right(False, "read-only mount")
        return self._may_use(user, steps, _WRITE | _SEARCH if last.is_directory else _WRITE)

    def _may_use(self, user: Credentials, steps: list[_Step], wanted: int) -> Right:
        """Return whether it may search the directories on the way, and has all wanted bits of the last."""
        rights = [self._allows(user, step, _SEARCH) for step in steps[:-1]]
        if any(right.granted is False for right in rights):
            return Right(False, _ABOVE)
        last = self._allows(user, steps[-1], wanted)
        hidden = any(right.granted is None for right in rights)
        return Right(None, _ACCESS_LIST) if hidden and last.granted is not False else last

    def _allows(self, user: Credentials, step: _Step, wanted: int) -> Right:
        """Return whether mode, owner and access list of a component grant permission bits, or may be made to
        grant them."""
        if user.allows(step.stat, wanted):
            return Right(True, "", step.path)
        owns = step.stat.st_uid == user.uid or self._is_privileged(user, step.stat)
        if owns and not self._is_read_only(step.path):
            return Right(True, "change its mode", step.path)
        return Right(None, _ACCESS_LIST) if self._has_access_list(step.path) else Right(False, _MODE)

    def _may_replace(self, user: Credentials, steps: list[_Step]) -> Right:
        """Return whether an entry on the way may be renamed, and another put in its place."""
        hidden = False
        for number in range(len(steps) - 1, 0, -1):
            entry, above = steps[number], steps[number - 1]
            if entry.path in self._points:  # what a mount lies on stays where it is
                continue
            right = self._may_write_there(user, steps[:number])
            owned = user.uid in (entry.stat.st_uid, above.stat.st_uid) or self._is_privileged(
                user, entry.stat
            )
            if right.granted and (owned or not above.stat.st_mode & stat.S_ISVTX):
                return Right(True, "replace", above.path)
            hidden |= right.granted is None
        return Right(None, _ACCESS_LIST) if hidden else Right(False, _MODE)

    def _is_privileged(self, user: Credentials, entry: os.stat_result) -> bool:
        """Return whether a capability lets it change owner or mode of an entry."""
        mapped = any(entry.st_uid in ids for ids in user.uids) and any(
            entry.st_gid in ids for ids in user.gids
        )
        return mapped and bool(user.capabilities & (_FOWNER | _CHOWN))

    def _is_read_only(self, path: str) -> bool | None:
        """Return whether the mount of a path refuses changes; None: not visible."""
        mount = self._table.of(path)
        if mount is not None:
            return mount.read_only
        try:  # the table of a chroot below a mount has no root mount; the kernel answers for the path itself
            return bool(os.statvfs(f"{self._root}{path}").f_flag & os.ST_RDONLY)
        except OSError:
            return None

    def _has_access_list(self, path: str) -> bool:
        try:
            names = os.listxattr(f"{self._root}{path}", follow_symlinks=False)
        except OSError as error:
            return error.errno not in (errno.ENOTSUP, errno.ENOSYS)
        return any(name in names for name in _ACCESS_LISTS)


def _strongest(pid: int, found: Credentials | None) -> Credentials | None:
    """Return the credentials of a process with all capabilities that it may raise, or None if it may change
    its user."""
    fields = linux.status(pid)
    if found is None or len(set(fields.get(b"Uid", b"").split())) != 1:
        return None
    return replace(found, capabilities=int(fields.get(b"CapPrm", b"0"), 16))


class _HiddenError(Exception):
    """A path whose place is not visible from outside."""


class Credentials(msgspec.Struct, frozen=True):
    """The identity of a process towards filesystems (`/proc/PID/status`, `uid_map`, `gid_map`), in the ids of
    agentdash's namespace."""

    uid: int
    gid: int
    groups: frozenset[int]
    capabilities: int
    """Effective ones, in its own user namespace: they apply to files whose owner and group that namespace
    maps."""
    uids: tuple[range, ...]
    gids: tuple[range, ...]

    def allows(self, entry: os.stat_result, wanted: int) -> bool:
        """Return whether mode and owner of a file or directory grant all wanted permission bits."""
        if (entry.st_mode >> self._mode_shift(entry)) & wanted == wanted:
            return True
        uid_mapped = any(entry.st_uid in ids for ids in self.uids)
        gid_mapped = any(entry.st_gid in ids for ids in self.gids)
        if not (uid_mapped and gid_mapped):
            return False
        sufficient = _DAC_OVERRIDE if wanted & _WRITE else _DAC_OVERRIDE | _DAC_READ_SEARCH
        return bool(self.capabilities & sufficient)

    def _mode_shift(self, entry: os.stat_result) -> int:
        """Return how far the permission bits of the class that applies are shifted: owner, group or
        others."""
        if entry.st_uid == self.uid:
            return 6
        return 3 if entry.st_gid == self.gid or entry.st_gid in self.groups else 0


def credentials_of(pid: int) -> Credentials | None:
    """Return the credentials of a process, or None if it is gone or unreadable."""
    status, uids, gids = linux.status(pid), linux.id_map(pid, "uid"), linux.id_map(pid, "gid")
    try:
        return Credentials(
            uid=int(status[b"Uid"].split()[3]),
            gid=int(status[b"Gid"].split()[3]),
            groups=frozenset(map(int, status.get(b"Groups", b"").split())),
            capabilities=int(status[b"CapEff"], 16),
            uids=uids,
            gids=gids,
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
        OSError: not permitted here, a loop of symlinks, or a component that is not a directory.
        _HiddenError: a part of /proc, where links lead elsewhere than their text.
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
            raise _HiddenError(f"in {mount.fstype}")
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
