"""What a process could reach: each target by the path under which the process sees it."""

# ruff: noqa: PTH116 - paths are strings here, as processes see them

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from agentdash.collect.processes import linux
from agentdash.collect.processes.path_rights import PathRights
from agentdash.model.process import Kernel
from agentdash.model.reach import Certainty, Reach, Reached, ReachKind, ReachTarget
from agentdash.model.sanitize import clean_line

_SECCOMP_FILTER: Final = 2
_NETWORK: Final = ReachTarget(
    kind=ReachKind.NETWORK, path="network", what="everything that this machine reaches", action="connect"
)


def reach_of(pid: int, targets: Iterable[ReachTarget]) -> Reach | None:
    """Return what a process could reach; None where it is gone, or of another user.

    Args:
        pid: of the process, in agentdash's pid namespace.
        targets: places of this machine, as agentdash sees them.
    """
    kernel = linux.kernel(pid)
    if kernel is None or kernel.mnt is None:
        return None
    rights = PathRights(pid)
    limits = _limits(pid, kernel)
    aliases = linux.Aliases(pid)
    found = [_reached(pid, rights, target, aliases, limited=bool(limits)) for target in targets]
    return Reach((*found, _network(pid, kernel, limited=bool(limits))), limits)


def _reached(
    pid: int, rights: PathRights, target: ReachTarget, aliases: linux.Aliases, *, limited: bool
) -> Reached:
    """Return whether the process reaches the target itself, and not a copy of its own in its place."""
    results = []
    place = _identities(target.path)
    for path in dict.fromkeys((target.path, *aliases.of(target.path))):
        right = rights.may(target.action, path)
        if right.granted is False:
            results.append(Reached(target, "cannot", right.how))
        elif right.granted is None:
            results.append(Reached(target, "unknown", right.how))
        elif _is_part(pid, right.at, place):
            how = right.how if path == target.path else f"{right.how} as {clean_line(path)}".strip()
            results.append(Reached(target, "may" if limited else "can", how))
        else:
            results.append(Reached(target, "cannot", "it has a copy of its own there"))
    order: tuple[Certainty, ...] = ("can", "may", "unknown", "cannot")
    return min(results, key=lambda each: order.index(each.certainty))


def _is_part(pid: int, path: str, place: frozenset[tuple[int, int]]) -> bool:
    """Return whether a path of the process is a part of a place of this machine: what is written to a tmpfs
    over a home changes no home, and what is read from an empty file over a key is no key."""
    try:
        theirs = os.stat(f"/proc/{pid}/root{path}", follow_symlinks=False)
    except OSError:
        return True
    return (theirs.st_dev, theirs.st_ino) in place


def _identities(path: str) -> frozenset[tuple[int, int]]:
    """Return device and inode of a path and of the directories above it, as agentdash sees them."""
    found = set()
    for each in {path, os.path.realpath(path)}:
        parts = each.split("/")
        for number in range(1, len(parts) + 1):
            with suppress(OSError):
                entry = os.stat("/".join(parts[:number]) or "/", follow_symlinks=False)
                found.add((entry.st_dev, entry.st_ino))
    return frozenset(found)


def _limits(pid: int, kernel: Kernel) -> tuple[str, ...]:
    """Return what could refuse more than is visible."""
    label = linux.security_label(pid)
    found = (
        "a seccomp filter" if kernel.seccomp == _SECCOMP_FILTER else "",
        "Landlock, which no_new_privs allows" if kernel.no_new_privs else "",
        f"the security module ({clean_line(label, 60)})" if label and "unconfined" not in label else "",
    )
    return tuple(filter(None, found))


def _network(pid: int, kernel: Kernel, *, limited: bool) -> Reached:
    own = linux.kernel(os.getpid())
    if own is not None and kernel.net == own.net:
        return Reached(_NETWORK, "may" if limited else "can", "the same network namespace")
    others = [name for name in linux.interfaces(pid) if name != "lo"]
    if others:
        return Reached(_NETWORK, "may", f"a namespace of its own with {clean_line(', '.join(others[:3]))}")
    return Reached(_NETWORK, "cannot", "a namespace of its own, with loopback alone")
