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
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from tests.bench.latency import append_message
from tests.bench.meter import AGENTDASH, PYTHON, RECORDINGS, TERMINAL, drain, environment, least_cpu_ms, usage
from tests.live.terminal import Terminal
from tests.live.tmux import panes

_PANES = 60
_DRAWS = "import itertools, time\nfor n in itertools.count(): print(n, flush=True); time.sleep(0.2)"
"""The program of a busy pane: like a worker CLI it draws, and starts no processes."""
_OLD_S = 7_200
"""Age of the rollouts of an idle fleet."""
_EMPTY_APP = (PYTHON, "-c", "from textual.app import App; App().run()")
"""The peer of a dashboard: an app without widgets."""


def measure(home: Path) -> None:
    """Print a table: what, agentdash, peer, ratio, and the goal of the ratio."""
    del home
    print(f"{'':34} {'agentdash':>12} {'peer':>12} {'ratio':>7}  goal")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "home" / "sessions").mkdir(parents=True)
        _starts(Path(folder))
    # until the start is over, and ages are shown in minutes
    _fleet("idle", busy=False, rest_s=75, seconds=60, goal=5)
    _fleet("busy", busy=True, rest_s=15, seconds=30, goal=None)


def _row(what: str, ours: float, peer: float, unit: str, goal: float | None) -> None:
    ratio = ours / peer if peer else float("nan")
    wanted = f"at most {goal:g} x" if goal is not None else ""
    print(f"{what:34} {ours:9.2f} {unit:2} {peer:9.2f} {unit:2} {ratio:6.1f}x  {wanted}", flush=True)


def _starts(folder: Path) -> None:
    bare = least_cpu_ms((PYTHON, "-c", "pass"))
    live = ("--no-tmux", "--codex-home", str(folder / "home"))
    _row("--version / bare Python", least_cpu_ms((*AGENTDASH, "--version")), bare, "ms", 2.5)
    _row(
        "status --json / bare Python", least_cpu_ms((*AGENTDASH, "status", "--json", *live)), bare, "ms", None
    )
    textual = least_cpu_ms((PYTHON, "-c", "import textual.app"))
    env = environment({**TERMINAL, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)})
    for name, arguments, wanted, goal in (
        ("first picture, demo", ("demo",), b"DEMO", 2),
        ("first picture, live", live, b"Looking for", 2),
        ("live, all sources read", live, b"No workers", None),
        ("first picture, library", ("replay", "--codex-home", str(folder / "home")), b"essions", 2),
    ):
        ours = min(_first_picture_ms((*AGENTDASH, *arguments), env, wanted) for _ in range(3))
        _row(f"{name} / import textual", ours, textual, "ms", goal)


def _first_picture_ms(argv: Sequence[str], env: Mapping[str, str], wanted: bytes) -> float:
    with closing(Terminal(argv, env, columns=120, lines=36)) as terminal:
        terminal.until(lambda: wanted in terminal.output, f"{wanted!r}")
        return usage(terminal.process.pid).cpu_s * 1000


def _fleet(name: str, *, busy: bool, rest_s: float, seconds: float, goal: float | None) -> None:
    """Measure the dashboard and an empty app at the same time, over tmux panes and rollouts."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as open_:
        rollouts = _rollouts(Path(folder), _PANES if busy else 12)
        more = {**TERMINAL, "XDG_STATE_HOME": f"{folder}/state", "HOME": folder, "TMUX_TMPDIR": folder}
        env = environment(more)
        server = open_.enter_context(
            panes(_PANES, env, [PYTHON, "-ISc", _DRAWS] if busy else ["sleep", "1000"])
        )
        screens = [
            open_.enter_context(closing(Terminal(argv, env, columns=120, lines=36)))
            for argv in ((*AGENTDASH, "--codex-home", f"{folder}/home"), _EMPTY_APP)
        ]
        stop = threading.Event()
        open_.callback(stop.set)
        if busy:
            threading.Thread(target=_grow, args=(rollouts, stop), daemon=True).start()
        drain(screens, rest_s)
        pids = (*(screen.process.pid for screen in screens), server)
        before, began = [usage(pid) for pid in pids], time.monotonic()
        drain(screens, seconds)
        taken = time.monotonic() - began
        after = [usage(pid) for pid in pids]
    pairs = list(zip(before, after, strict=True))
    ours, peer, tmux = (100 * (now.cpu_s - then.cpu_s) / taken for then, now in pairs)
    woken = [(now.wakeups - then.wakeups) / taken for then, now in pairs]
    _row(f"{name}, % of a core / empty app", ours, peer, "%", goal)
    _row(f"{name}, wakeups a second / empty app", woken[0], woken[1], "/s", None)
    print(f"  the tmux server {tmux:.2f} %")


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
