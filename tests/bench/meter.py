"""CPU time and wakeups of processes: unlike wall time, what else runs on the machine hardly changes them."""

from __future__ import annotations

import fcntl
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_ROWS, _COLUMNS = 36, 120


class Usage(NamedTuple):
    """What a process has used since its start."""

    own_s: float
    """CPU seconds of its threads."""
    children_s: float
    """CPU seconds of its children that have ended, in hundredths."""
    wakeups: int
    """Voluntary context switches: how often it waited."""

    def since(self, before: Usage) -> Usage:
        """Return what was used since an earlier moment."""
        return Usage(*(now - then for now, then in zip(self, before, strict=True)))


def usage(pid: int) -> Usage:
    """Return the usage of a living process, from /proc."""
    own_ns, wakeups = 0, 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # the thread has ended
            own_ns += int((task / "schedstat").read_text().split()[0])
            status = (task / "status").read_text()
            wakeups += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Usage(own_ns / 1e9, (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK"), wakeups)


def cpu_of(argv: Sequence[str], times: int = 5) -> float:
    """Return the least CPU seconds that a command takes, with its children, after a run that compiles it."""
    taken = []
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(times + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken[1:])


class Screen:
    """A program in a pseudo-terminal of 120x36, whose output is read and dropped.

    Args:
        argv: the program.
        env: variables beside those of this process.
        wanted: text by which its first picture is known; None: there is none.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], wanted: bytes | None = None) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled
            os.environ.update({"TERM": "xterm-256color", **env})
            os.execvp(argv[0], list(argv))
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self._wanted = wanted
        self._seen = b""
        self.first = threading.Event()
        self.first_cpu_s = 0.0
        """CPU seconds until the first picture."""
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        with suppress(OSError):
            while data := os.read(self._terminal, 1 << 16):
                if self._wanted is not None and not self.first.is_set():
                    self._seen += data
                    if self._wanted in self._seen:
                        self.first_cpu_s = usage(self.pid).own_s
                        self.first.set()

    def close(self) -> None:
        """End the program."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


def first_picture(argv: Sequence[str], env: Mapping[str, str], wanted: bytes, times: int = 3) -> float:
    """Return the least CPU seconds of a program until its first picture."""
    taken = []
    for _ in range(times):
        screen = Screen(argv, env, wanted)
        if screen.first.wait(60):
            taken.append(screen.first_cpu_s)
        screen.close()
    return min(taken, default=float("nan"))


PYTHON = sys.executable
EMPTY_APP = (PYTHON, "-c", "from textual.app import App; App().run()")
"""The peer of a dashboard: an app without widgets."""
