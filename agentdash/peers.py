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
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

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
        pid: of the listener.
    """

    def __init__(self, path: str, pid: int, descriptor: int | None) -> None:
        self.path = path
        self.pid = pid
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the socket; `path` is empty then, since its number may become that of another file."""
        self.path = ""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def prove(
    path: str | os.PathLike[str], program: re.Pattern[str], *, may_be_link: bool = False
) -> ProvenSocket:
    """Prove that a program of this user, outside of every sandbox, listens on a socket; nothing is sent.

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
    if not _PROC:
        pid = _prove_listener(place, program)
        return ProvenSocket(place, pid, None)
    descriptor = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(mode := os.fstat(descriptor).st_mode):
            raise UnprovenError("is a symbolic link" if stat.S_ISLNK(mode) else "is not a socket")
        proven = f"/proc/{os.getpid()}/fd/{descriptor}"
        return ProvenSocket(proven, _prove_listener(proven, program), descriptor)
    except BaseException:
        os.close(descriptor)
        raise


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


def _prove_listener(place: str, program: re.Pattern[str]) -> int:
    """Return the pid of the process that listens, if it passes every check."""
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
            _check_program(pid, program)
            lives_on = _lives_on(client, pid, started)
        except OSError as error:
            reason = clean_line(str(error))
            raise UnprovenError(f"belongs to process {pid}, which cannot be examined: {reason}") from error
        if not lives_on:
            raise UnprovenError(f"belongs to process {pid}, which has ended")
    return pid


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
    own, other = _status("self"), _status(pid)
    if other["Uid"] != own["Uid"]:
        raise UnprovenError(f"belongs to process {pid}, which has the rights of several users")
    for field in ("NoNewPrivs", "Seccomp", "Seccomp_filters"):  # in a container agentdash may have some too
        if int(other.get(field, 0)) > int(own.get(field, 0)):
            raise UnprovenError(f"{sandboxed}: it has {field} {other[field]}")


def _check_program(pid: int, program: re.Pattern[str]) -> None:
    """Raise an `UnprovenError` if a process runs another program, or one that others may replace.

    Others are all but this user, root, and the groups that these let write. A directory for everyone, such as
    `/tmp`, is one that sandboxes leave writable too: a worker may have made a program below it. A program
    in the user's home passes, since the process that runs it is outside of every sandbox.
    """
    running, executable = _program(pid)
    named = clean_line(f"{executable} (process {pid})")
    if not program.fullmatch(executable.rpartition("/")[2]):
        raise UnprovenError(f"belongs to another program, {named}")
    found = {executable: os.stat(running)}
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


def _program(pid: int) -> tuple[str, str]:
    """Return by which path the program of a process can be examined, and its own path."""
    if not _PROC:
        from agentdash import macos  # noqa: PLC0415 - loads ctypes

        return (path := macos.program(pid)), path
    running = f"/proc/{pid}/exe"
    return running, os.readlink(running).removesuffix(_DELETED)


def _trusted_users() -> tuple[int, ...]:
    """Return this user, root, and the owner of `/`: in a user namespace root's files may be nobody's."""
    return os.getuid(), 0, os.stat("/").st_uid


def _lives_on(client: socket.socket, pid: int, started: str) -> bool:
    """Return whether the process that listens has lived up to now: what was read of its pid is of it then.

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
    """Return when a process was started: the 22nd field of `/proc/PID/stat`; empty on macOS."""
    if not _PROC:
        return ""
    return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]


def _status(pid: int | str) -> dict[str, str]:
    """Return the fields of `/proc/PID/status`."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
