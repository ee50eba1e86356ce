"""Latency from a line in a rollout to the snapshot that has it, and to the bytes that paint it."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.meter import AGENTDASH, RECORDINGS, spread
from tests.live.terminal import Terminal

_ROUNDS = 60


def measure(home: Path) -> None:
    """Measure it on a home with a few sessions; writer and reader share the cores."""
    del home
    with tempfile.TemporaryDirectory() as folder:
        day = Path(folder) / "sessions" / "2026" / "11" / "20"
        day.mkdir(parents=True)
        for path in sorted(RECORDINGS.glob("0.169.0/*/*.jsonl")):
            copy = Path(shutil.copy(path, day))
            if path.parent.name == "workspace-write":
                grows = copy
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
    command = [*AGENTDASH, "--no-tmux", "--codex-home", str(folder)]
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
