"""The audit of a realistic home beside `ccusage codex daily`, cold and warm; `status` where all sessions are
fresh.

`ccusage` (npm, 20.0.24) sums the tokens of the same files. CPU seconds, of the same minute: the ratios hold
on other machines, and on a busy one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.bench.meter import AGENTDASH, run
from tests.bench.realistic import make_realistic_home

_CCUSAGE = (os.environ.get("CCUSAGE", "ccusage"), "codex", "daily", "--json", "--offline")
_FILES, _MEGABYTES = 2_000, 1_000


def measure(home: Path) -> None:
    """Measure on a home that is written once.

    Args:
        home: folder for it.
    """
    megabytes = int(os.environ.get("BENCH_MEGABYTES", _MEGABYTES))
    realistic = home / f"realistic-{megabytes}"
    if not realistic.exists():
        make_realistic_home(realistic, _FILES * megabytes // _MEGABYTES, megabytes)
    print(f"\n{realistic.name}: {sum(1 for _ in realistic.rglob('*.jsonl')):,} sessions")
    with tempfile.TemporaryDirectory() as state:
        env = {"CODEX_HOME": str(realistic), "XDG_STATE_HOME": state}
        check = (*AGENTDASH, "check", "--json")
        run((*AGENTDASH, "--version"), env)  # compiles
        peer = run(_CCUSAGE, env) if shutil.which(_CCUSAGE[0]) else None
        print(f"ccusage           {peer or 'is not installed here'}")
        for name, argv, goal in (
            ("check, no cache", (*check, "--no-cache"), 6.0),
            ("check, cold", check, 6.0),
            ("check, warm", check, 0.15),
        ):
            ours = run(argv, env)
            ratio = f"{ours.cpu_s / peer.cpu_s:6.2f} x ccusage, at most {goal:g} x" if peer else ""
            print(f"{name:17} {ours} {ratio}")
    _status(realistic)


def _status(tree: Path) -> None:
    """Measure `status` on a copy, all files of which are fresh."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        fresh = Path(folder, "home")
        shutil.copytree(tree, fresh, copy_function=os.link)
        times = {path: path.stat().st_mtime for path in fresh.rglob("*.jsonl")}
        for path in times:
            os.utime(path)
        env = {"CODEX_HOME": str(fresh), "XDG_STATE_HOME": folder, "TMUX_TMPDIR": folder}
        runs = [run((*AGENTDASH, "status", "--json", "--no-tmux"), env) for _ in range(4)][1:]
        print(f"\nstatus, all fresh {min(runs)} (at most 0.3 s, 60 MB on a quiet machine)")
        for path, at in times.items():
            os.utime(path, (at, at))
