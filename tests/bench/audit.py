"""The audit of a realistic home and of the standard one beside `ccusage codex daily`, cold and warm; the
library's second start; `status` where all sessions are fresh.

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

from agentdash.agents.codex.home import CodexHome
from agentdash.collect.clock import SystemClock
from agentdash.replay.library.library import Library
from agentdash.store.digests import DigestStore
from tests.bench.figures import AGENTDASH
from tests.bench.home import make_home
from tests.bench.realistic import make_realistic_home

_CCUSAGE = (os.environ.get("CCUSAGE", "ccusage"), "codex", "daily", "--json", "--offline")
_FILES, _MEGABYTES = 2_000, 1_000
_LIBRARY_FILES, _LIBRARY_MEGABYTES = 10_000, 100


class Run(NamedTuple):
    """What a command took, with its children."""

    cpu_s: float
    wall_s: float
    peak_mb: float

    def __str__(self) -> str:
        return f"{self.cpu_s:7.2f} s CPU {self.wall_s:7.2f} s {self.peak_mb:5.0f} MB"


def measure(home: Path) -> None:
    """Measure on homes of their own, written once beside the other one."""
    megabytes = int(os.environ.get("BENCH_MEGABYTES", _MEGABYTES))
    realistic = home.parent / f"realistic-{megabytes}"
    if not realistic.exists():
        make_realistic_home(realistic, _FILES * megabytes // _MEGABYTES, megabytes)
    standard = home.parent / f"{_FILES}-{megabytes}"
    if not standard.exists():
        make_home(standard, _FILES, megabytes)
    for tree in (realistic, standard):
        _audits(tree)
    _status(realistic)
    _library(home.parent / f"{_LIBRARY_FILES}-{_LIBRARY_MEGABYTES}")


def _audits(tree: Path) -> None:
    print(f"\n{tree.name}: {sum(1 for _ in tree.rglob('*.jsonl')):,} sessions")
    with tempfile.TemporaryDirectory() as state:
        env = {"CODEX_HOME": str(tree), "XDG_STATE_HOME": state}
        check = (*AGENTDASH, "check", "--json")
        _run((*AGENTDASH, "--version"), env)  # compiles
        peer = _run(_CCUSAGE, env) if shutil.which(_CCUSAGE[0]) else None
        print(f"ccusage           {peer or 'is not installed here'}")
        for name, argv, goal in (
            ("check, no cache", (*check, "--no-cache"), 4.0),
            ("check, cold", check, 4.0),
            ("check, warm", check, 0.1),
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
        print(f"\nstatus, all fresh {min(runs)} (at most 0.25 s, 80 MB on a quiet machine)")
        for path, at in times.items():
            os.utime(path, (at, at))


def _library(folder: Path) -> None:
    if not folder.exists():
        make_home(folder, _LIBRARY_FILES, _LIBRARY_MEGABYTES)
    with tempfile.TemporaryDirectory() as state:
        for name in ("first", "second"):
            began, cpu = time.perf_counter(), time.process_time()
            library = Library(CodexHome(folder), SystemClock(), digests=DigestStore(Path(state, "agentdash")))
            entries = list(library.entries())
            read = sum(1 for _ in library.fill(entries, tuple))
            wall = time.perf_counter() - began
            taken = f"{time.process_time() - cpu:7.2f} s CPU {wall:7.2f} s"
            print(f"library, {name:8} {taken}, {len(entries):,} sessions, {read:,} steps")


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
