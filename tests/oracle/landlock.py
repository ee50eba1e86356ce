"""Run a command under Landlock, as Codex did on Linux through 0.114: only some folders may be written.

python landlock.py WRITABLE[:WRITABLE...] COMMAND...
"""

import ctypes
import os
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WRITE = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14))
"""LANDLOCK_ACCESS_FS_*: write_file, remove_*, make_*, refer, truncate."""
_PR_SET_NO_NEW_PRIVS = 38


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64)]


class _Path(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def main(writable: list[str], command: list[str]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(_Ruleset(_WRITE)), ctypes.sizeof(_Ruleset), 0)
    if ruleset < 0:
        sys.exit("landlock: not supported")
    for folder in (*writable, "/dev"):
        rule = _Path(_WRITE, os.open(folder, os.O_PATH))
        if libc.syscall(_ADD_RULE, ruleset, 1, ctypes.byref(rule), 0):
            sys.exit(f"landlock: {folder}: {os.strerror(ctypes.get_errno())}")
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(_RESTRICT_SELF, ruleset, 0):
        sys.exit("landlock: cannot restrict")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1].split(":"), sys.argv[2:])
