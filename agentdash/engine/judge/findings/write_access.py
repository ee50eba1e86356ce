"""What a command's mounts let it write, beside what its policy lets it write."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from agentdash.model.mounts import Mount, MountTable
from agentdash.model.policy import Filesystem, Policy


class MountTables:
    """The mount tables of a fleet, made ready when somebody asks.

    Args:
        mounts: by the inode of their namespace.
    """

    def __init__(self, mounts: Mapping[int, tuple[Mount, ...]]) -> None:
        self._mounts = mounts
        self._ready: dict[int, MountTable] = {}

    def of(self, namespace: int | None) -> MountTable | None:
        """The table of a namespace; None where it is agentdash's own, or has not been read."""
        if namespace is None or namespace not in self._mounts:
            return None
        if namespace not in self._ready:
            self._ready[namespace] = MountTable(self._mounts[namespace])
        return self._ready[namespace]

    def writable_points(self, namespace: int) -> tuple[str, ...]:
        """Where something is mounted that may be written."""
        return tuple(mount.point for mount in self._mounts[namespace] if not mount.read_only)


def unwritable(policy: Policy, tables: MountTables, namespace: int | None) -> tuple[str, ...]:
    """Roots that the policy lets be written and the mounts do not.

    A root may be a symlink, which a mount table does not tell: one with a writable mount of the same last name is given the benefit.
    """
    table = tables.of(namespace)
    if table is None or namespace is None:
        return ()
    twins = {posixpath.basename(point) for point in tables.writable_points(namespace)}
    roots = [root for root in policy.writable_roots if table.may_write(root) is False]
    return tuple(root for root in roots if root == "/" or posixpath.basename(root) not in twins)


def exposed(
    policy: Policy, tables: MountTables, namespace: int | None, home: str | None, cwd: str | None
) -> tuple[str, ...]:
    """Of the root, the home directory and the one above the workspace: those that the policy protects and the mounts do not."""
    table = tables.of(namespace)
    if table is None or policy.filesystem is Filesystem.UNKNOWN:
        return ()
    probes = ("/", home, posixpath.dirname(cwd) if cwd else None)
    return tuple(
        dict.fromkeys(p for p in probes if p and policy.may_write(p) is False and table.may_write(p))
    )
