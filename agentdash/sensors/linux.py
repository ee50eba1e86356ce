"""What Linux says of a process, read from /proc. What is gone or may not be read is None or empty: nothing here raises.

psutil could answer most of this, at several times the cost, and not what an exec changes, nor seccomp and namespaces.
"""

# Paths are strings here: this runs for every process at every look.
# ruff: noqa: PTH115, PTH116, PTH208

from __future__ import annotations

import os
from typing import Final

import msgspec

from agentdash.facts.process import Kernel
from agentdash.sensors.privacy import kept

_TICK: Final = os.sysconf("SC_CLK_TCK")
_BUFFER: Final = 1 << 14
_DELETED: Final = " (deleted)"


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


def terminal(pid: int) -> str | None:
    """Its controlling terminal, `/dev/pts/3` or `/dev/tty1`; None without one."""
    found = _stat(pid)
    number = int(found[1][4]) if found else 0
    major, minor = (number >> 8) & 0xFFF, (number & 0xFF) | ((number >> 12) & 0xFFF00)
    if 136 <= major <= 143:  # the eight numbers of pseudo-terminals, 256 each
        return f"/dev/pts/{(major - 136) * 256 + minor}"
    return f"/dev/tty{minor}" if major == 4 and minor < 64 else None


def open_files(pid: int) -> list[str]:
    """Paths of the files that a process has open, also of those replaced or deleted under it. Sockets and the like are left out."""
    folder = f"/proc/{pid}/fd"
    try:
        links = [_link(f"{folder}/{fd}") for fd in os.listdir(folder)]
    except OSError:
        return []
    return [path.removesuffix(_DELETED) for path in links if path and path.startswith("/")]


def kernel(pid: int) -> Kernel | None:
    """What the kernel enforces on a process (`/proc/PID/status`, `/proc/PID/ns`); None where nothing can be read."""
    status = dict(line.split(b":\t", 1) for line in _read(f"/proc/{pid}/status").splitlines() if b":\t" in line)
    if not status:
        return None
    seccomp, no_new_privs, cap_eff = status.get(b"Seccomp"), status.get(b"NoNewPrivs"), status.get(b"CapEff")
    return Kernel(
        seccomp=int(seccomp) if seccomp else None,
        no_new_privs=no_new_privs == b"1" if no_new_privs else None,
        cap_eff=int(cap_eff, 16) if cap_eff else None,
        net=_namespace(pid, "net"),
        mnt=_namespace(pid, "mnt"),
        pid=_namespace(pid, "pid"),
        user=_namespace(pid, "user"),
        ns_pids=tuple(map(int, status.get(b"NSpid", b"").split())),
    )


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


def _read(path: str) -> bytes:
    """A whole file of /proc, empty where it cannot be read: cheaper this way than through `open`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        text = b""
        while part := os.read(fd, _BUFFER):
            text += part
            if len(part) < _BUFFER:  # these files are handed out whole: a short answer is the end
                break
        return text
    except OSError:
        return b""
    finally:
        os.close(fd)
