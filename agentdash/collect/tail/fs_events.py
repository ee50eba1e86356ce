"""File events, where the system delivers any: hints that something below some directories has changed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Sequence
from typing import Final

from watchfiles import awatch
from watchfiles._rust_notify import RustNotify

_QUIET_MS: Final = 20
"""Silence after which changes are delivered: most of the latency between an append and its line."""
_MAX_DEBOUNCE_MS: Final = 100
"""Time after which changes are delivered at the latest, when they do not pause."""
_REASONS: Final = {
    errno.ENOSPC: "no inotify watches left",
    errno.EMFILE: "no inotify instances left",
    errno.ENFILE: "too many open files",
}
_NOT_WATCHING: Final = "polling: nothing to watch yet"


class FileWatcher:
    """Watches some directories. `renew` finds out when these are created, removed or replaced.

    Events may be late, doubled or missing altogether (macOS is silent on files that stay open, network file
    systems on everything), so a caller has to poll as well.

    Args:
        roots: the directories; they need not exist yet.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._watched: dict[str, tuple[int, int]] = {}
        """Device and inode of the directories that are watched."""
        self._task: asyncio.Task[None] | None = None
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

    async def renew(self) -> bool:
        """Watch the directories that exist now; return whether these are others than before."""
        found = {root: key for root in self._roots if (key := _identity(root)) is not None}
        if found == self._watched:
            return False
        await self.close()
        self._watched = found
        if found:
            self.state = "events"
            self._task = asyncio.create_task(self._watch(list(found)))
        return True

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
        if self._task is not None:
            self._task.cancel()
            # unlike awaiting the task, this does not mistake its cancellation for that of the caller
            await asyncio.wait([self._task])
            self._task = None
        self.state = _NOT_WATCHING

    async def _watch(self, roots: list[str]) -> None:
        try:
            async for changes in awatch(
                *roots,
                watch_filter=None,
                debounce=_MAX_DEBOUNCE_MS,
                step=_QUIET_MS,
                ignore_permission_denied=True,
            ):
                self._changed |= {path for _, path in changes}
                self._has_changed.set()
        except Exception as error:  # whatever the backend raises: polling goes on
            number = error.errno if isinstance(error, OSError) else None
            self.state = f"polling: {_REASONS.get(number or 0) or _reason(error)}"


def refusal(roots: Sequence[str]) -> str | None:
    """Return why this system delivers no events of changes below some directories; None where it does."""
    debug, force_polling, poll_delay_ms, recursive, ignore_permission_denied = False, False, 0, True, True
    try:
        RustNotify(
            list(roots), debug, force_polling, poll_delay_ms, recursive, ignore_permission_denied
        ).close()
    except Exception as error:  # as in `_watch`
        return _reason(error)
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
