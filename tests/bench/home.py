"""Generate a large Codex home from the recordings: heavy-tailed session sizes, new ids and times,
reproducible by seed."""

from __future__ import annotations

import json
import os
import random
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
_WORDS = (
    "lorem",
    "ipsum",
    "build",
    "test",
    "error",
    "warning",
    "src",
    "main",
    "index",
    "class",
    "def",
    "return",
    "path",
    "token",
    "ok",
)
_DAYS = 200
"""Days over which the sessions are spread."""


def make_home(out: Path, files: int, megabytes: float, seed: int = 1) -> Path:
    """Write `files` sessions with a total size of `megabytes` under `out`; return `out`."""
    rng = random.Random(seed)
    sources = sorted(
        p
        for p in RECORDINGS.glob("*/*/rollout-*.jsonl")
        if p.stat().st_size > 4000 and p.parts[-3] != "0.20.0"
    )
    weights = [rng.paretovariate(1.1) for _ in range(files)]
    scale = megabytes * 1e6 / sum(weights)
    filler = json.dumps("\n".join(" ".join(rng.choice(_WORDS) for _ in range(14)) for _ in range(400)))[1:-1]
    start = datetime(2026, 5, 1, 9, tzinfo=UTC)
    for number, weight in enumerate(weights):
        at = start + timedelta(minutes=number * _DAYS * 24 * 60 / files)
        thread = uuid7(at, rng)
        path = out / "sessions" / f"{at:%Y/%m/%d}" / f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            file.writelines(_session(rng.choice(sources), thread, at, weight * scale, filler, rng))
        os.utime(path, (at.timestamp(), at.timestamp()))
    return out


def _session(
    source: Path, thread: str, at: datetime, size: float, filler: str, rng: random.Random
) -> Iterator[str]:
    """Yield the lines of a recording, with its calls repeated with long outputs until it has its size."""
    old = re.search(r"([0-9a-f]{8}-[0-9a-f-]{27})\.jsonl$", source.name)
    assert old
    lines = [line.replace(old[1], thread) for line in source.read_text().splitlines()]
    calls = [k for k, line in enumerate(lines) if '"function_call"' in line]
    ends = [k for k, line in enumerate(lines) if '"function_call_output"' in line]
    head, tail = (calls[0], ends[-1] + 1) if calls and ends else (len(lines) - 1, len(lines))
    written = 0

    def stamped(line: str) -> str:
        nonlocal at, written
        at += timedelta(milliseconds=rng.randint(5, 900))
        line = re.sub(
            r'"timestamp":"[^"]+"',
            f'"timestamp":"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"',
            line,
            count=1,
        )
        written += len(line) + 1
        return line + "\n"

    yield from map(stamped, lines[:head])
    round_ = 0
    while written < size:
        round_ += 1
        for line in lines[head:tail] or lines[head:]:
            text = re.sub(r"call_[0-9a-f]{4}", f"call_{round_:04x}", line)
            if '"function_call_output"' in text and rng.random() < 0.5:
                text = text.replace(
                    "Output:\\n",
                    "Output:\\n" + filler[: rng.randint(100, len(filler))].rstrip("\\") + "\\n",
                    1,
                )
            yield stamped(text)
            if written >= size:
                break
    yield from map(stamped, lines[tail:])


def uuid7(at: datetime, rng: random.Random) -> str:
    bits = (
        (int(at.timestamp() * 1000) << 80)
        | (0x7 << 76)
        | (rng.getrandbits(12) << 64)
        | (0b10 << 62)
        | rng.getrandbits(62)
    )
    return str(uuid.UUID(int=bits))
