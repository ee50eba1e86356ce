"""Facts of processes from psutil, for systems without /proc: the functions of `linux`, with the same
results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import psutil

from agentdash.collect.processes.env_filter import filter_environment

# without /proc these find nothing
from agentdash.collect.processes.linux import Stat, awaited_input, io, mounts, ns_pid
from agentdash.macos import sandboxed
from agentdash.model.process import Kernel

__all__ = ["awaited_input", "boot_time", "io", "mounts", "ns_pid", "pids"]
_T = TypeVar("_T")

pids = psutil.pids
boot_time = psutil.boot_time


def problem() -> str | None:
    """Return why the processes of this machine cannot be read, or None if they can."""
    return None


def stat(pid: int) -> Stat | None:
    """Return the fields that change, or None if there is no such process. An exec shows in the name only."""

    def read_stat(process: psutil.Process) -> Stat:
        cpu = _query(pid, lambda p: p.cpu_times())
        return Stat(
            name=_query(pid, lambda p: p.name()) or "",
            zombie=_query(pid, lambda p: p.status()) == psutil.STATUS_ZOMBIE,
            ppid=process.ppid(),
            started=process.create_time() - psutil.boot_time(),
            cpu=cpu.user + cpu.system if cpu else 0.0,
        )

    return _query(pid, read_stat)


def argv(pid: int) -> list[str]:
    """Return the argument vector."""
    return _query(pid, lambda p: p.cmdline()) or []


def environment(pid: int) -> dict[str, str] | None:
    """Return the filtered environment. macOS shows that of the own process at most."""
    variables = _query(pid, lambda p: p.environ())
    return filter_environment(variables.items()) if variables else None


def exe(pid: int) -> str | None:
    """Return the path of the running program."""
    return _query(pid, lambda p: p.exe()) or None


def cwd(pid: int) -> str | None:
    """Return the current directory."""
    return _query(pid, lambda p: p.cwd()) or None


def open_files(pid: int) -> list[str]:
    """Return the paths of open files, also of those that are only read."""
    return [file.path for file in _query(pid, lambda p: p.open_files()) or []]


def kernel(pid: int) -> Kernel | None:
    """Return whether it is in a sandbox, on macOS; other systems do not show what they enforce on a
    process."""
    state = sandboxed(pid)
    return None if state is None else Kernel(sandboxed=state)


def _query(pid: int, query: Callable[[psutil.Process], _T]) -> _T | None:
    """Return the result of a query, or None if access is denied or the process is gone."""
    try:
        return query(psutil.Process(pid))
    except (psutil.Error, OSError):
        return None
