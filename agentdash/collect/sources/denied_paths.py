"""What is at the paths that sandboxes denied, at writable roots, and above them: derived from the fleet and
the disk.

A remedy may name an existing directory only, and a root that is a symbolic link has another name in the
kernel. Files are looked at with `lstat`, never opened, so that no pipe
or device can block.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from agentdash.model.denials import PathKind
from agentdash.model.events import Event, PathsSeen
from agentdash.model.fleet import Fleet
from agentdash.model.source import Clock, Emit, FleetChannel
from agentdash.model.thread import Thread

_MAX_TARGETS: Final = 200
"""Denied paths that are looked at, the newest: each has some ten directories above it."""
_COST_FACTOR: Final = 100
"""At most 1 % of a core."""
_HOME_FILES: Final = (
    *(".bashrc", ".bash_profile", ".bash_history", ".profile", ".zshrc", ".zsh_history", ".ssh"),
)
"""Files of login shells: a directory that has one of them is a home."""


class DeniedPathSource:
    """Emits what is at denied paths and writable roots of threads of this machine."""

    name = "denied paths"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, PathKind] = {}

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return what changed."""
        import asyncio  # noqa: PLC0415 - audits need the functions below alone

        return await asyncio.to_thread(self._look, fleet)

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit what changes."""
        from agentdash.collect.scheduler import look_repeatedly  # noqa: PLC0415 - as above

        await look_repeatedly(self._look, emit, channel, cost_factor=_COST_FACTOR)

    def _look(self, fleet: Fleet) -> list[Event]:
        threads = fleet.threads.values()
        kinds = path_kinds([*denied_paths(threads), *roots(threads)])
        changed = tuple((path, kind) for path, kind in kinds.items() if self._known.get(path) is not kind)
        self._known.update(kinds)
        return [PathsSeen(at=self._clock.now(), paths=changed)] if changed else []


def denied_paths(
    threads: Iterable[Thread], is_here: Callable[[str], bool] = lambda cwd: Path(cwd).is_dir()
) -> list[str]:
    """Return the absolute paths that were denied to threads of this machine, the newest first; bounded.

    Args:
        threads: with their denial ledgers.
        is_here: whether a working directory exists here. A thread whose directory does not ran elsewhere, or
            long ago: its paths mean nothing.
    """
    found: dict[str, float] = {}
    for thread in threads:
        if not thread.denials or not thread.cwd or not is_here(thread.cwd):
            continue
        for entry in thread.denials:
            if entry.what == "filesystem" and entry.target and entry.target.startswith("/"):
                path = posixpath.normpath(entry.target)
                found[path] = max(entry.last, found.get(path, entry.last))
    return sorted(found, key=lambda path: found[path], reverse=True)[:_MAX_TARGETS]


def roots(threads: Iterable[Thread]) -> list[str]:
    """Return the writable roots of threads whose commands are observed, or may be; bounded."""
    found = dict.fromkeys(
        root
        for thread in threads
        if (thread.is_in_turn or thread.observations) and thread.policy is not None
        for root in thread.policy.writable_roots
        if root.startswith("/") and root != "/"
    )
    return list(found)[-_MAX_TARGETS:]


def path_kinds(paths: Iterable[str]) -> dict[str, PathKind]:
    """Return what is at absolute paths and at the directories above them, where that can be read."""
    kinds = {
        place: _kind(place)
        for path in paths
        for place in (path, *map(str, PurePosixPath(path).parents))
        if place != "/"
    }
    return {path: kind for path, kind in kinds.items() if kind is not None}


def _kind(path: str) -> PathKind | None:
    try:
        mode = os.lstat(path)
        if stat.S_ISLNK(mode.st_mode):
            return PathKind.LINK
        if not stat.S_ISDIR(mode.st_mode):
            return PathKind.FILE if stat.S_ISREG(mode.st_mode) else PathKind.OTHER
        if mode.st_dev != os.lstat(posixpath.dirname(path)).st_dev:
            return PathKind.MOUNT
    except (FileNotFoundError, NotADirectoryError):
        return PathKind.MISSING
    except (OSError, ValueError):
        return None
    is_home = path == os.path.expanduser("~") or any(  # noqa: PTH111 - it has no error without HOME
        os.path.lexists(posixpath.join(path, name)) for name in _HOME_FILES
    )
    return PathKind.HOME if is_home else PathKind.DIRECTORY
