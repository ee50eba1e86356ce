"""Measure durations and format them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

AGENTDASH = (sys.executable, "-m", "agentdash")


def run_ms(argv: Sequence[str], times: int = 7) -> list[float]:
    """Return the wall-clock milliseconds of runs of a process, sorted, after one warm-up run."""
    taken = []
    env = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }  # an installed program is compiled
    for _ in range(times + 1):
        start = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        taken.append((time.perf_counter() - start) * 1000)
    return sorted(taken[1:])


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """Return median, 95th percentile and maximum as text."""
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    median = ordered[len(ordered) // 2]
    return (
        f"median {median:.1f} {unit}, p95 {p95:.1f} {unit}, max {ordered[-1]:.1f} {unit} (n={len(ordered)})"
    )


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far, including that of its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(x) for x in fields[11:15]) / 100
