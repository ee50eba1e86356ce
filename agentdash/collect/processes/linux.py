"""What Linux says of a process, read from /proc. What is gone or may not be read is None or empty: nothing here raises.

psutil could answer most of this, at several times the cost, and not what an exec changes, nor seccomp and namespaces.
"""

# Paths are strings here: this runs for every process at every look.
# ruff: noqa: PTH115, PTH116, PTH208

from __future__ import annotations

import os
import re
import time
from typing import Final

import msgspec

from agentdash.collect.processes.env_filter import kept
from agentdash.model.mounts import Mount
from agentdash.model.process import Kernel
from agentdash.model.sanitize import clean_line

_TICK: Final = os.sysconf("SC_CLK_TCK")
_BUFFER: Final = 1 << 14
_DELETED: Final = " (deleted)"
_MOUNTS: Final = 1 << 20
"""Bytes read of a mount table: machines with many containers have thousands of lines."""
_OCTAL: Final = re.compile(rb"\\([0-7]{3})")
"""How mountinfo writes blanks, line breaks and backslashes in paths."""
_MODE: Final = re.compile(rb"(?:^|,)mode=([0-7]+)")


class Stat(msgspec.Struct, frozen=True):
    """A process's vital signs: cheap enough to read again and again."""

    name: str
    """`comm`, as it is."""
    zombie: bool
    ppid: int
    started: float
    """Seconds after boot: with the pid, a process's identity, whatever happens to the wall clock."""
    cpu: float
    """Seconds used so far, user and system."""
    image: int = 0
    """Address of its arguments: another one after every exec, the parent's own in a fork that has not called exec. 0: not told."""
    status: int | None = None
    """Of a zombie: how it ended, as `wait` would tell it. None: not a zombie, or not to be known."""


def pids() -> list[int]:
    """Everybody there is. psutil would do the same, and takes 7 ms to be imported."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def booted() -> float:
    """When this machine was started (unix seconds). `/proc/stat` has whole seconds only: too little to tell what came before what."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def stat(pid: int) -> Stat | None:
    """`/proc/PID/stat`; None when there is no such process."""
    if (found := _stat(pid)) is None:
        return None
    name, fields = found
    return Stat(
        name,
        fields[0] in (b"Z", b"X"),
        int(fields[1]),
        int(fields[19]) / _TICK,
        (int(fields[11]) + int(fields[12])) / _TICK,
        int(fields[45]),
        int(fields[49]) if fields[0] == b"Z" and len(fields) > 49 else None,
    )


def argv(pid: int) -> list[str]:
    """`/proc/PID/cmdline`. A program that overwrote it with a title (`gemini -m x`) has that split at its blanks."""
    text = os.fsdecode(_read(f"/proc/{pid}/cmdline"))
    if text and not text.endswith("\0"):
        return text.split("\0") if "\0" in text else text.split()
    return text.split("\0")[:-1]


def environment(pid: int) -> dict[str, str] | None:
    """The kept part of the environment that a process was started with; None where it cannot be read, or is empty (kernel threads)."""
    text = os.fsdecode(_read(f"/proc/{pid}/environ"))
    return kept(line.partition("=")[::2] for line in text.split("\0")) if text else None


def exe(pid: int) -> str | None:
    """The path of the program that runs, even if it was replaced or deleted since."""
    path = _link(f"/proc/{pid}/exe")
    return path.removesuffix(_DELETED) if path else None


def cwd(pid: int) -> str | None:
    """The directory it is in now."""
    return _link(f"/proc/{pid}/cwd")


def open_files(pid: int) -> list[str]:
    """Paths of the files that a process has open, also of those replaced or deleted under it. Sockets and the like are left out."""
    folder = f"/proc/{pid}/fd"
    try:
        links = [_link(f"{folder}/{fd}") for fd in os.listdir(folder)]
    except OSError:
        return []
    return [path.removesuffix(_DELETED) for path in links if path and path.startswith("/")]


def io(pid: int) -> int:
    """Bytes read and written so far, sockets and pipes included (`/proc/PID/io`); 0 where that cannot be read."""
    lines = dict(line.split(b": ", 1) for line in _read(f"/proc/{pid}/io").splitlines() if b": " in line)
    return int(lines.get(b"rchar", 0)) + int(lines.get(b"wchar", 0))


def kernel(pid: int) -> Kernel | None:
    """What the kernel enforces on a process (`/proc/PID/status`, `/proc/PID/ns`); None where nothing can be read."""
    if not (told := status(pid)):
        return None
    seccomp, no_new_privs = told.get(b"Seccomp"), told.get(b"NoNewPrivs")
    return Kernel(
        seccomp=int(seccomp) if seccomp else None,
        no_new_privs=no_new_privs == b"1" if no_new_privs else None,
        net=_namespace(pid, "net"),
        mnt=_namespace(pid, "mnt"),
        pid=_namespace(pid, "pid"),
        user=_namespace(pid, "user"),
        ns_pids=tuple(map(int, told.get(b"NSpid", b"").split())),
    )


def mounts(pid: int) -> tuple[Mount, ...] | None:
    """The mount table of a process (`/proc/PID/mountinfo`); None where it cannot be read, or is too long to be read whole."""
    text = _read(f"/proc/{pid}/mountinfo", most=_MOUNTS)
    return parse_mounts(text) if 0 < len(text) <= _MOUNTS else None


def parse_mounts(text: bytes) -> tuple[Mount, ...]:
    """The lines of a mountinfo, in their order; those of another shape are left out."""
    return tuple(mount for line in text.splitlines() if (mount := _mount(line)) is not None)


def ns_pid(pid: int) -> int:
    """A process's number as it knows it itself: another one than ours where it lives in a pid namespace of its own."""
    numbers = status(pid).get(b"NSpid", b"").split()
    return int(numbers[-1]) if numbers else pid


def status(pid: int) -> dict[bytes, bytes]:
    """`/proc/PID/status`, field by field; empty where it cannot be read."""
    return dict(line.split(b":\t", 1) for line in _read(f"/proc/{pid}/status").splitlines() if b":\t" in line)


def id_map(pid: int, kind: str) -> tuple[range, ...]:
    """Which of our user (`uid`) or group (`gid`) numbers a process's user namespace knows."""
    lines = (line.split() for line in _read(f"/proc/{pid}/{kind}_map").splitlines())
    return tuple(range(int(first), int(first) + int(count)) for _, first, count in lines)


def _mount(line: bytes) -> Mount | None:
    """`109 71 254:0 /home/w /home/w rw,nosuid master:1 - ext4 /dev/vda rw`; None for a line of another shape."""
    try:
        own, _, filesystem = line.partition(b" - ")
        ident, parent, _, root, point, options = own.split(b" ")[:6]
        fstype, _, wide = filesystem.split(b" ", 2)
        read_only = b"ro" in (*options.split(b","), *wide.split(b","))
        mode = _MODE.search(wide)
        mask = fstype == b"tmpfs" and read_only and mode is not None and not int(mode[1], 8) & 0o222
        return Mount(
            int(ident),
            int(parent),
            _unescaped(point),
            read_only,
            clean_line(os.fsdecode(fstype)),
            _unescaped(root),
            mask,
        )
    except ValueError:
        return None


def _unescaped(path: bytes) -> str:
    return clean_line(os.fsdecode(_OCTAL.sub(lambda m: bytes([int(m[1], 8) & 0xFF]), path)))


def _stat(pid: int) -> tuple[str, list[bytes]] | None:
    """The name, which may itself hold blanks and parentheses, and the fields after it: `man proc` counts them from 3 on."""
    line = _read(f"/proc/{pid}/stat")
    start, end = line.find(b"(") + 1, line.rfind(b")")
    return (os.fsdecode(line[start:end]), line[end + 2 :].split()) if line else None


def _namespace(pid: int, kind: str) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except OSError:
        return None


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _read(path: str, most: int = 0) -> bytes:
    """A whole file of /proc, empty where it cannot be read: cheaper this way than through `open`.

    Args:
        path: the file.
        most: for files that are handed out in pieces (mount tables): reads on until this length is passed, or all is read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        text = b""
        while part := os.read(fd, _BUFFER):
            text += part
            if (
                (len(part) < _BUFFER) if not most else (len(text) > most)
            ):  # most files come whole: a short answer is the end
                break
        return text
    except OSError:
        return b""
    finally:
        os.close(fd)
