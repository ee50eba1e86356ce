"""A mount namespace's table, and the question it answers without touching the disk: may this path be written,
as far as mounts go?"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Literal

import msgspec


class Mount(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `/proc/PID/mountinfo`."""

    id: int
    parent: int
    """The mount it is mounted on. The root mount's parent is not in the table, or itself."""
    point: str
    """Where it is mounted, absolute, as the process sees it."""
    read_only: bool = False
    """By an option of this mount (`mount --bind -o ro`), or because its filesystem is."""
    fstype: str = ""
    """`ext4`, `tmpfs` ..."""
    root: str = "/"
    """Which directory of its filesystem is mounted."""
    mask: bool = False
    """A read-only tmpfs made with a mode that lets nobody write, as Codex lays over `.git`, `.codex` ...
    where these are missing (mode 555) and over what is to be hidden (mode 000): what is seen there is empty,
    whatever the disk has."""


class WriteAccess(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a process may write a path."""

    verdict: Literal["allowed", "read-only-mount", "mode", "policy", "unknown"]
    """Of a living process: `allowed` as far as mounts, modes and owners go; Landlock cannot be read. `mode`:
    owner and mode refuse it. `policy`: there is no process yet, and the policy refuses it."""
    mount: Mount | None = None
    """The mount that refuses it."""
    missing: bool = False
    """Whether it is not there yet: then it, or the directories above it, would have to be made."""


class MountTable:
    """All mounts of a namespace, resolved as the kernel does: component by component, from mount to mount.

    Args:
        mounts: in the order of mountinfo. Of several on the same place the last one counts.
    """

    def __init__(self, mounts: Iterable[Mount]) -> None:
        mounts = tuple(mounts)
        ids = {mount.id for mount in mounts}
        self._on = {(mount.parent, mount.point): mount for mount in mounts if mount.parent != mount.id}
        # what is stacked on "/" itself is only seen by who changes his root to it; a process in a chroot has
        # no root mount in its table
        roots = (m for m in mounts if m.point == "/" and (m.parent == m.id or m.parent not in ids))
        self._root = next(roots, None)

    def of(self, path: str) -> Mount | None:
        """The mount that a path lies on, existing or not. None: the table does not tell (relative paths, a
        chroot).

        Args:
            path: absolute, free of symlinks as far as it exists.
        """
        if self._root is None or not path.startswith("/"):
            return None
        mount, place = self._root, ""
        for name in posixpath.normpath(path).strip("/").split("/"):
            place = f"{place}/{name}"
            while (on := self._on.get((mount.id, place))) is not None:
                mount = on
        return mount

    def may_write(self, path: str) -> bool | None:
        """Whether mounts let this path be written; None: not known. Modes, owners and Landlock may still
        forbid it.

        Args:
            path: absolute, free of symlinks as far as it exists.
        """
        mount = self.of(path)
        return None if mount is None else not mount.read_only
