"""What macOS shows of a process: whether it is in a sandbox, no more about that; and its program.

`sandbox_check(pid, NULL, SANDBOX_FILTER_NONE)` of libSystem is used by Apple's own programs, but declared in
no header. Where it is missing or returns another value, the result is unknown. The profile is found in the
arguments of a `sandbox-exec` ancestor.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any, Final

_LIBRARY: Final = "/usr/lib/libSystem.B.dylib"
_MAX_PATH_BYTES: Final = 4096
"""`PROC_PIDPATHINFO_MAXSIZE` of libproc.h."""
_NO_FILTER: Final = 0
"""`SANDBOX_FILTER_NONE`: any sandbox."""


def sandboxed(pid: int, library: Any = None) -> bool | None:
    """Return whether a process is in a sandbox, or None if that is unknown.

    Args:
        library: has `sandbox_check`, which returns 1 if sandboxed, 0 if not; that of the system by default.
    """
    library = _system() if library is None else library
    try:
        answer = library.sandbox_check(pid, None, _NO_FILTER) if library is not None else -1
    except AttributeError:  # not in this release of macOS
        return None
    return {0: False, 1: True}.get(answer)


def program(pid: int) -> str:
    """Return the path of a running program.

    Raises:
        OSError: there is no such process, or it may not be examined.
    """
    path = ctypes.create_string_buffer(_MAX_PATH_BYTES)
    if ctypes.CDLL(_LIBRARY, use_errno=True).proc_pidpath(pid, path, len(path)) <= 0:
        raise OSError(ctypes.get_errno(), f"process {pid} has no program that can be read")
    return os.fsdecode(path.value)


@cache
def _system() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY, use_errno=True)
    except OSError:
        return None
    if hasattr(library, "sandbox_check"):
        library.sandbox_check.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
        library.sandbox_check.restype = ctypes.c_int
    return library
