"""CPU and memory of the dashboard with 60 panes and 60 rollouts: busy and idle."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from tests.bench.figures import AGENTDASH, cpu_seconds
from tests.bench.home import RECORDINGS
from tests.bench.latency import append_message

_PANES = 60
_WATCHED, _WATCHING = "agentdash-bench-panes", "agentdash-bench-screen"
_SECONDS = 20
_DRAWS = "import itertools, time\nfor n in itertools.count(): print(n, flush=True); time.sleep(0.2)"
"""The program of a busy pane: like a worker CLI it draws, and starts no processes."""


def measure(home: Path) -> None:
    """Measure the CPU of the dashboard process in a tmux pane of 120x36, in percent of one core."""
    del home
    with tempfile.TemporaryDirectory() as folder:
        rollouts = _rollouts(Path(folder))
        try:
            _panes(busy=True)
            pid = _dashboard(folder)
            doing = f"{_PANES} panes draw 5 times a second, {_PANES} rollouts grow by a line a second"
            print(f"busy  {_share(pid, rollouts):5.2f} % of one core ({doing}; at most 5)")
            _tmux(_WATCHED, "kill-server")
            _panes(busy=False)
            time.sleep(75)  # until ages are shown in minutes, which change less often
            setting = f"{_PANES} panes, {_PANES} rollouts, no changes"
            print(f"idle  {_share(pid, []):5.2f} % of one core ({setting}; at most 0.5)")
            memory = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
            print(f"memory {memory:.0f} MB")
        finally:
            _tmux(_WATCHED, "kill-server")
            _tmux(_WATCHING, "kill-server")


def _rollouts(folder: Path) -> list[Path]:
    (source,) = RECORDINGS.glob("0.169.0/workspace-write/*.jsonl")
    old = source.stem[-36:]
    day = folder / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    found = []
    for _ in range(_PANES):
        new = str(uuid.uuid4())
        path = day / source.name.replace(old, new)
        path.write_text(source.read_text().replace(old, new))
        found.append(path)
    return found


def _panes(*, busy: bool) -> None:
    script = [sys.executable, "-ISc", _DRAWS] if busy else ["sleep", "600"]
    _tmux(_WATCHED, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", *script)
    for _ in range(_PANES - 1):
        _tmux(_WATCHED, "new-window", "-d", *script)


def _dashboard(folder: str) -> int:
    command = shutil.which("env") or "env"
    argv = [command, *AGENTDASH, "--codex-home", folder, "-L", _WATCHED]
    _tmux(_WATCHING, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "36", *argv)
    time.sleep(6)
    return int(_tmux(_WATCHING, "list-panes", "-F", "#{pane_pid}"))


def _share(pid: int, rollouts: list[Path]) -> float:
    start, before = time.monotonic(), cpu_seconds(pid)
    number = 0
    while (left := start + _SECONDS - time.monotonic()) > 0:
        if rollouts:
            append_message(rollouts[number % len(rollouts)], f"line {number}")
            number += 1
        time.sleep(min(left, 1 / len(rollouts) if rollouts else 1))
    return (cpu_seconds(pid) - before) / (time.monotonic() - start) * 100


def _tmux(server: str, *args: str) -> str:
    return subprocess.run(
        ["tmux", "-L", server, *args], check=False, capture_output=True, text=True
    ).stdout.strip()
