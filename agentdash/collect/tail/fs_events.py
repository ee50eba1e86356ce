"""File events, where the system delivers any: hints that something below some directories has changed.

On Linux they come from inotify, elsewhere from watchfiles.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final, Protocol

from agentdash.collect import inotify
from agentdash.collect.inotify import Inotify

_QUIET_MS: Final = 10
"""From a change to its delivery: what is written together comes together."""
_MIN_INTERVAL_MS: Final = 100
"""Between two deliveries; snapshots do not follow each other faster either."""
_SUSTAINED_INTERVAL_MS: Final = 250
"""Likewise while changes keep coming, for the same reason."""
_BURST: Final = 20
"""Deliveries that may follow each other at the shorter interval."""
_REASONS: Final = {
    errno.ENOSPC: "no inotify watches left",
    errno.EMFILE: "no inotify instances left",
    errno.ENFILE: "too many open files",
}
_NOT_WATCHING: Final = "polling: nothing to watch yet"
_CHANGES: Final = (
    inotify.MODIFY
    | inotify.CREATE
    | inotify.DELETE
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.DELETE_SELF
    | inotify.MOVE_SELF
    | inotify.ONLY_DIRECTORY
)
_CREATIONS: Final = inotify.CREATE | inotify.MOVED_TO | inotify.ONLY_DIRECTORY
_LOCAL_FILE_SYSTEMS: Final = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs")
)
"""File systems on which every change is made by this kernel, which therefore reports all of them."""


class FileWatcher:
    """Watches some directories. `renew` finds out when these are created, removed or replaced.

    Events may be late, doubled or missing altogether (macOS is silent on files that stay open, network file
    systems on everything), so a caller has to poll as well; seldom where they are `reliable`.

    Args:
        roots: the directories; they need not exist yet.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._watched: dict[str, tuple[int, int]] = {}
        """Device and inode of the directories that are watched."""
        self._backend: _Backend | None = None
        self._is_begun = False
        self._awaited: set[str] = set()
        """Directories that do not exist, and whose creation is noticed."""
        self._are_local = False
        self._changed: set[str] = set()
        self._has_changed = asyncio.Event()
        self.state = _NOT_WATCHING
        """`events`, or `polling: ` and the reason."""

    @property
    def begun(self) -> bool:
        """Whether any of the directories exists."""
        return bool(self._watched)

    @property
    def complete(self) -> bool:
        """Whether all of the directories are watched."""
        return self.state == "events" and len(self._watched) == len(self._roots)

    @property
    def awaits_others(self) -> bool:
        """Whether the creation of the directories that do not exist is noticed."""
        missing = self._roots_but(self._watched)
        return self.state == "events" and bool(missing) and self._awaited == missing

    @property
    def reliable(self) -> bool:
        """Whether every change of the directories that exist is delivered."""
        return self.state == "events" and self._are_local

    async def renew(self) -> bool:
        """Watch the directories that exist now; return whether these are others than before."""
        found = {root: key for root in self._roots if (key := _identity(root)) is not None}
        if found == self._watched and self._is_begun:
            return False
        is_new = found != self._watched
        await self.close()
        self._watched = found
        self._is_begun = True
        try:
            if inotify.AVAILABLE:
                tree = InotifyTree(list(found), self._add, self._fail)
                self._backend = tree
                self._awaited = {root for root in self._roots_but(found) if tree.await_creation(root)}
                self._are_local = all(map(_is_local, found))
            elif found:
                self._backend = Watchfiles(list(found), self._add, self._fail)
            self.state = "events" if found or self._awaited else _NOT_WATCHING
        except OSError as error:
            self._fail(error)
        return is_new

    def _roots_but(self, known: Container[str]) -> set[str]:
        return {root for root in self._roots if root not in known}

    async def wait(self, seconds: float) -> set[str]:
        """Return paths that changed, as soon as there are any; an empty set after so many seconds of
        silence."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._has_changed.wait()
        self._has_changed.clear()
        changed, self._changed = self._changed, set()
        return changed

    async def close(self) -> None:
        """Stop watching."""
        if self._backend is not None:
            backend, self._backend = self._backend, None
            await backend.close()
        self._is_begun = False
        self._awaited = set()
        self.state = _NOT_WATCHING

    def _add(self, paths: set[str]) -> None:
        if paths & self._awaited:
            self._is_begun = False  # what is watched has to be found out again
        self._changed |= paths
        self._has_changed.set()

    def _fail(self, error: Exception) -> None:
        number = error.errno if isinstance(error, OSError) else None
        self.state = f"polling: {_REASONS.get(number or 0) or _reason(error)}"


def refusal(roots: Sequence[str]) -> str | None:
    """Return why this system delivers no events of changes below some directories; None where it does."""
    if inotify.AVAILABLE:
        return _inotify_refusal(roots)
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 - not needed on Linux

    debug, force_polling, poll_delay_ms, recursive, ignore_permission_denied = False, False, 0, True, True
    try:
        RustNotify(
            list(roots), debug, force_polling, poll_delay_ms, recursive, ignore_permission_denied
        ).close()
    except Exception as error:  # as in `_Watchfiles`
        return _reason(error)
    return None


# ---------------------------------------------------------------- backends


class _Backend(Protocol):
    """Delivers the paths of changes below directories that exist, until closed."""

    async def close(self) -> None: ...


class InotifyTree:
    """Watches directories and all below them by inotify.

    Args:
        deliver: receives the paths of entries that changed; of a directory also where anything below it may
            have.
        fail: receives the error after which no more events are delivered.

    Raises:
        OSError: the directories cannot be watched.
    """

    def __init__(
        self, roots: list[str], deliver: Callable[[set[str]], None], fail: Callable[[Exception], None]
    ) -> None:
        self._roots = roots
        self._deliver = deliver
        self._fail = fail
        self._paths: dict[int, str] = {}
        """Watched directories by watch."""
        self._awaited: dict[int, set[str]] = {}
        """Paths that do not exist, by the watch of the directory that they will be in."""
        self._delivered_at = 0.0
        self._successive = 0
        """Deliveries without a pause between them."""
        self._flush: asyncio.TimerHandle | None = None
        self._inotify = Inotify(self._on_change)
        try:
            for root in roots:
                self._watch(root)
        except OSError:
            self._inotify.close()
            raise

    def await_creation(self, path: str) -> bool:
        """Deliver a path that does not exist as soon as it does; return whether that is possible."""
        try:
            watch = self._inotify.add(os.path.dirname(path), _CREATIONS)  # noqa: PTH120 - paths are strings here
        except OSError:
            return False
        self._awaited.setdefault(watch, set()).add(path)
        # a path that was created meanwhile is found by the caller's next look; this one then comes to nothing
        return not os.path.lexists(path)

    async def close(self) -> None:
        """Stop watching."""
        if self._flush is not None:
            self._flush.cancel()
        self._inotify.close()

    def _watch(self, folder: str) -> None:
        """Watch a directory and all below it. Each is watched before it is listed, so that none is missed."""
        folders = [folder]
        while folders:
            path = folders.pop()
            try:
                self._paths[self._inotify.add(path, _CHANGES)] = path
                with os.scandir(path) as entries:
                    folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue

    def _on_change(self) -> None:
        """Gather changes for a moment, without a wakeup for each of them."""
        self._inotify.pause()
        loop = asyncio.get_running_loop()
        is_pause = loop.time() > self._delivered_at + _SUSTAINED_INTERVAL_MS / 1000
        self._successive = 0 if is_pause else self._successive + 1
        interval_ms = _MIN_INTERVAL_MS if self._successive < _BURST else _SUSTAINED_INTERVAL_MS
        due = max(loop.time() + _QUIET_MS / 1000, self._delivered_at + interval_ms / 1000)
        self._flush = loop.call_at(due, self._read)

    def _read(self) -> None:
        self._flush = None
        self._delivered_at = asyncio.get_running_loop().time()
        try:
            changed = set(self._changed_paths())
        except OSError as error:
            self._fail(error)
            return
        self._inotify.resume()
        if changed:
            self._deliver(changed)

    def _changed_paths(self) -> Iterator[str]:
        for watch, mask, name in self._inotify.read():
            if mask & inotify.OVERFLOW:
                yield from self._roots
            elif watch in self._awaited and mask & inotify.IGNORED:
                yield from self._awaited.pop(watch)  # the directory is gone: the caller looks again
            elif watch in self._awaited:
                parents = (os.path.dirname(path) for path in self._awaited[watch])  # noqa: PTH120
                yield from {f"{parent}/{name}" for parent in parents} & self._awaited[watch]
            elif (folder := self._paths.get(watch)) is not None:
                path = f"{folder}/{name}" if name else folder
                if mask & inotify.IGNORED:
                    del self._paths[watch]
                elif mask & inotify.IS_DIRECTORY and mask & (inotify.CREATE | inotify.MOVED_TO):
                    self._watch(path)
                yield path


class Watchfiles:
    """Watches directories and all below them by watchfiles; as `InotifyTree`."""

    def __init__(
        self, roots: list[str], deliver: Callable[[set[str]], None], fail: Callable[[Exception], None]
    ) -> None:
        self._deliver = deliver
        self._fail = fail
        self._task = asyncio.create_task(self._watch(roots))

    async def close(self) -> None:
        """Stop watching."""
        self._task.cancel()
        # unlike awaiting the task, this does not mistake its cancellation for that of the caller
        await asyncio.wait([self._task])

    async def _watch(self, roots: list[str]) -> None:
        from watchfiles import awatch  # noqa: PLC0415 - takes 50 ms, not needed on Linux

        try:
            async for changes in awatch(
                *roots,
                watch_filter=None,
                debounce=_MIN_INTERVAL_MS,
                step=2 * _QUIET_MS,
                ignore_permission_denied=True,
            ):
                self._deliver({path for _, path in changes})
        except Exception as error:  # whatever the backend raises: polling goes on
            self._fail(error)


def _inotify_refusal(roots: Sequence[str]) -> str | None:
    async def attempt() -> None:
        await InotifyTree(list(roots), lambda _: None, lambda _: None).close()

    try:
        asyncio.run(attempt())
    except OSError as error:
        return _REASONS.get(error.errno or 0) or _reason(error)
    return None


def _reason(error: Exception) -> str:
    text = str(error)
    known = next((words for words in _REASONS.values() if words in text), None)
    return known or text.partition("\n")[0] or type(error).__name__


def _identity(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 - paths are strings here
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _is_local(path: str) -> bool:
    """Return whether a path is on a file system that only this kernel changes, by /proc/self/mounts."""
    import psutil  # noqa: PLC0415 - as the sensors of processes, after the first picture

    real = os.path.realpath(path)
    mounts = {mount.mountpoint.rstrip("/"): mount.fstype for mount in psutil.disk_partitions(all=True)}
    while real and real not in mounts:
        real = real.rpartition("/")[0]
    return mounts.get(real) in _LOCAL_FILE_SYSTEMS
