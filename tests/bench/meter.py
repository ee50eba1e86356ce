"""What is measured: CPU time, wakeups and memory; unlike wall time, what else runs hardly changes these."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.live.terminal import Terminal

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
PYTHON = sys.executable
AGENTDASH = (PYTHON, "-m", "agentdash")
TERMINAL = {"TERM": "xterm-256color"}


class Run(NamedTuple):
    """What a command took, with its children."""

    cpu_s: float
    wall_s: float
    peak_mb: float

    def __str__(self) -> str:
        return f"{self.cpu_s:7.2f} s CPU {self.wall_s:7.2f} s {self.peak_mb:5.0f} MB"


def run(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Run:
    """Run a command to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        argv, env=environment(env or {}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return Run(used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss / 1024)


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return that of this process, and more; an installed program is compiled."""
    return {**{name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"}, **more}


def least_cpu_ms(argv: Sequence[str], times: int = 5) -> float:
    """Return the least CPU time of some runs, after one that compiles."""
    return min([run(argv).cpu_s for _ in range(times + 1)][1:]) * 1000


class Usage(NamedTuple):
    """What a process has used since its start."""

    cpu_s: float
    """Of its threads, and in hundredths of its children that have ended."""
    wakeups: int
    """Voluntary context switches: how often it waited."""
    rss_mb: float


def usage(pid: int) -> Usage:
    """Return the usage of a living process, from /proc."""
    own_ns, wakeups = 0, 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # the thread has ended
            own_ns += int((task / "schedstat").read_text().split()[0])
            wakeups += _number("voluntary_ctxt_switches", task / "status")
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children_s = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    rss_mb = _number("VmRSS", Path(f"/proc/{pid}/status")) / 1e3
    return Usage(own_ns / 1e9 + children_s, wakeups, rss_mb)


def _number(name: str, file: Path) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", file.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


def drain(terminals: Sequence[Terminal], seconds: float) -> None:
    """Read what some programs draw for so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for terminal in terminals:
            terminal.read()
            terminal.output = terminal.output[-4_096:]
        time.sleep(0.1)


def spread(values: Sequence[float]) -> str:
    """Return median, 95th percentile and maximum of milliseconds as text."""
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    median, number = ordered[len(ordered) // 2], len(ordered)
    return f"median {median:.1f} ms, p95 {p95:.1f} ms, max {ordered[-1]:.1f} ms (n={number})"
