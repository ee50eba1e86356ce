"""agentdash beside its peers in one run: CPU time and wakeups, and their ratios.

Machines differ by a factor of three, and are disturbed by what else they run. A ratio to a peer that is
measured in the same minute holds on all of them.

What else a machine runs is not only noise: a dashboard reads new processes and notices new terminals.
For figures of the dashboard alone, as root, in pid and mount namespaces of its own:

    unshare -pfm --mount-proc sh -c 'mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts &&
        mount --bind /dev/pts/ptmx /dev/ptmx && TMUX_TMPDIR=$(mktemp -d) exec python -m tests.bench pairs'
"""

import json
import os
import random
import select
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.meter import (
    AGENTDASH,
    PYTHON,
    RECORDINGS,
    TERMINAL,
    drain,
    environment,
    least_cpu_ms,
    run,
    spread,
    usage,
)
from tests.bench.realistic import make_realistic_home
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


# ---------------------------------------------------------------- the audit

_CCUSAGE = (os.environ.get("CCUSAGE", "ccusage"), "codex", "daily", "--json", "--offline")
_FILES, _MEGABYTES = 2_000, 1_000


def measure_audit(home: Path) -> None:
    """Measure the audit of a realistic home beside `ccusage codex daily`, cold and warm, and `status`.

    `ccusage` (npm, 20.0.24) sums the tokens of the same files.

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


# ---------------------------------------------------------------- latency

_ROUNDS = 60


def measure_latency(home: Path) -> None:
    """Measure from a line in a rollout to the bytes that paint it; writer and reader share the cores."""
    del home
    with tempfile.TemporaryDirectory() as folder:
        (grows, *_) = _rollouts(Path(folder), 12)
        print(f"append -> painted   {spread(_to_screen(Path(folder), grows))} (p95 at most 150)")


def append_message(rollout: Path, text: str) -> None:
    """Append a message of the model."""
    payload = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    line = {
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "ordinal": 10_000,
        "type": "response_item",
        "payload": payload,
    }
    with rollout.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _to_screen(folder: Path, rollout: Path) -> list[float]:
    command = [*AGENTDASH, "--no-tmux", "--codex-home", str(folder / "home")]
    env = {**os.environ, "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"}
    terminal = Terminal(command, env, columns=200, lines=50)
    taken: list[float] = []
    with closing(terminal):
        _appears(terminal, None, 4)
        for number in range(_ROUNDS):
            _appears(terminal, None, random.uniform(0.2, 0.6))
            text = f"zq{number:03d}{random.randrange(16**4):04x}"
            start = time.perf_counter()
            append_message(rollout, text)
            if _appears(terminal, text.encode(), 3):
                taken.append((time.perf_counter() - start) * 1000)
    if len(taken) < _ROUNDS:
        print(f"  {_ROUNDS - len(taken)} of {_ROUNDS} were not seen on the screen")
    return taken or [float("inf")]


def _appears(terminal: Terminal, wanted: bytes | None, seconds: float) -> bool:
    """Read the terminal for so many seconds, or until `wanted` appears; return whether it did."""
    terminal.output = b""
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        if select.select([terminal.master], [], [], left)[0]:
            terminal.output = terminal.output[-4096:] + os.read(terminal.master, 1 << 16)
            if wanted is not None and wanted in terminal.output:
                return True
    return False
