"""What may be written and reached, by a policy and by the mounts of a command."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal

from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.reach import Certainty, Reach, Reached
from agentdash.model.state_paths import (
    Mount,
    MountTable,
    PathAccess,
    StatePath,
    WriteAccess,
    path_access,
    resolve_path,
)

_VERDICTS: Final[dict[bool | None, Literal["unknown", "allowed", "policy"]]] = {
    None: "unknown",
    True: "allowed",
    False: "policy",
}


# ---------------------------------------------------------------- the mounts of a command


class MountTables:
    """The mount tables of a fleet, parsed on first use.

    Args:
        mounts: by the inode of their namespace.
    """

    def __init__(self, mounts: Mapping[int, tuple[Mount, ...]]) -> None:
        self._mounts = mounts
        self._tables: dict[int, MountTable] = {}

    def of(self, namespace: int | None) -> MountTable | None:
        """Return the table of a namespace, or None if it is agentdash's own, or has not been read."""
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

    A root may be a symlink, which a mount table does not show: a root is left out if a writable mount has the
    same last name.
    """
    table = tables.of(namespace)
    if table is None or namespace is None:
        return ()
    possible_targets = {posixpath.basename(point) for point in tables.writable_points(namespace)}
    roots = [root for root in policy.writable_roots if table.may_write(root) is False]
    return tuple(root for root in roots if root == "/" or posixpath.basename(root) not in possible_targets)


def exposed_paths(
    policy: Policy,
    tables: MountTables,
    namespace: int | None,
    host: int | None,
    probes: Iterable[str | None],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which paths only the mounts make writable: those of the user, and those in a filesystem that the
    sandbox has for itself, where what is written is lost with it.

    Args:
        namespace: the inode of the command's mount namespace.
        host: that of its CLI's.
        probes: absolute paths; None in the place of an unknown one.
    """
    table = tables.of(namespace)
    if table is None or policy.filesystem is Filesystem.UNKNOWN:
        return (), ()
    open_paths = dict.fromkeys(p for p in probes if p and policy.may_write(p) is False and table.may_write(p))
    lost = tuple(path for path in open_paths if table.is_lost(path, tables.of(host)))
    return tuple(path for path in open_paths if path not in lost), lost


# ---------------------------------------------------------------- state paths of worker CLIs


def paths_under_policy(
    policy: Policy,
    paths: Iterable[StatePath],
    env: Mapping[str, str],
    cwd: str | None,
    missing: Collection[str] = (),
) -> tuple[PathAccess, ...]:
    """Return the state paths and whether the policy lets them be written; unplaced ones are left out.

    Args:
        paths: the rows of one worker CLI.
        env: the environment that it would get: `HOME`, `XDG_*`, `TMPDIR` ...
        cwd: where it would run.
        missing: absolute paths that are known not to exist yet.
    """
    found = []
    for row in paths:
        if (path := resolve_path(row.path, env, cwd)) is not None:
            verdict = _VERDICTS[policy.may_write(path, env.get("TMPDIR"))]
            found.append(path_access(row, path, WriteAccess(verdict, missing=path in missing)))
    return tuple(found)


# ---------------------------------------------------------------- what a worker could reach


def reach_by_policy(own: Reach, policy: Policy) -> Reach:
    """Return what commands under a policy may reach, if nothing else limits this user's rights.

    Args:
        own: what agentdash itself reaches, which is in no sandbox.
    """
    if policy.is_full_access:
        return Reach(own.targets, own.limits, "policy")
    return Reach(tuple(_under(each, policy) for each in own.targets), ("its sandbox",), "policy")


def _under(each: Reached, policy: Policy) -> Reached:
    if each.certainty == "cannot":
        return each
    match each.target.action:
        case "write":
            allowed = policy.may_write(each.target.path)
        case "connect":
            allowed = {Network.ON: True, Network.OFF: False}.get(policy.network)
        case _:
            allowed = None if policy.has_deny else True
    if allowed is False:
        return Reached(each.target, "cannot", "its policy")
    certainty: Certainty = "unknown" if allowed is None or each.certainty == "unknown" else "may"
    return Reached(each.target, certainty, each.how)
