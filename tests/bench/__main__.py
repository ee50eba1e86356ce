"""Benchmarks: `python -m tests.bench`, or some of its parts by name.

The figures go into notes and CHANGELOG; nothing here passes or fails.

python -m tests.bench                      all of it (about 40 minutes; writes 2 GB below --home)
python -m tests.bench pairs growth         beside the peers, with ratios, and how costs grow (5 minutes)
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import audit, decode, growth, hosts, latency, library, load, pairs, past, startup, states
from tests.bench.home import make_home

PARTS: dict[str, Callable[[Path], None]] = {
    "pairs": pairs.measure,
    "audit": audit.measure,
    "growth": growth.measure,
    "startup": startup.measure,
    "status": startup.measure_status,
    "decode": decode.measure,
    "latency": latency.measure,
    "load": load.measure,
    "states": states.measure,
    "hosts": hosts.measure,
    "library": library.measure,
    "replay": past.measure,
}

_WITHOUT_HOME = {"pairs", "audit", "growth", "latency", "load", "states", "hosts"}
"""Parts that do without the large home."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure agentdash.")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to measure")
    parser.add_argument(
        "--home",
        type=Path,
        default=Path(tempfile.gettempdir()) / "agentdash-bench",
        help="folder of the large Codex home, created if missing",
    )
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--megabytes", type=float, default=1_000)
    given = parser.parse_args()
    home = given.home / f"{given.files}-{given.megabytes:.0f}"
    if not home.exists() and not set(given.parts or PARTS) <= _WITHOUT_HOME:
        print(f"writing {given.files} sessions, {given.megabytes:.0f} MB, to {home}")
        make_home(home, given.files, given.megabytes)
    for name in given.parts or PARTS:
        print(f"\n== {name} (load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors)")
        PARTS[name](home)


if __name__ == "__main__":
    main()
