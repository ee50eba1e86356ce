"""agentdash beside its peers in one run: CPU time and wakeups, and their ratios.

Machines differ by a factor of three, and are disturbed by what else they run. A ratio to a peer that is
measured in the same minute holds on all of them.

What else a machine runs is not only noise: a dashboard reads new processes and notices new terminals.
For figures of the dashboard alone, as root, in pid and mount namespaces of its own:

    unshare -pfm --mount-proc sh -c 'mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts &&
        mount --bind /dev/pts/ptmx /dev/ptmx && TMUX_TMPDIR=$(mktemp -d) exec python -m tests.bench pairs'
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.figures import AGENTDASH, RECORDINGS
from tests.bench.latency import append_message
from tests.bench.meter import EMPTY_APP, PYTHON, Screen, Usage, cpu_of, first_picture, usage

_PANES = 60
_SERVERS = "agentdash-bench-"
"""Names of the tmux servers begin so."""
_REST_S = 75
"""Until the start is over, and ages are shown in minutes."""
_IDLE_S = 60
_BUSY_REST_S = 15
_BUSY_S = 30
_DRAWS = "import itertools, time\nfor n in itertools.count(): print(n, flush=True); time.sleep(0.2)"
"""The program of a busy pane: like a worker CLI it draws, and starts no processes."""
_OLD_S = 7_200
"""Age of the rollouts of an idle fleet."""


def measure(home: Path) -> None:
    """Print a table: what, agentdash, peer, ratio, and the goal of the ratio."""
    del home
    print(f"{'':34} {'agentdash':>12} {'peer':>12} {'ratio':>7}  goal")
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "home", "sessions")
        empty.mkdir(parents=True)
        _starts(Path(folder))
        if shutil.which("ccusage"):
            _check(Path(folder))
    _fleet("idle", busy=False, rest_s=_REST_S, seconds=_IDLE_S, goal=5)
    _fleet("busy", busy=True, rest_s=_BUSY_REST_S, seconds=_BUSY_S, goal=None)


def _row(what: str, ours: float, peer: float, unit: str, goal: float | None) -> None:
    ratio = ours / peer if peer else float("nan")
    wanted = f"at most {goal:g} x" if goal is not None else ""
    print(f"{what:34} {ours:9.2f} {unit:2} {peer:9.2f} {unit:2} {ratio:6.1f}x  {wanted}", flush=True)


# ---------------------------------------------------------------- starts


def _starts(folder: Path) -> None:
    bare = cpu_of((PYTHON, "-c", "pass")) * 1000
    _row("--version / bare Python", cpu_of((*AGENTDASH, "--version")) * 1000, bare, "ms", 2.5)
    status = (*AGENTDASH, "status", "--json", "--no-tmux", "--codex-home", str(folder / "home"))
    textual = cpu_of((PYTHON, "-c", "import textual.app")) * 1000
    _row("status --json / bare Python", cpu_of(status) * 1000, bare, "ms", None)
    env = {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
    live = ("--no-tmux", "--codex-home", str(folder / "home"))
    pictures = {
        "first picture, demo": (("demo",), b"DEMO", 2),
        "first picture, live": (live, b"Looking for", 2),
        "live, all sources read": (live, b"No workers", None),
        "first picture, library": (("replay", "--codex-home", str(folder / "home")), b"essions", 2),
    }
    for name, (arguments, wanted, goal) in pictures.items():
        ours = first_picture((*AGENTDASH, *arguments), env, wanted) * 1000
        _row(f"{name} / import textual", ours, textual, "ms", goal)


def _check(folder: Path) -> None:
    day = folder / "check" / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    for path in RECORDINGS.glob("*/*/rollout-*.jsonl"):
        shutil.copy(path, day)
    os.environ["CODEX_HOME"] = str(folder / "check")
    ours = cpu_of((*AGENTDASH, "check", "--json", "--codex-home", str(folder / "check")), 2)
    _row("check / ccusage", ours, cpu_of(("ccusage", "codex", "daily", "--json", "--offline"), 2), "s", 1)


# ---------------------------------------------------------------- fleets


def _fleet(name: str, *, busy: bool, rest_s: float, seconds: float, goal: float | None) -> None:
    """Measure the dashboard and an empty app at the same time, over tmux panes and rollouts."""
    with tempfile.TemporaryDirectory() as folder, _panes(server := _SERVERS + name, busy):
        rollouts = _rollouts(Path(folder), _PANES if busy else 12)
        env = {"XDG_STATE_HOME": f"{folder}/state", "HOME": folder}
        dashboard = Screen((*AGENTDASH, "--codex-home", f"{folder}/home", "-L", server), env)
        empty = Screen(EMPTY_APP, env)
        stop = threading.Event()
        if busy:
            threading.Thread(target=_grow, args=(rollouts, stop), daemon=True).start()
        try:
            time.sleep(rest_s)
            pids = (dashboard.pid, empty.pid, _server_pid(server))
            before, began = [usage(pid) for pid in pids], time.monotonic()
            time.sleep(seconds)
            taken = time.monotonic() - began
            ours, peer, tmux = (usage(pid).since(then) for pid, then in zip(pids, before, strict=True))
        finally:
            stop.set()
            dashboard.close()
            empty.close()
    _row(f"{name}, % of a core / empty app", _percent(ours, taken), _percent(peer, taken), "%", goal)
    _row(f"{name}, wakeups a second / empty app", ours.wakeups / taken, peer.wakeups / taken, "/s", None)
    children = 100 * ours.children_s / taken
    print(f"  of these its children (tmux) {children:.2f} %; the tmux server {_percent(tmux, taken):.2f} %")


def _percent(used: Usage, seconds: float) -> float:
    return 100 * (used.own_s + used.children_s) / seconds


def _rollouts(folder: Path, number: int) -> list[Path]:
    (source,) = RECORDINGS.glob("0.169.0/workspace-write/*.jsonl")
    old = source.stem[-36:]
    day = folder / "home" / "sessions" / "2026" / "11" / "20"
    day.mkdir(parents=True)
    found = []
    for _ in range(number):
        new = str(uuid.uuid4())
        path = day / source.name.replace(old, new)
        path.write_text(source.read_text().replace(old, new))
        os.utime(path, (time.time() - _OLD_S,) * 2)
        found.append(path)
    return found


def _grow(rollouts: list[Path], stop: threading.Event) -> None:
    """Append a line a second to each rollout."""
    number = 0
    while not stop.wait(1 / len(rollouts)):
        append_message(rollouts[number % len(rollouts)], f"line {number}")
        number += 1


@contextmanager
def _panes(server: str, busy: bool) -> Iterator[None]:
    program = (sys.executable, "-ISc", _DRAWS) if busy else ("sleep", "1000")
    _tmux(server, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", *program)
    try:
        for _ in range(_PANES - 1):
            _tmux(server, "new-window", "-d", *program)
        yield
    finally:
        _tmux(server, "kill-server")


def _server_pid(server: str) -> int:
    return int(_tmux(server, "display-message", "-p", "#{pid}"))


def _tmux(server: str, *args: str) -> str:
    done = subprocess.run(["tmux", "-L", server, *args], check=False, capture_output=True, text=True)
    return done.stdout.strip()
