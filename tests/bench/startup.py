"""From nothing to an answer."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.bench.figures import AGENTDASH, run_ms, spread


def measure(home: Path) -> None:
    """`--version` against bare Python."""
    bare = run_ms([sys.executable, "-c", "pass"])
    version = run_ms([*AGENTDASH, "--version"])
    print(f"bare python    {spread(bare)}")
    print(
        f"--version      {spread(version)}; {version[len(version) // 2] - bare[len(bare) // 2]:.0f} ms over bare python (at most 60)"
    )


def measure_status(home: Path) -> None:
    """`status --json` over the big home."""
    print(
        f"status --json        {spread(run_ms([*AGENTDASH, 'status', '--json', '--no-tmux', '--codex-home', str(home)]))} (at most 250)"
    )
    print(
        f"status --json --all  {spread(run_ms([*AGENTDASH, 'status', '--json', '--all', '--no-tmux', '--codex-home', str(home)], 3))}"
    )
