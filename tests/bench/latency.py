"""Latency from a line in a rollout to the snapshot that has it, and to the bytes that paint it."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import shutil
import struct
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fcntl import ioctl
from pathlib import Path

from tests.bench.figures import AGENTDASH, spread
from tests.bench.home import RECORDINGS

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
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", TEXTUAL_ANIMATIONS="none")
        os.execv(AGENTDASH[0], [*AGENTDASH, "--no-tmux", "--codex-home", str(folder)])
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    taken: list[float] = []
    try:
        until(terminal, None, 4)
        for number in range(_ROUNDS):
            time.sleep(random.uniform(0.2, 0.6))
            until(terminal, None, 0)
            text = f"zq{number:03d}{random.randrange(16**4):04x}"
            start = time.perf_counter()
            append_message(rollout, text)
            if until(terminal, text.encode(), 3):
                taken.append((time.perf_counter() - start) * 1000)
    finally:
        os.kill(pid, 15)
        os.close(terminal)
        os.waitpid(pid, 0)
    if len(taken) < _ROUNDS:
        print(f"  {_ROUNDS - len(taken)} of {_ROUNDS} were not seen on the screen")
    return taken or [float("inf")]


def until(terminal: int, wanted: bytes | None, seconds: float) -> bool:
    """Read the terminal until `wanted` appears, or for so many seconds; return whether it appeared."""
    seen = b""
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > 0 or wanted is None:
        ready, _, _ = select.select([terminal], [], [], max(0.0, min(left, 0.5)))
        if ready:
            seen = seen[-4096:] + os.read(terminal, 1 << 16)
            if wanted is not None and wanted in seen:
                return True
        elif wanted is None and left <= 0:
            return False
    return False
