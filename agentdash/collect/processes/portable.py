"""What psutil says of a process, for systems that have no /proc. The same questions as in `linux`, answered the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import psutil

from agentdash.collect.processes.env_filter import kept
from agentdash.collect.processes.linux import Stat
from agentdash.collect.processes.macos import sandboxed
from agentdash.model.mounts import Mount
from agentdash.model.process import Kernel

_T = TypeVar("_T")


def pids() -> list[int]:
    """Everybody there is."""
    return psutil.pids()


def booted() -> float:
    """When this machine was started (unix seconds)."""
    return psutil.boot_time()


def stat(pid: int) -> Stat | None:
    """Its vital signs; None when there is no such process. An exec shows in the name only."""

    def signs(process: psutil.Process) -> Stat:
        cpu = _ask(pid, lambda p: p.cpu_times())
        zombie = _ask(pid, lambda p: p.status()) == psutil.STATUS_ZOMBIE
        name = _ask(pid, lambda p: p.name()) or ""
        return Stat(
            name,
            zombie,
            process.ppid(),
            process.create_time() - psutil.boot_time(),
            cpu.user + cpu.system if cpu else 0.0,
        )

    return _ask(pid, signs)


def argv(pid: int) -> list[str]:
    """Its argument vector."""
    return _ask(pid, lambda p: p.cmdline()) or []


def environment(pid: int) -> dict[str, str] | None:
    """The kept part of its environment. macOS tells that of one's own process at most."""
    variables = _ask(pid, lambda p: p.environ())
    return kept(variables.items()) if variables else None


def exe(pid: int) -> str | None:
    """The path of the program that runs."""
    return _ask(pid, lambda p: p.exe()) or None


def cwd(pid: int) -> str | None:
    """The directory it is in now."""
    return _ask(pid, lambda p: p.cwd()) or None


def open_files(pid: int) -> list[str]:
    """Paths of the files that a process has open."""
    return [file.path for file in _ask(pid, lambda p: p.open_files()) or []]


def io(pid: int) -> int:
    """Not told here."""
    del pid
    return 0


def kernel(pid: int) -> Kernel | None:
    """Whether it is in a sandbox, where macOS tells; no other system tells a stranger what it enforces on a process."""
    known = sandboxed(pid)
    return None if known is None else Kernel(sandboxed=known)


def mounts(pid: int) -> tuple[Mount, ...] | None:
    """Nothing: there are no mount namespaces."""
    del pid
    return None


def ns_pid(pid: int) -> int:
    """The same number: there are no pid namespaces."""
    return pid


def _ask(pid: int, question: Callable[[psutil.Process], _T]) -> _T | None:
    """The answer; None where it may not be known, or the process is gone."""
    try:
        return question(psutil.Process(pid))
    except (psutil.Error, OSError):
        return None
