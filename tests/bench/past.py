"""Replay of a session of one gigabyte: first screen, seeking, memory; compared with other programs on the
same file."""

from __future__ import annotations

import os
import pty
import random
import select
import shutil
import signal
import struct
import termios
import time
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path
from typing import NamedTuple

from agentdash.agents.codex.home import CodexHome
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.replay.clock import VirtualClock
from agentdash.replay.family import find_family
from agentdash.replay.player import Player
from tests.bench.figures import AGENTDASH, spread
from tests.bench.home import make_home

_MEGABYTES = 1_000
_SEED = 6
"""Selects a 0.114 recording: lines have 2.4 kB on average, half of the outputs are long."""
_SETTLE = 20
"""Seconds in which each program may read on after its first screen."""


class Startup(NamedTuple):
    """The start of one program."""

    first: float
    """Milliseconds to the first screen."""
    rss: float
    """MB resident then."""
    peak: float
    """MB resident at most, after `_SETTLE`."""


def measure(home: Path) -> None:
    """Measure on a session written once beside the large home."""
    folder = home.parent / f"one-{_MEGABYTES}"
    if not folder.exists():
        make_home(folder, 1, _MEGABYTES, seed=_SEED)
    session = next(folder.rglob("rollout-*.jsonl"))
    print(f"{session.stat().st_size / 1e6:.0f} MB")
    _seeks(session)
    programs = {
        "agentdash replay": ([*AGENTDASH, "replay", str(session)], b"running"),
        "lnav": (["lnav", str(session)], b"timestamp"),
        "toolong": ([os.environ.get("TOOLONG", "tl"), str(session)], b"timestamp"),
    }
    results: dict[str, Startup] = {}
    for name, (argv, wanted) in programs.items():
        if shutil.which(argv[0]) is None:
            print(f"{name:17} is not installed here")
            continue
        runs = [_open(argv, wanted) for _ in range(2)]
        results[name] = best = min(runs)
        ours = results["agentdash replay"]
        first = f"first screen {best.first:6.0f} ms ({best.first / ours.first:.1f}x)"
        memory = f"{best.rss:4.0f} MB, at most {best.peak:4.0f} MB ({best.peak / ours.peak:.1f}x)"
        print(f"{name:17} {first}   resident {memory}")


def _seeks(session: Path) -> None:
    """Make the index; then seek to random positions and build the snapshot there."""
    began = time.perf_counter()
    clock = VirtualClock(0)
    player = Player(find_family(CodexHome(session.parents[4]), str(session)), clock)
    print(f"open                 {(time.perf_counter() - began) * 1000:.1f} ms")
    player.toggle()
    player.index.read()
    print(f"index                {time.perf_counter() - began:.1f} s, {len(player.index.times)} steps")
    cache = WorkerCache()
    taken: list[float] = []
    for _ in range(300):
        start = time.perf_counter()
        player.seek(random.random())
        build_snapshot(player.read().fleet, clock.now(), cache)
        taken.append((time.perf_counter() - start) * 1000)
    print(f"seek                 {spread(taken)} (at most 100)")


def _open(argv: Sequence[str], wanted: bytes) -> Startup:
    start = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled
        os.execvp(argv[0], list(argv))
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    seen, first, rss = b"", float("inf"), 0.0
    try:
        while (now := time.perf_counter() - start) < _SETTLE:
            if select.select([terminal], [], [], 0.2)[0]:
                seen = (seen + os.read(terminal, 1 << 16))[-(1 << 17) :]
            if first == float("inf") and wanted in seen:
                first, rss = now * 1000, _memory(pid, "VmRSS")
        return Startup(first, rss, _memory(pid, "VmHWM"))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


def _memory(pid: int, field: str) -> float:
    """Return a memory field of a process and its children, in MB."""
    total = 0.0
    for each in (str(pid), *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{each}/status").read_text().splitlines())
        total += int(status[field].split()[0]) / 1024
    return total
