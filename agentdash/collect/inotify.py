"""The kernel's notices of changes to files (Linux inotify), as they come, on the event loop.

watchfiles looks for changes 50 times a second to deliver them within 20 ms: half of the wakeups of an idle
dashboard. Here nothing runs until the kernel has a notice.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import ctypes

AVAILABLE: Final = sys.platform == "linux"
"""Whether this system has inotify."""
# from <sys/inotify.h>
MODIFY: Final = 0x2
CLOSE_WRITE: Final = 0x8
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
DELETE_SELF: Final = 0x400
MOVE_SELF: Final = 0x800
OVERFLOW: Final = 0x4000
"""Notices were lost, since they came faster than they were read."""
IGNORED: Final = 0x8000
"""The watch has ended: removed, or its file was deleted."""
ONLY_DIRECTORY: Final = 0x0100_0000
IS_DIRECTORY: Final = 0x4000_0000
_HEADER: Final = struct.Struct("iIII")
"""`struct inotify_event` up to its name: watch, mask, cookie, length of the name."""
_READ_BYTES: Final = 1 << 16


class Notice(NamedTuple):
    """A change."""

    watch: int
    """The watch that it belongs to; -1 for `OVERFLOW`."""
    mask: int
    name: str
    """Of the entry of a watched directory; empty for the watched file itself."""


class Inotify:
    """An inotify instance.

    Args:
        on_change: called on the event loop as soon as there are notices; it must `read` them, or `pause`.

    Raises:
        OSError: no instance is left, or this system has none.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._descriptor = _checked(_library().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self.resume()

    def add(self, path: str, mask: int) -> int:
        """Watch a file or directory, or change its mask; return the watch, the same for the same file.

        Raises:
            OSError: it cannot be watched.
        """
        return _checked(_library().inotify_add_watch(self._descriptor, os.fsencode(path), mask))

    def remove(self, watch: int) -> None:
        """End a watch; nothing where it has ended."""
        _library().inotify_rm_watch(self._descriptor, watch)

    def read(self) -> list[Notice]:
        """Return the notices that have come, without waiting for any."""
        notices: list[Notice] = []
        while True:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return notices
            notices += _parse(data)

    def pause(self) -> None:
        """Let notices gather in the kernel: `on_change` is not called until `resume`."""
        asyncio.get_running_loop().remove_reader(self._descriptor)

    def resume(self) -> None:
        """Call `on_change` again, also for what has come meanwhile."""
        asyncio.get_running_loop().add_reader(self._descriptor, self._on_change)

    def close(self) -> None:
        """End all watches."""
        self.pause()
        os.close(self._descriptor)


def _parse(data: bytes) -> list[Notice]:
    notices: list[Notice] = []
    start = 0
    while start < len(data):
        watch, mask, _, length = _HEADER.unpack_from(data, start)
        start += _HEADER.size
        name = os.fsdecode(data[start : start + length].rstrip(b"\0"))
        start += length
        notices.append(Notice(watch, mask, name))
    return notices


@cache
def _library() -> ctypes.CDLL:
    """Return the C library.

    Raises:
        OSError: it has no inotify.
    """
    import ctypes  # noqa: PLC0415 - one-shot commands do without

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "inotify_init1"):
        raise OSError("this system has no inotify")
    library.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    library.inotify_rm_watch.argtypes = (ctypes.c_int, ctypes.c_int)
    return library


def _checked(result: int) -> int:
    if result < 0:
        import ctypes  # noqa: PLC0415 - as above

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
