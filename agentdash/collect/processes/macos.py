"""What macOS says of a process's sandbox: that it has one, or has none, and no more.

`sandbox_check(pid, NULL, SANDBOX_FILTER_NONE)` of libSystem, a function that Apple's own programs use and no header declares. Where it is
missing, or answers as it should not, nothing is known. Which profile it is stands in the arguments of a `sandbox-exec` above the process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final, Protocol, cast

_LIBRARY: Final = "/usr/lib/libSystem.B.dylib"
_NO_FILTER: Final = 0


class Library(Protocol):
    """libSystem, or what stands in for it."""

    @property
    def sandbox_check(self) -> Callable[[int, None, int], int]:
        """1 sandboxed, 0 not, -1 where there is no such process, or one that may not be asked about."""
        ...


def sandboxed(pid: int, library: Library | None = None) -> bool | None:
    """Whether a process is in a sandbox; None where that cannot be known.

    Args:
        pid: of the process.
        library: what to ask; by default the system's own.
    """
    library = _system() if library is None else library
    try:
        answer = library.sandbox_check(pid, None, _NO_FILTER) if library is not None else -1
    except AttributeError:  # not in this release of macOS
        return None
    return {0: False, 1: True}.get(answer)


@cache
def _system() -> Library | None:
    try:
        library = ctypes.CDLL(_LIBRARY, use_errno=True)
    except OSError:
        return None
    if hasattr(library, "sandbox_check"):
        library.sandbox_check.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
        library.sandbox_check.restype = ctypes.c_int
    return cast("Library", library)
