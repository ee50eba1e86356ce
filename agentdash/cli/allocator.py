"""The C library's allocator, set up for programs that run for days."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Parameters of glibc's `mallopt` (malloc.h)."""
_THRESHOLD_BYTES: Final = 128 << 10
"""glibc's own value, which grows with the largest block that was freed unless it is set."""


def return_freed_memory() -> None:
    """Let glibc give memory back to the system: by default it keeps most of what once was in use.

    With 60 growing rollouts that is 15 MB after 20 minutes, and grows on. To be called before threads start.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _THRESHOLD_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)
