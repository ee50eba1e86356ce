"""Whether a process may write a path: by its mounts, then by modes and owners. Only `lstat` and `readlink`: no path is opened or touched.

What cannot be seen from outside is not in the answer: Landlock, access lists, immutable files, quotas.
"""

# Paths are strings here, as the process sees them; the disk is asked below /proc/PID/root.
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
from agentdash.model.mounts import WriteAccess, Mount, MountTable

_LINKS: Final = 40
"""Symlinks followed in one path, as the kernel does."""
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1 << 1, 1 << 2


class Credentials(msgspec.Struct, frozen=True):
    """What a process is to a filesystem (`/proc/PID/status`, `uid_map`, `gid_map`), in our own numbers."""

    uid: int
    gid: int
    groups: frozenset[int]
    capabilities: int
    """Effective ones, in its own user namespace: they count for files whose owner and group that namespace knows."""
    uids: tuple[range, ...]
    gids: tuple[range, ...]

    def allows(self, of: os.stat_result, want: int) -> bool:
        """Whether modes and owners of a file or directory grant all of `want`: 2 write, 1 search."""
        shift = 6 if of.st_uid == self.uid else 3 if of.st_gid == self.gid or of.st_gid in self.groups else 0
        if (of.st_mode >> shift) & want == want:
            return True
        if not (
            any(of.st_uid in some for some in self.uids) and any(of.st_gid in some for some in self.gids)
        ):
            return False
        return bool(self.capabilities & (_DAC_OVERRIDE if want & 2 else _DAC_OVERRIDE | _DAC_READ_SEARCH))


class Reach:
    """What a process may write.

    Args:
        pid: of the process, as we count.
        mounts: its mount table, where that is known already.
    """

    def __init__(self, pid: int, mounts: Sequence[Mount] | None = None) -> None:
        mounts = linux.mounts(pid) if mounts is None else mounts
        self._table = None if mounts is None else MountTable(mounts)
        self._root, self._credentials = f"/proc/{pid}/root", credentials_of(pid)

    def may_write(self, path: str) -> WriteAccess:
        """Whether it may write a path; for one that does not exist: whether it may be made, with the directories above it.

        Args:
            path: absolute, as the process sees it.
        """
        if self._table is None or self._credentials is None or not path.startswith("/"):
            return WriteAccess("unknown")
        try:
            found = _resolve(self._root, path, self._credentials)
        except (
            OSError
        ):  # of another user, gone, or no path at all; by the mounts alone one would overlook links
            return WriteAccess("unknown")
        mode = found.nearest.st_mode
        on_disk = stat.S_ISDIR(mode) or stat.S_ISREG(mode)  # devices, pipes and sockets: no mount is written
        if on_disk and (denied := _by_mount(self._table, found.real)):
            return replace(denied, missing=found.missing)
        allowed = found.searched and self._credentials.allows(found.nearest, 3 if stat.S_ISDIR(mode) else 2)
        return WriteAccess("allowed" if allowed else "mode", missing=found.missing)


def credentials_of(pid: int) -> Credentials | None:
    """None where the process is gone or tells nothing."""
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
    """The answer, where mounts give it."""
    mount = table.of(path)
    if mount is None:
        return WriteAccess("unknown")
    return WriteAccess("read-only-mount", mount) if mount.read_only else None


class _Found(NamedTuple):
    """A path, as far as it exists."""

    real: str
    """Free of symlinks."""
    nearest: os.stat_result
    """What exists of it last."""
    searched: bool
    """Whether the process may search all directories on the way."""
    missing: bool


def _resolve(root: str, path: str, credentials: Credentials) -> _Found:
    """Follows symlinks within a process's own root.

    Raises:
        OSError: we may not look there, there is a loop of links, or a component is no directory.
    """
    todo, real, links, searched = path.strip("/").split("/")[::-1], "", 0, True
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
        searched &= credentials.allows(here, 1)
        try:
            found = os.lstat(f"{root}{real}/{name}")
        except FileNotFoundError:
            return _Found(
                posixpath.normpath("/".join((real, name, *reversed(todo)))), here, searched, missing=True
            )
        if not stat.S_ISLNK(found.st_mode):
            real, here = f"{real}/{name}", found
            continue
        if (links := links + 1) > _LINKS:
            raise OSError(f"too many links: {path}")
        target = os.readlink(f"{root}{real}/{name}")
        todo += target.split("/")[::-1]
        if target.startswith("/"):
            real, here = "", os.stat(f"{root}/")
    return _Found(real or "/", here, searched, missing=False)
