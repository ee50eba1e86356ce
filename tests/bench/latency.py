"""Latency from a line in a rollout to the snapshot that has it, and to the bytes that paint it."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.figures import AGENTDASH, RECORDINGS, spread
from tests.live.terminal import Terminal

_ROUNDS = 60


def measure(home: Path) -> None:
    """Measure it on a home with a few sessions; writer and reader share the cores."""
    del home
    with small_home() as (folder, rollout):
        print(f"append -> painted   {spread(to_screen(folder, rollout))} (p95 at most 150)")


@contextmanager
def small_home() -> Iterator[tuple[Path, Path]]:
    """Yield a Codex home with the sessions of one release, and the session that will grow."""
    with tempfile.TemporaryDirectory() as folder:
        day = Path(folder) / "sessions" / "2026" / "11" / "20"
        day.mkdir(parents=True)
        copies = {
            path.parent.name: Path(shutil.copy(path, day))
            for path in sorted(RECORDINGS.glob("0.169.0/*/*.jsonl"))
        }
        yield Path(folder), copies["workspace-write"]


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


def to_screen(folder: Path, rollout: Path) -> list[float]:
    command = [*AGENTDASH, "--no-tmux", "--codex-home", str(folder)]
    env = {**os.environ, "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"}
    terminal = Terminal(command, env, columns=200, lines=50)
    taken: list[float] = []
    with closing(terminal):
        appears(terminal, None, 4)
        for number in range(_ROUNDS):
            appears(terminal, None, random.uniform(0.2, 0.6))
            text = f"zq{number:03d}{random.randrange(16**4):04x}"
            start = time.perf_counter()
            append_message(rollout, text)
            if appears(terminal, text.encode(), 3):
                taken.append((time.perf_counter() - start) * 1000)
    if len(taken) < _ROUNDS:
        print(f"  {_ROUNDS - len(taken)} of {_ROUNDS} were not seen on the screen")
    return taken or [float("inf")]


def appears(terminal: Terminal, wanted: bytes | None, seconds: float) -> bool:
    """Read the terminal for so many seconds, or until `wanted` appears; return whether it did."""
    terminal.output = b""
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0:
        if select.select([terminal.master], [], [], left)[0]:
            terminal.output = terminal.output[-4096:] + os.read(terminal.master, 1 << 16)
            if wanted is not None and wanted in terminal.output:
                return True
    return False
