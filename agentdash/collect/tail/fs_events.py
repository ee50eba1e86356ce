"""File events, where the system delivers any: hints that something below some directories has changed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

_STEP_MS: Final = 50
"""Between two looks for changes; one is delivered after a step in which no other has come."""
_SILENT_STEP_MS: Final = 100
"""After some silence: each look costs 40 µs of CPU."""
_SILENCE_MS: Final = 30_000
_DEBOUNCE_MS: Final = 250
"""Changes that keep coming are delivered together after so long: a person cannot read faster."""
_REASONS: Final = {
    "limit reached": "no inotify watches left",
    "os error 28": "no inotify watches left",
    "os error 24": "no inotify instances left",
}
"""What messages of watchfiles contain, and what they mean."""
_NOT_WATCHING: Final = "polling: nothing to watch yet"


class FileWatcher:
    """Watches some directories. `renew` finds out when these are created, removed or replaced.

    Events may be late, doubled or missing altogether (macOS is silent on files that stay open, network file
    systems on everything, and Linux once too many have gathered), so a caller has to poll as well.

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
            await asyncio.sleep(0)  # it watches from its first step on
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
        stop = threading.Event()
        step = _STEP_MS
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1)  # of its own: it waits as long as the program runs
        try:
            notify = _notify(roots)
            while True:
                waiting = partial(notify.watch, _DEBOUNCE_MS, step, _SILENCE_MS, stop)
                found = await loop.run_in_executor(thread, waiting)
                step = _SILENT_STEP_MS if found == "timeout" else _STEP_MS
                if not isinstance(found, str):
                    self._changed |= {path for _, path in found}
                    self._has_changed.set()
        except Exception as error:  # whatever the backend raises: polling goes on
            self.state = f"polling: {_reason(error)}"
        finally:
            stop.set()
            thread.shutdown(wait=False)


def refusal(roots: Sequence[str]) -> str | None:
    """Return why this system delivers no events of changes below some directories, or None if it does."""
    try:
        _notify(roots).close()
    except FileNotFoundError:
        return None  # they are watched once they exist
    except Exception as error:  # as in `FileWatcher`
        return _reason(error)
    return None


def _notify(roots: Sequence[str]) -> RustNotify:
    """Return what `watchfiles.awatch` is built on: its pauses can be set for each wait."""
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 - takes 50 ms

    debug, force_polling, poll_delay_ms, recursive, ignore_permission_denied = False, False, 0, True, True
    return RustNotify(list(roots), debug, force_polling, poll_delay_ms, recursive, ignore_permission_denied)


def _reason(error: Exception) -> str:
    text = str(error)
    known = next((words for part, words in _REASONS.items() if part in text), None)
    return known or text.partition("\n")[0] or type(error).__name__


def _identity(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 - paths are strings here
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
