"""What a command's mounts make writable, against what its policy makes writable."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agentdash.model.policy import Filesystem, Policy
from agentdash.model.state_paths import Mount, MountTable


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


class Exposed(NamedTuple):
    """Which of `/`, the home and the parent of the workspace only the mounts make writable."""

    paths: tuple[str, ...] = ()
    """Those of the user."""
    lost: tuple[str, ...] = ()
    """Those in a filesystem that the sandbox has for itself: what is written there is lost with it."""


def exposed_paths(
    policy: Policy,
    tables: MountTables,
    namespace: int | None,
    host: int | None,
    probes: Iterable[str | None],
) -> Exposed:
    """Return which paths only the mounts make writable.

    Args:
        namespace: the inode of the command's mount namespace.
        host: that of its CLI's.
        probes: absolute paths; None in the place of an unknown one.
    """
    table = tables.of(namespace)
    if table is None or policy.filesystem is Filesystem.UNKNOWN:
        return Exposed()
    open_paths = [p for p in probes if p and policy.may_write(p) is False and table.may_write(p)]
    lost = [path for path in open_paths if table.is_lost(path, tables.of(host))]
    return Exposed(
        paths=tuple(dict.fromkeys(path for path in open_paths if path not in lost)),
        lost=tuple(dict.fromkeys(lost)),
    )
