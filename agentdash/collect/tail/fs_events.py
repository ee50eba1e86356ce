"""File events, where this machine gives any: hints that something below some directories has changed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import Sequence
from typing import Final

from watchfiles import awatch
from watchfiles._rust_notify import RustNotify

_STEP: Final = 20
"""Milliseconds of silence after which a change is told: most of the time between an append and its line."""
_DEBOUNCE: Final = 100
"""Milliseconds after which it is told at the latest, when the changes do not end."""
_LIMITS: Final = {
    errno.ENOSPC: "no inotify watches left",
    errno.EMFILE: "no inotify instances left",
    errno.ENFILE: "too many open files",
}


class FileWatcher:
    """Listens below some directories. Directories that come, go or are replaced are noticed by `renew`.

    Hints may be late, doubled or missing altogether (macOS is silent on files that stay open, network file systems on everything), so who
    uses them looks by himself now and then.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._watched: dict[str, tuple[int, int]] = {}
        self._task: asyncio.Task[None] | None = None
        self._heard: set[str] = set()
        self._bell = asyncio.Event()
        self.state = "polling: nothing to watch yet"
        """`events`, or `polling` and why."""

    @property
    def begun(self) -> bool:
        """Whether any of the directories is there."""
        return bool(self._watched)

    @property
    def complete(self) -> bool:
        """Whether it listens below all of the directories."""
        return self.state == "events" and len(self._watched) == len(self._roots)

    async def renew(self) -> bool:
        """Watches what there is now; whether that is something else than before."""
        found = {
            root: (stat.st_dev, stat.st_ino) for root in self._roots if (stat := _stat(root)) is not None
        }
        if found == self._watched:
            return False
        await self.close()
        self._watched = found
        if found:
            self.state = "events"
            self._task = asyncio.create_task(self._listen(list(found)))
        return True

    async def wait(self, seconds: float) -> set[str]:
        """Paths that something happened to, as soon as there are any; none after so many seconds of silence."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._bell.wait()
        self._bell.clear()
        heard, self._heard = self._heard, set()
        return heard

    async def close(self) -> None:
        """Stops listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])  # unlike awaiting it, this tells its cancellation from our own
            self._task = None
        self.state = "polling: nothing to watch yet"

    async def _listen(self, roots: list[str]) -> None:
        try:
            async for changes in awatch(
                *roots, watch_filter=None, debounce=_DEBOUNCE, step=_STEP, ignore_permission_denied=True
            ):
                self._heard |= {path for _, path in changes}
                self._bell.set()
        except Exception as error:  # whatever keeps events away: polling goes on
            number = error.errno if isinstance(error, OSError) else None
            self.state = f"polling: {_LIMITS.get(number or 0) or _why(error)}"


def refusal(roots: Sequence[str]) -> str | None:
    """Why this machine gives no events of what happens below some directories; None where it does."""
    try:
        RustNotify(
            list(roots), False, False, 0, True, True
        ).close()  # debug, polling, its delay, recursive, ignore what is forbidden
    except Exception as error:  # as in `_listen`
        return _why(error)
    return None


def _why(error: Exception) -> str:
    text = str(error)
    return next(
        (words for words in _LIMITS.values() if words in text),
        text.partition("\n")[0] or type(error).__name__,
    )


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - paths are strings in the tail
    except OSError:
        return None
