"""Files of /proc about one process (Linux). Only what is built in is imported: the first look cannot wait."""

# ruff: noqa: PTH115, PTH208

from __future__ import annotations

import os
from typing import Final, NamedTuple

_READ_BYTES: Final = 1 << 14
"""Nearly all files are shorter."""
_START_TIME: Final = 22
"""Number of `starttime` in `man proc`, which counts from 1."""


class Stat(NamedTuple):
    """The content of `/proc/PID/stat`."""

    name: str
    """May contain blanks and parentheses."""
    fields: list[bytes]
    """Those behind the name: the first is number 3 of `man proc`."""

    @property
    def started(self) -> str:
        """Return when the process started, in clock ticks since the boot; pids are used again."""
        return self.fields[_START_TIME - 3].decode("ascii")


def stat(pid: int, proc: str | os.PathLike[str] = "/proc") -> Stat:
    """Read the name of a process, and what follows it.

    Raises:
        OSError: there is no such process.
    """
    line = read(f"{os.fspath(proc)}/{pid}/stat")
    start, end = line.find(b"(") + 1, line.rfind(b")")
    fields = line[end + 2 :].split()
    if len(fields) <= _START_TIME - 3:
        raise ProcessLookupError(f"process {pid} has ended")
    return Stat(os.fsdecode(line[start:end]), fields)


def status(pid: int | str) -> dict[bytes, bytes]:
    """Return the fields of `/proc/PID/status`.

    Raises:
        OSError: it cannot be read.
    """
    return dict(line.split(b":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if b":\t" in line)


def read(path: str, at_least: int = 0) -> bytes:
    """Return the content of a file of /proc; cheaper than `open`.

    Args:
        at_least: for files that come in pieces (mount tables): read on until this length is passed.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while part := os.read(descriptor, _READ_BYTES):
            text += part
            if at_least:
                if len(text) > at_least:
                    break
            elif len(part) < _READ_BYTES:  # most files come whole: a short read is the end
                break
        return text
    finally:
        os.close(descriptor)


def peek(path: str, at_least: int = 0) -> bytes:
    """Return the content of a file of /proc as `read` does; empty where it is unreadable."""
    try:
        return read(path, at_least)
    except OSError:
        return b""


def link(path: str) -> str | None:
    """Return where a link of /proc leads, or None if it is unreadable."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def pids() -> list[int]:
    """Return the pids of all processes. psutil would do the same, but takes 7 ms to be imported.

    Raises:
        OSError: there is no /proc.
    """
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def run_time(pid: int) -> int | None:
    """Return how long a process has run on a CPU, in nanoseconds (`/proc/PID/schedstat`), or None if the
    system does not tell."""
    text = peek(f"/proc/{pid}/schedstat").split()
    return int(text[0]) if text else None
