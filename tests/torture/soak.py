"""Memory, CPU, descriptors and threads of a dashboard for as long as rollouts grow and panes draw.

`python -m tests.torture soak [--minutes N] [--workers N] [--lines-per-s N]`: prints a row per minute; exit
code 1 where the dashboard has ended, or its memory at the end is more than 5 MB above minute 5. The rollouts
have long histories from the start, so that whatever is kept up to a limit is full by then.
"""

# ruff: noqa: T201 - it prints its rows

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.bench.latency import append_message
from tests.bench.meter import Usage, usage
from tests.bench.realistic import make_realistic_home
from tests.live.terminal import READY, Terminal
from tests.live.tmux import panes

_HISTORY_MB: Final = 0.5
"""Of a session at the start: more commands and moments than are kept."""
_KEY_INTERVAL_S: Final = 3.0
_KEYS: Final = (b"j", b"k", b"m", b"m", b"G", b"g", b"?", b"?", b"\t")
_SETTLED_MINUTE: Final = 5
_MAX_GROWTH_MB: Final = 5.0
DRAWS: Final = """
import itertools, sys, time
for number in itertools.count():
    print(f"\\033]2;title {number % 7}\\a{number} " + "text " * 8, flush=True)
    time.sleep(1)
"""


def soak(minutes: int, workers: int, lines_per_s: float) -> Iterator[Usage]:
    """Yield what the dashboard uses, at its start and then once a minute.

    Args:
        minutes: how long.
        workers: rollouts that grow, and panes that draw.
        lines_per_s: appended to all rollouts together.

    Raises:
        AssertionError: it has ended.
    """
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        root = Path(folder)
        home = make_realistic_home(root / "codex", workers, workers * _HISTORY_MB)
        env = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "CODEX_HOME": str(home),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "TMUX_TMPDIR": folder,
        }
        rollouts = sorted(home.rglob("*.jsonl"))
        with panes(workers, env, [sys.executable, "-ISc", DRAWS]):
            command = [sys.executable, "-m", "agentdash", "--record", str(root / "journal")]
            terminal = Terminal(command, env, columns=120, lines=36)
            try:
                terminal.until(lambda: READY in terminal.output, "the dashboard")
                yield usage(terminal.process.pid)
                for minute in range(minutes):
                    _work(terminal, rollouts, lines_per_s, minute)
                    yield usage(terminal.process.pid)
            finally:
                terminal.close()


def _work(terminal: Terminal, rollouts: Sequence[Path], lines_per_s: float, minute: int) -> None:
    """For a minute, let the rollouts grow, press keys, and read what is drawn."""
    until = time.monotonic() + 60
    keys = itertools.cycle(_KEYS)
    pressed = 0.0
    for step in itertools.count(int(minute * 60 * lines_per_s)):
        if (left := until - time.monotonic()) <= 0:
            return
        append_message(rollouts[step % len(rollouts)], f"line {step}")
        if time.monotonic() > pressed + _KEY_INTERVAL_S:
            pressed = time.monotonic()
            terminal.press(next(keys))
        terminal.read()
        terminal.output = terminal.output[-100:]
        assert terminal.process.poll() is None, "the dashboard has ended"
        time.sleep(min(left, 1 / lines_per_s))


def main(arguments: Sequence[str]) -> int:
    """Print the rows; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture soak", description=__doc__)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--workers", type=int, default=60, help="rollouts that grow, and panes that draw")
    parser.add_argument("--lines-per-s", type=float, default=20.0, help="appended to all of them together")
    options = parser.parse_args(arguments)
    print("minute  RSS MB  CPU %  descriptors  threads", flush=True)
    rows: list[Usage] = []
    for minute, row in enumerate(soak(options.minutes, options.workers, options.lines_per_s)):
        share = (row.cpu_s - rows[-1].cpu_s) / 60 * 100 if rows else 0.0
        rows.append(row)
        print(f"{minute:6} {row.rss_mb:7.1f} {share:6.1f} {row.descriptors:12} {row.threads:8}", flush=True)
    grown = rows[-1].rss_mb - rows[min(_SETTLED_MINUTE, len(rows) - 1)].rss_mb
    print(f"{grown:+.1f} MB since minute {_SETTLED_MINUTE} (at most {_MAX_GROWTH_MB:+.0f})")
    return int(grown > _MAX_GROWTH_MB)
