"""What a command's mounts make writable, against what its policy makes writable."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from agentdash.model.mounts import Mount, MountTable
from agentdash.model.policy import Filesystem, Policy


class MountTables:
    """The mount tables of a fleet, parsed on first use.

    Args:
        mounts: by the inode of their namespace.
    """

    def __init__(self, mounts: Mapping[int, tuple[Mount, ...]]) -> None:
        self._mounts = mounts
        self._tables: dict[int, MountTable] = {}

    def of(self, namespace: int | None) -> MountTable | None:
        """Return the table of a namespace; None where it is agentdash's own, or has not been read."""
        if namespace is None or namespace not in self._mounts:
            return None
        if namespace not in self._tables:
            self._tables[namespace] = MountTable(self._mounts[namespace])
        return self._tables[namespace]

    def writable_points(self, namespace: int) -> tuple[str, ...]:
        """Return the mount points that may be written."""
        return tuple(mount.point for mount in self._mounts[namespace] if not mount.read_only)


def unwritable_roots(policy: Policy, tables: MountTables, namespace: int | None) -> tuple[str, ...]:
    """Return roots that are writable under the policy, and not by the mounts.

    A root may be a symlink, which a mount table does not show: a root is left out where a writable mount has
    the same last name.
    """
    table = tables.of(namespace)
    if table is None or namespace is None:
        return ()
    possible_targets = {posixpath.basename(point) for point in tables.writable_points(namespace)}
    roots = [root for root in policy.writable_roots if table.may_write(root) is False]
    return tuple(root for root in roots if root == "/" or posixpath.basename(root) not in possible_targets)


def exposed_paths(
    policy: Policy, tables: MountTables, namespace: int | None, home: str | None, cwd: str | None
) -> tuple[str, ...]:
    """Return which of `/`, the home and the parent of the workspace only the mounts make writable."""
    table = tables.of(namespace)
    if table is None or policy.filesystem is Filesystem.UNKNOWN:
        return ()
    probes = ("/", home, posixpath.dirname(cwd) if cwd else None)
    exposed = (p for p in probes if p and policy.may_write(p) is False and table.may_write(p))
    return tuple(dict.fromkeys(exposed))
