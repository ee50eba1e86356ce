"""Benchmarks: `python -m tests.bench`, or some of its parts by name.

The figures go into notes and CHANGELOG; nothing here passes or fails.

python -m tests.bench                      all of it (about 20 minutes; writes 1 GB below --folder)
python -m tests.bench pairs growth         beside the peers, with ratios, and how costs grow (5 minutes)
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import growth, pairs

PARTS: dict[str, Callable[[Path], None]] = {
    "pairs": pairs.measure,
    "audit": pairs.measure_audit,
    "growth": growth.measure,
    "latency": pairs.measure_latency,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure agentdash.")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to measure")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "agentdash-bench",
        help="where the large Codex home is, created if missing",
    )
    given = parser.parse_args()
    for name in given.parts or PARTS:
        print(f"\n== {name} (load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors)")
        PARTS[name](given.folder)


if __name__ == "__main__":
    main()
