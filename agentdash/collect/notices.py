"""Wait for changes of some files and directories instead of looking for them again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from agentdash.collect import inotify
from agentdash.collect.inotify import Inotify


class Notices:
    """Notices of changes to files and of entries of directories, on the event loop.

    Where the system has none, or not enough of them, nothing is watched: the caller has to poll.
    """

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._watches: dict[str, int] = {}
        self._masks: dict[str, int] = {}
        """As asked for last, also of what cannot be watched."""
        self._has_come = asyncio.Event()

    def watch(self, masks: Mapping[str, int]) -> bool:
        """Watch these paths and no others.

        Returns:
            Whether all was watched before: else something may have changed since the caller looked.
        """
        if not inotify.AVAILABLE:
            return True
        is_same = self._masks == masks and len(self._watches) == len(masks)
        if is_same:
            return True
        before = dict(self._watches)
        try:
            self._inotify = self._inotify or Inotify(self._on_change)
            self._renew(self._inotify, masks)
        except OSError:  # no instance is left
            self._watches = {}
        self._masks = dict(masks)
        return before == self._watches

    def watched(self, path: str) -> bool:
        """Return whether changes of a path are noticed."""
        return path in self._watches

    async def wait(self, seconds: float) -> bool:
        """Return whether something has changed since the last call, or does within this time."""
        if self._inotify is not None:
            self._inotify.resume()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._has_come.wait()
        has_come = self._has_come.is_set()
        self._has_come.clear()
        return has_come

    def close(self) -> None:
        """Stop watching."""
        if self._inotify is not None:
            self._inotify.close()
        self._inotify = None
        self._watches = {}

    def _renew(self, notices: Inotify, masks: Mapping[str, int]) -> None:
        for path in self._watches.keys() - masks.keys():
            notices.remove(self._watches.pop(path))
        for path, mask in masks.items():
            with suppress(OSError):  # it does not exist, may not be read, or no watch is left
                self._watches[path] = notices.add(path, mask)

    def _on_change(self) -> None:
        """Note that something has come; the rest gathers in the kernel until the next wait."""
        if self._inotify is None:
            return
        self._inotify.pause()
        for notice in self._inotify.read():
            if notice.mask & inotify.IGNORED:
                ended = [path for path, watch in self._watches.items() if watch == notice.watch]
                for path in ended:
                    del self._watches[path]
        self._has_come.set()
