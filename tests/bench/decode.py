"""How many bytes a second become events, and events a fleet."""

from __future__ import annotations

import time
from pathlib import Path

from agentdash.agents.codex.home import CodexHome, thread_id
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.fleet import Fleet


def measure(home: Path) -> None:
    """Reads every session of the big home, one after the other, on one core."""
    size = lines = events = 0
    spent = {"read": 0.0, "decode": 0.0, "fold": 0.0}
    fleet = Fleet()
    for path in CodexHome(home).rollouts():
        start = time.perf_counter()
        found = path.read_bytes().splitlines()
        read = time.perf_counter()
        said = RolloutReader(thread_id(path) or "").read(found)
        decoded = time.perf_counter()
        fleet = reduce(fleet, said)
        done = time.perf_counter()
        size, lines, events = size + path.stat().st_size, lines + len(found), events + len(said)
        spent["read"] += read - start
        spent["decode"] += decoded - read
        spent["fold"] += done - decoded
    total = sum(spent.values())
    print(
        f"{size / 1e6:.0f} MB, {lines} lines, {events} events, {len(fleet.threads)} threads in {total:.1f} s: {size / 1e6 / total:.0f} MB/s"
    )
    for name, seconds in spent.items():
        print(f"  {name:7} {seconds:6.2f} s  {size / 1e6 / seconds:6.0f} MB/s")
