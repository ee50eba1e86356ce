"""Prove who listens on a Unix socket, before anything is sent to it.

A sandboxed worker may put a socket of its own where a server of the user has one, and answer in its place: a
tmux client runs what its server tells it to. So a socket is used only if the process that listens on it is
the expected program, of this user, and confined by nothing that agentdash itself is not confined by.

On Linux the file is opened first (`O_PATH`), and all that follows goes through that descriptor: what is put
in its place later is never reached. The listener is the one that the kernel names (`SO_PEERCRED`), and is
known to live on (`SO_PEERPIDFD`, Linux 6.5): a pid that was reused proves nothing. Before 6.5 only a pid that
is reused during the checks is noticed. macOS names the listener too (`LOCAL_PEERPID`); it has no descriptor
for a socket file, so that one that is exchanged between the checks and their use is not noticed there, and
its only fact about confinement is whether there is a sandbox at all.
"""

# Paths are strings here, as the kernel shows them.
# ruff: noqa: PTH100, PTH115, PTH116, PTH118, PTH120

from __future__ import annotations

import errno
import os
import re
import select
import socket
import stat
import struct
import sys
from contextlib import ExitStack, suppress
from typing import Final, Self

from agentdash import procfs
from agentdash.model.sanitize import clean_line

_PROC: Final = sys.platform == "linux"
_SO_PEERPIDFD: Final = 77
"""asm-generic/socket.h; not in Python's `socket` before 3.15."""
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_LOCAL_PEERPID: Final = 2
"""sys/un.h of macOS."""
_XUCRED: Final = struct.Struct("=IIh2x16I")
"""Version, user, groups."""
_UCRED: Final = struct.Struct("3i")
"""Pid, user, group."""
_CONNECT_TIMEOUT_S: Final = 1.0
"""A local connection takes microseconds; a full queue refuses at once."""
_MAX_LINKS: Final = 8
_NAMESPACES: Final = ("user", "mnt", "net", "pid")
_DELETED: Final = " (deleted)"
"""What the kernel adds to the path of a program that was replaced, as by an upgrade."""


class UnprovenError(Exception):
    """It is not proven that the expected program listens on a socket. The message is the reason: a clause
    whose subject is the socket, one line."""


class ProvenSocket:
    """A Unix socket whose listener is proven. It reaches that listener until it is closed, whatever happens
    to the file; once the listener has ended, it refuses connections.

    Attributes:
        path: what to connect to; also for child processes, which need not inherit a descriptor for it.
        program: the executable that the listener runs, even if its file was replaced since.
        pid: of the listener.
    """

    def __init__(self, path: str, program: str, pid: int, opened: ExitStack) -> None:
        self.path = path
        self.program = program
        self.pid = pid
        self._opened = opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the socket; the paths are empty then, since their numbers may become other files'."""
        self.path = self.program = ""
        self._opened.close()


def prove(
    path: str | os.PathLike[str], program: re.Pattern[str], *, may_be_link: bool = False
) -> ProvenSocket:
    """Prove that a program of this user, outside every sandbox, listens on a socket; nothing is sent.

    Args:
        program: matches the whole name of its executable, without directories.
        may_be_link: whether the file is expected to be a symbolic link; it must be this user's, or root's.

    Raises:
        UnprovenError: there is a listener, or a file, that is not proven.
        OSError: there is nothing, nobody listens (`ConnectionRefusedError`), or it cannot be connected to.
    """
    place = os.path.abspath(path)
    if may_be_link:
        place = _follow(place)
    opened = ExitStack()
    try:
        if _PROC:
            descriptor, place = _open(place, os.O_NOFOLLOW, opened)
            if not stat.S_ISSOCK(mode := os.fstat(descriptor).st_mode):
                raise UnprovenError("is a symbolic link" if stat.S_ISLNK(mode) else "is not a socket")
        executable, pid = _prove_listener(place, program, opened)
        return ProvenSocket(place, executable, pid, opened)
    except BaseException:
        opened.close()
        raise


def _open(path: str, flags: int, opened: ExitStack) -> tuple[int, str]:
    """Return a descriptor of a file, and a path that leads to that very file as long as it is open."""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | flags)
    opened.callback(os.close, descriptor)
    return descriptor, f"/proc/{os.getpid()}/fd/{descriptor}"


def _follow(place: str) -> str:
    """Return where the links of a path lead; each must have been made by this user or root."""
    for _ in range(_MAX_LINKS):
        found = os.lstat(place)
        if not stat.S_ISLNK(found.st_mode):
            return place
        if found.st_uid not in _trusted_users():
            raise UnprovenError(f"is reached by a link that user {found.st_uid} made")
        place = os.path.join(os.path.dirname(place), os.readlink(place))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), place)


def _prove_listener(place: str, program: re.Pattern[str], opened: ExitStack) -> tuple[str, int]:
    """Return the program and the pid of the process that listens, if it passes every check."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_CONNECT_TIMEOUT_S)
        client.connect(place)
        pid, user = _peer(client)
        if user != os.getuid():
            raise UnprovenError(f"belongs to user {user}")
        if pid <= 0:
            raise UnprovenError("belongs to a process that is not visible from here")
        try:
            started = _started(pid)
            _check_confinement(pid)
            executable = _check_program(pid, program, opened)
            lives_on = _lives_on(client, pid, started)
        except OSError as error:
            reason = clean_line(str(error))
            raise UnprovenError(f"belongs to process {pid}, which cannot be examined: {reason}") from error
        if not lives_on:
            raise UnprovenError(f"belongs to process {pid}, which has ended")
    return executable, pid


def _peer(client: socket.socket) -> tuple[int, int]:
    """Return the pid and the user of the process that listens."""
    if _PROC:
        pid, user, _ = _UCRED.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        return pid, user
    _, user, *_ = _XUCRED.unpack(client.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
    return client.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID), user


def _check_confinement(pid: int) -> None:
    """Raise an `UnprovenError` if something confines a process that does not confine agentdash."""
    sandboxed = f"belongs to process {pid}, which is in a sandbox or container"
    if not _PROC:
        from agentdash import macos  # noqa: PLC0415 - loads ctypes

        if macos.sandboxed(pid) is not False:
            raise UnprovenError(f"{sandboxed}, or may be in one")
        return
    for kind in _NAMESPACES:
        if not os.path.samestat(os.stat(f"/proc/self/ns/{kind}"), os.stat(f"/proc/{pid}/ns/{kind}")):
            raise UnprovenError(f"{sandboxed}: it has another {kind} namespace")
    own, other = procfs.status("self"), procfs.status(pid)
    if other[b"Uid"] != own[b"Uid"]:
        raise UnprovenError(f"belongs to process {pid}, which has the rights of several users")
    # in a container agentdash may have some too
    for field in (b"NoNewPrivs", b"Seccomp", b"Seccomp_filters"):
        if (number := int(other.get(field, 0))) > int(own.get(field, 0)):
            raise UnprovenError(f"{sandboxed}: it has {field.decode()} {number}")


def _check_program(pid: int, program: re.Pattern[str], opened: ExitStack) -> str:
    """Return a path by which the program of a process can be started.

    Raise an `UnprovenError` if it is another than the expected one, or one that others may replace.
    Others are all but this user, root, and the groups that these let write. A directory for everyone, such as
    `/tmp`, is one that sandboxes leave writable too: a worker may have made a program below it. A program
    in the user's home passes, since the process that runs it is outside every sandbox.
    """
    if _PROC:
        descriptor, startable = _open(f"/proc/{pid}/exe", 0, opened)
        executable = os.readlink(startable).removesuffix(_DELETED)
        found = {executable: os.fstat(descriptor)}
    else:
        from agentdash import macos  # noqa: PLC0415 - loads ctypes

        startable = executable = macos.program(pid)
        found = {executable: os.stat(executable)}
    named = clean_line(f"{executable} (process {pid})")
    if not program.fullmatch(executable.rpartition("/")[2]):
        raise UnprovenError(f"belongs to another program, {named}")
    parent = executable
    while (parent := os.path.dirname(parent)) not in found:
        with suppress(FileNotFoundError):  # of a program that was removed
            found[parent] = os.stat(parent)
    trusted = _trusted_users()
    for place, status in found.items():
        if status.st_mode & stat.S_IWOTH:
            raise UnprovenError(clean_line(f"belongs to {named}, and everyone may write to {place}"))
        if status.st_uid not in trusted:
            raise UnprovenError(clean_line(f"belongs to {named}, and {place} to user {status.st_uid}"))
    return startable


def _trusted_users() -> tuple[int, ...]:
    """Return this user, root, and the owner of `/`: in a user namespace root's files may be nobody's."""
    return os.getuid(), 0, os.stat("/").st_uid


def _lives_on(client: socket.socket, pid: int, started: str) -> bool:
    """Return whether the process that listens has lived up to now: then what was read of its pid is about it.

    Args:
        started: when a process of this pid was started, as read first.
    """
    if not _PROC:
        return True
    try:
        descriptor = client.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except ProcessLookupError:
        return False
    except OSError:  # older than Linux 6.5
        return _started(pid) == started
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        return not ended.poll(0)
    finally:
        os.close(descriptor)


def _started(pid: int) -> str:
    """Return when a process was started, in clock ticks since the boot; empty on macOS."""
    return procfs.stat(pid).started if _PROC else ""
