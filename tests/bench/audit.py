"""The audit of a realistic home beside `ccusage codex daily`, cold and warm; `status` where all sessions are
fresh.

`ccusage` (npm, 20.0.24) sums the tokens of the same files. CPU seconds, of the same minute: the ratios hold
on other machines, and on a busy one.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.figures import AGENTDASH
from tests.bench.realistic import make_realistic_home

_CCUSAGE = (os.environ.get("CCUSAGE", "ccusage"), "codex", "daily", "--json", "--offline")
_FILES, _MEGABYTES = 2_000, 1_000


class Run(NamedTuple):
    """What a command took, with its children."""

    cpu_s: float
    wall_s: float
    peak_mb: float

    def __str__(self) -> str:
        return f"{self.cpu_s:7.2f} s CPU {self.wall_s:7.2f} s {self.peak_mb:5.0f} MB"


def measure(home: Path) -> None:
    """Measure on a home that is written once.

    Args:
        home: folder for it.
    """
    megabytes = int(os.environ.get("BENCH_MEGABYTES", _MEGABYTES))
    realistic = home / f"realistic-{megabytes}"
    if not realistic.exists():
        make_realistic_home(realistic, _FILES * megabytes // _MEGABYTES, megabytes)
    _audits(realistic)
    _status(realistic)


def _audits(tree: Path) -> None:
    print(f"\n{tree.name}: {sum(1 for _ in tree.rglob('*.jsonl')):,} sessions")
    with tempfile.TemporaryDirectory() as state:
        env = {"CODEX_HOME": str(tree), "XDG_STATE_HOME": state}
        check = (*AGENTDASH, "check", "--json")
        _run((*AGENTDASH, "--version"), env)  # compiles
        peer = _run(_CCUSAGE, env) if shutil.which(_CCUSAGE[0]) else None
        print(f"ccusage           {peer or 'is not installed here'}")
        for name, argv, goal in (
            ("check, no cache", (*check, "--no-cache"), 6.0),
            ("check, cold", check, 6.0),
            ("check, warm", check, 0.15),
        ):
            ours = _run(argv, env)
            ratio = f"{ours.cpu_s / peer.cpu_s:6.2f} x ccusage, at most {goal:g} x" if peer else ""
            print(f"{name:17} {ours} {ratio}")


def _status(tree: Path) -> None:
    """Measure `status` on a copy, all files of which are fresh."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        fresh = Path(folder, "home")
        shutil.copytree(tree, fresh, copy_function=os.link)
        times = {path: path.stat().st_mtime for path in fresh.rglob("*.jsonl")}
        for path in times:
            os.utime(path)
        env = {"CODEX_HOME": str(fresh), "XDG_STATE_HOME": folder, "TMUX_TMPDIR": folder}
        status = (*AGENTDASH, "status", "--json", "--no-tmux")
        runs = [_run(status, env) for _ in range(4)][1:]
        print(f"\nstatus, all fresh {min(runs)} (at most 0.3 s, 60 MB on a quiet machine)")
        for path, at in times.items():
            os.utime(path, (at, at))


def _run(argv: Sequence[str], env: Mapping[str, str]) -> Run:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        argv, env={**environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(cpu, time.perf_counter() - began, used.ru_maxrss / 1024)
