"""Throughput of parsing rollouts into events, and of reducing events."""

from __future__ import annotations

import time
from pathlib import Path

from agentdash.agents.codex.home import CodexHome, thread_id
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.fleet import Fleet


def measure(home: Path) -> None:
    """Read every session of the large home, one after the other, on one core."""
    size = lines = events = 0
    spent = {"read": 0.0, "decode": 0.0, "reduce": 0.0}
    fleet = Fleet()
    for path in CodexHome(home).rollouts():
        start = time.perf_counter()
        found = path.read_bytes().splitlines()
        read = time.perf_counter()
        parsed = RolloutReader(thread_id(path) or "").read(found)
        decoded = time.perf_counter()
        fleet = reduce(fleet, parsed)
        done = time.perf_counter()
        size += path.stat().st_size
        lines += len(found)
        events += len(parsed)
        spent["read"] += read - start
        spent["decode"] += decoded - read
        spent["reduce"] += done - decoded
    total = sum(spent.values())
    counts = f"{lines} lines, {events} events, {len(fleet.threads)} threads"
    print(f"{size / 1e6:.0f} MB, {counts} in {total:.1f} s: {size / 1e6 / total:.0f} MB/s")
    for name, seconds in spent.items():
        print(f"  {name:7} {seconds:6.2f} s  {size / 1e6 / seconds:6.0f} MB/s")
