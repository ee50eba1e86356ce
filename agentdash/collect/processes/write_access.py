"""Determine whether a process may write a path, by its mounts, then by modes and owners. No path is opened:
only `stat` and `readlink`.

Not considered, since not visible from outside: Landlock, access lists, immutable files, quotas.
"""

# Paths are strings here, as the process sees them; they are resolved below /proc/PID/root.
# ruff: noqa: PTH115, PTH116

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.collect.processes import linux
from agentdash.model.mounts import Mount, MountTable, WriteAccess

_MAX_LINKS: Final = 40
"""Symlinks followed in one path: the limit of the kernel."""
_DAC_OVERRIDE: Final = 1 << 1
_DAC_READ_SEARCH: Final = 1 << 2
"""Bits of `CapEff` (capability.h)."""
_WRITE: Final = 2
_SEARCH: Final = 1
"""Permission bits of a mode."""


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


class WriteAccessChecker:
    """Checks which paths a process may write.

    Args:
        pid: of the process, in agentdash's pid namespace.
        mounts: its mount table, where it has been read already.
    """

    def __init__(self, pid: int, mounts: Sequence[Mount] | None = None) -> None:
        mounts = linux.mounts(pid) if mounts is None else mounts
        self._table = None if mounts is None else MountTable(mounts)
        self._root = f"/proc/{pid}/root"
        self._credentials = credentials_of(pid)

    def may_write(self, path: str) -> WriteAccess:
        """Return whether it may write a path; for a missing one, whether it may create it with its parent
        directories.

        Args:
            path: absolute, as the process sees it.
        """
        if self._table is None or self._credentials is None or not path.startswith("/"):
            return WriteAccess("unknown")
        try:
            found = _resolve(self._root, path, self._credentials)
        except OSError:  # of another user, gone, or not a path; mounts alone would miss symlinks
            return WriteAccess("unknown")
        mode = found.nearest.st_mode
        on_disk = stat.S_ISDIR(mode) or stat.S_ISREG(
            mode
        )  # writing to devices, pipes and sockets does not write to a mount
        if on_disk and (denied := _by_mount(self._table, found.real)):
            return replace(denied, missing=found.missing)
        allowed = found.searched and self._credentials.allows(
            found.nearest, _WRITE | _SEARCH if stat.S_ISDIR(mode) else _WRITE
        )
        return WriteAccess("allowed" if allowed else "mode", missing=found.missing)


def credentials_of(pid: int) -> Credentials | None:
    """Return the credentials of a process; None where it is gone or unreadable."""
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


def _by_mount(table: MountTable, path: str) -> WriteAccess | None:
    """Return the access where the mount decides it."""
    mount = table.of(path)
    if mount is None:
        return WriteAccess("unknown")
    return WriteAccess("read-only-mount", mount) if mount.read_only else None


class _Found(NamedTuple):
    """A resolved path, as far as it exists."""

    real: str
    """The path without symlinks."""
    nearest: os.stat_result
    """Its last component that exists."""
    searched: bool
    """Whether the process may search all directories of the path."""
    missing: bool


def _resolve(root: str, path: str, credentials: Credentials) -> _Found:
    """Resolve symlinks within the root of a process.

    Raises:
        OSError: no permission, a loop of symlinks, or a component that is no directory.
    """
    todo = path.strip("/").split("/")[::-1]
    real = ""
    links = 0
    searched = True
    here = os.stat(f"{root}/")
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            real = real.rpartition("/")[0]
            here = os.lstat(f"{root}{real}/")
            continue
        if not stat.S_ISDIR(here.st_mode):
            raise NotADirectoryError(real)
        searched &= credentials.allows(here, _SEARCH)
        try:
            found = os.lstat(f"{root}{real}/{name}")
        except FileNotFoundError:
            missing = posixpath.normpath("/".join((real, name, *reversed(todo))))
            return _Found(missing, here, searched, missing=True)
        if not stat.S_ISLNK(found.st_mode):
            real, here = f"{real}/{name}", found
            continue
        if (links := links + 1) > _MAX_LINKS:
            raise OSError(f"too many links: {path}")
        target = os.readlink(f"{root}{real}/{name}")
        todo += target.split("/")[::-1]
        if target.startswith("/"):
            real, here = "", os.stat(f"{root}/")
    return _Found(real or "/", here, searched, missing=False)
