"""Facts of Linux processes, read from /proc. What is gone or unreadable is None or empty: nothing here
raises.

psutil could read most of this at several times the cost, but not exec counters, seccomp and namespaces.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISFIFO, S_ISSOCK, S_IWUSR
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash import procfs
from agentdash.collect.processes.env_filter import filter_environment
from agentdash.model.process import AwaitedInput, Kernel
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import Mount
from agentdash.procfs import link, peek, pids

__all__ = ["pids"]
# Paths are strings here: this runs for every process in every poll.
# ruff: noqa: PTH116, PTH208


_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_BOOT_TIME_SAMPLES: Final = 5
"""Of which the best is taken."""
_READING: Final[dict[AwaitedInput, tuple[str, ...]]] = {
    "pipe": ("pipe_read", "pipe_wait"),
    "socket": ("unix_stream_read_generic", "unix_stream_data_wait"),
    "terminal": ("n_tty_read", "wait_woken"),
}
"""Ends of the kernel functions in which a thread waits for what it reads (`/proc/PID/task/TID/wchan`)."""
_DELETED: Final = " (deleted)"
_MAX_SOCKET_LIST_BYTES: Final = 1 << 22
"""A machine with 40,000 sockets has as much."""
_MAX_MOUNTINFO_BYTES: Final = 1 << 20
"""Mount tables that are longer are not read: machines with many containers have thousands of lines."""
_OCTAL_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")
"""The encoding of blanks, line breaks and backslashes in the paths of mountinfo."""


class Stat(msgspec.Struct, frozen=True):
    """The fields of `/proc/PID/stat` that change, or identify a process: cheap enough to read in every
    poll."""

    name: str
    """`comm`, not cleaned."""
    zombie: bool
    ppid: int
    started: float
    """Seconds after boot; with the pid a process's identity, independent of the wall clock."""
    cpu: float
    """CPU seconds used so far, user and system."""
    image: int = 0
    """`arg_start`, the address of its arguments: a new one after every exec, the parent's in a fork before
    its exec. 0: not available."""
    status: int | None = None
    """The wait status of a zombie. None: not a zombie, or not readable."""


def problem() -> str | None:
    """Return why the processes of this machine cannot be read, in one line, or None if they can."""
    own = link("/proc/self")
    if own is None:
        return "/proc is not mounted"
    return None if own == str(os.getpid()) else "/proc is that of another pid namespace"


def boot_time() -> float:
    """Return when this machine was started (unix seconds). Not from `/proc/stat`, whose whole seconds are too
    coarse to order events."""
    return min(_boot_time_with_error() for _ in range(_BOOT_TIME_SAMPLES))[1]


def _boot_time_with_error() -> tuple[float, float]:
    """Return by how much a look at both clocks may be wrong, and the time that it gives (seconds): between
    the two, another thread or process may run."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = time.time()
    after = time.clock_gettime(time.CLOCK_BOOTTIME)
    return after - before, now - (before + after) / 2


def stat(pid: int) -> Stat | None:
    """Parse `/proc/PID/stat`, or None if there is no such process."""
    try:
        name, fields = procfs.stat(pid)
    except OSError:
        return None
    zombie = fields[0] == b"Z"
    return Stat(
        name=name,
        zombie=zombie or fields[0] == b"X",
        ppid=int(fields[1]),
        started=int(fields[19]) / _TICKS_PER_S,
        cpu=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        image=int(fields[45]),
        status=int(fields[49]) if zombie and len(fields) > 49 else None,
    )


def argv(pid: int) -> list[str]:
    """Return `/proc/PID/cmdline`, split. A title that a program wrote over it (`gemini -m x`) is split at its
    blanks."""
    text = os.fsdecode(peek(f"/proc/{pid}/cmdline"))
    if text and not text.endswith("\0"):
        return text.split("\0") if "\0" in text else text.split()
    return text.split("\0")[:-1]


def environment(pid: int) -> dict[str, str] | None:
    """Return the filtered environment that a process was started with, or None if it is unreadable or empty
    (kernel threads)."""
    text = os.fsdecode(peek(f"/proc/{pid}/environ"))
    return filter_environment(line.partition("=")[::2] for line in text.split("\0")) if text else None


def exe(pid: int) -> str | None:
    """Return the path of the running program, even if that was replaced or deleted since."""
    path = link(f"/proc/{pid}/exe")
    return path.removesuffix(_DELETED) if path else None


def cwd(pid: int) -> str | None:
    """Return the current directory, even if that was removed since."""
    path = link(f"/proc/{pid}/cwd")
    return path.removesuffix(_DELETED) if path else None


def open_files(pid: int) -> list[str]:
    """Return the paths of files that are open for writing, also of replaced or deleted ones, without sockets
    and pipes."""
    found: list[str] = []
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
        for each in descriptors:
            path = link(each.path)
            if path and path.startswith("/") and _is_written(each):
                found.append(path.removesuffix(_DELETED))
    return found


def _is_written(descriptor: os.DirEntry[str]) -> bool:
    """Return whether an entry of `/proc/PID/fd` is open for writing: its permissions are the descriptor's."""
    try:
        return bool(descriptor.stat(follow_symlinks=False).st_mode & S_IWUSR)
    except OSError:
        return False


def awaited_input(pid: int) -> AwaitedInput | None:
    """Return what the standard input of a process is, if one of its threads waits in `read` for it."""
    try:
        mode = os.stat(f"/proc/{pid}/fd/0").st_mode
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return None
    kind: AwaitedInput = "pipe" if S_ISFIFO(mode) else "socket" if S_ISSOCK(mode) else "terminal"
    return kind if any(_reads_input(f"/proc/{pid}/task/{thread}", kind) for thread in threads) else None


def _reads_input(task: str, kind: AwaitedInput) -> bool:
    """Return whether a thread waits in `read` for descriptor 0. Not every kernel lets others read which
    descriptor that is (Yama)."""
    if not peek(f"{task}/wchan").decode("ascii", "replace").endswith(_READING[kind]):
        return False
    call = peek(f"{task}/syscall").split()
    return len(call) < 2 or call[1] == b"0x0"


def io(pid: int) -> int:
    """Return the bytes read and written so far, by sockets and pipes as well (`/proc/PID/io`); 0 where that
    is unreadable."""
    lines = dict(line.split(b": ", 1) for line in peek(f"/proc/{pid}/io").splitlines() if b": " in line)
    return int(lines.get(b"rchar", 0)) + int(lines.get(b"wchar", 0))


def kernel(pid: int) -> Kernel | None:
    """Return what the kernel enforces on a process (`/proc/PID/status`, `/proc/PID/ns`), or None if nothing
    is readable."""
    if not (fields := status(pid)):
        return None
    seccomp, no_new_privs = fields.get(b"Seccomp"), fields.get(b"NoNewPrivs")
    return Kernel(
        seccomp=int(seccomp) if seccomp else None,
        no_new_privs=no_new_privs == b"1" if no_new_privs else None,
        net=_namespace_inode(pid, "net"),
        mnt=_namespace_inode(pid, "mnt"),
        pid=_namespace_inode(pid, "pid"),
        user=_namespace_inode(pid, "user"),
        ns_pids=tuple(map(int, fields.get(b"NSpid", b"").split())),
    )


def mounts(pid: int) -> tuple[Mount, ...] | None:
    """Return the mount table of a process (`/proc/PID/mountinfo`), or None if it is unreadable, or too
    long."""
    text = _mountinfo(pid)
    if not 0 < len(text) <= _MAX_MOUNTINFO_BYTES:
        return None
    found = parse_mounts(text)
    own = {mount.device for mount in own_mounts()}
    return tuple(
        replace(mount, private=True)
        if mount.fstype in _IN_MEMORY and own and mount.device not in own
        else mount
        for mount in found
    )


def own_mounts() -> tuple[Mount, ...]:
    """Return the mount table of agentdash itself."""
    return parse_mounts(_mountinfo(os.getpid()))


def _mountinfo(pid: int) -> bytes:
    return peek(f"/proc/{pid}/mountinfo", at_least=_MAX_MOUNTINFO_BYTES)


_IN_MEMORY: Final = ("tmpfs", "ramfs", "devtmpfs", "overlay", "fuse.fuse-overlayfs")
"""Filesystems that a sandbox makes for itself: in memory, or over what the user has."""


def aliases(path: str, own: Sequence[Mount], inside: Sequence[Mount]) -> list[str]:
    """Return the paths under which a process may see a place of this machine.

    Args:
        path: absolute, free of links.
        own: the mounts of agentdash.
        inside: those of the process.
    """
    below = [mount for mount in own if _tail(path, mount.point) is not None]
    if not below:
        return []
    place = max(below, key=lambda mount: len(mount.point))
    within = f"{place.root.rstrip('/')}{_tail(path, place.point)}" or "/"
    return [
        f"{mount.point.rstrip('/')}{tail}" or "/"
        for mount in inside
        if mount.device == place.device and (tail := _tail(within, mount.root)) is not None
    ]


def _tail(path: str, directory: str) -> str | None:
    """Return what a path adds to a directory, `/x` or empty, or None if it is not below it."""
    if directory == "/":
        return path if path != "/" else ""
    return path[len(directory) :] if path == directory or path.startswith(f"{directory}/") else None


def security_label(pid: int) -> str:
    """Return what a security module confines a process to (`/proc/PID/attr/current`); empty where there is
    none, or it is unreadable."""
    return peek(f"/proc/{pid}/attr/current").rstrip(b"\0\n").decode("utf-8", "replace")


def interfaces(pid: int) -> list[str]:
    """Return the network interfaces in the namespace of a process (`/proc/PID/net/dev`)."""
    lines = peek(f"/proc/{pid}/net/dev").decode("ascii", "replace").splitlines()[2:]
    return [line.partition(":")[0].strip() for line in lines]


def bound_sockets() -> frozenset[str] | None:
    """Return the paths of all unix sockets that are bound in agentdash's network namespace
    (`/proc/net/unix`), or None if that is unreadable."""
    lines = peek("/proc/net/unix", at_least=_MAX_SOCKET_LIST_BYTES).decode("utf-8", "replace").splitlines()
    fields = (line.split(None, 7) for line in lines[1:])
    return frozenset(each[7] for each in fields if len(each) > 7) if lines else None


def parse_mounts(text: bytes) -> tuple[Mount, ...]:
    """Parse a mountinfo, in order; malformed lines are left out."""
    return tuple(mount for line in text.splitlines() if (mount := _parse_mount(line)) is not None)


def ns_pid(pid: int) -> int:
    """Return the pid of a process in its own pid namespace."""
    numbers = status(pid).get(b"NSpid", b"").split()
    return int(numbers[-1]) if numbers else pid


def status(pid: int) -> dict[bytes, bytes]:
    """Return the fields of `/proc/PID/status`; empty where it is unreadable."""
    try:
        return procfs.status(pid)
    except OSError:
        return {}


def _parse_mount(line: bytes) -> Mount | None:
    """Parse `109 71 254:0 /home/w /home/w rw,nosuid master:1 - ext4 /dev/vda rw`; None for a malformed
    line."""
    try:
        mount, _, filesystem = line.partition(b" - ")
        ident, parent, device, root, point, options = mount.split(b" ")[:6]
        fstype, _, super_options = filesystem.split(b" ", 2)
        read_only = b"ro" in (*options.split(b","), *super_options.split(b","))
        return Mount(
            id=int(ident),
            parent=int(parent),
            point=_unescape(point),
            read_only=read_only,
            fstype=clean_line(os.fsdecode(fstype)),
            root=_unescape(root),
            device=clean_line(os.fsdecode(device)),
        )
    except ValueError:
        return None


def _unescape(path: bytes) -> str:
    return clean_line(os.fsdecode(_OCTAL_ESCAPE.sub(lambda m: bytes([int(m[1], 8) & 0xFF]), path)))


def _namespace_inode(pid: int, kind: str) -> int | None:
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except OSError:
        return None


# ------------------------------------------------------------ whether agentdash itself runs in a sandbox
# There other processes are invisible, and their absence proves nothing. Observed with Codex 0.169.0 on Linux:
# commands run in a pid namespace whose first process is `codex-linux-sandbox`, with seccomp and no_new_privs,
# also with network access; without it, connecting to a tmux socket fails with EPERM. Variables alone are no
# evidence: commands that run outside the sandbox inherit them (0.169 leaves them set for approved ones).


_SANDBOX_HELPERS: Final = frozenset(("codex-linux-sandbox", "bwrap"))
_SANDBOX_VARIABLES: Final = ("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID")
_SECCOMP_FILTER: Final = 2
"""`Seccomp: 2` of /proc/PID/status."""


def confinement(socket_path: Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return a short description of the sandbox that agentdash runs in, or None if it runs in none.

    Args:
        socket_path: the socket of a tmux server of this user; a refused connection is a sign of a sandbox.
    """
    if sys.platform == "darwin":
        from agentdash.macos import sandboxed  # noqa: PLC0415 - loads libSystem

        return "seatbelt" if sandboxed(os.getpid()) else None
    if sys.platform == "linux":
        first_program = next(iter(argv(1)), "")
        if (found := linux_confinement(kernel(os.getpid()), first_program, environ)) is not None:
            return found
    return _refused(socket_path) if socket_path is not None else None


def linux_confinement(kernel: Kernel | None, first_program: str, environ: Mapping[str, str]) -> str | None:
    """Return the same from Linux facts.

    Args:
        first_program: the first argument of process 1 of its pid namespace.
    """
    if kernel is None or kernel.seccomp != _SECCOMP_FILTER or not kernel.no_new_privs:
        return None
    if (helper := first_program.rpartition("/")[2]) in _SANDBOX_HELPERS:
        return f"{helper}, with seccomp and no_new_privs"
    if variable := next((name for name in _SANDBOX_VARIABLES if environ.get(name)), None):
        return f"seccomp and no_new_privs, and {variable} is set"
    return None


def _refused(path: Path) -> str | None:
    """Return a description where connecting to a socket of this user is denied."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)  # a full queue would hold it for ever
            client.connect(str(path))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            return clean_line(f"{path} may not be connected to")
    return None
