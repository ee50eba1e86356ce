"""Start-up time of headless commands."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.bench.figures import AGENTDASH, run_ms, spread


def measure(home: Path) -> None:
    """Measure `--version`, compared with bare Python."""
    bare = run_ms([sys.executable, "-c", "pass"])
    version = run_ms([*AGENTDASH, "--version"])
    print(f"bare python    {spread(bare)}")
    over = version[len(version) // 2] - bare[len(bare) // 2]
    print(f"--version      {spread(version)}; {over:.0f} ms over bare python (at most 60)")


def measure_status(home: Path) -> None:
    """Measure `status --json` on the large home."""
    status = [*AGENTDASH, "status", "--json", "--no-tmux", "--codex-home", str(home)]
    print(f"status --json        {spread(run_ms(status))} (at most 250)")
    print(f"status --json --all  {spread(run_ms([*status, '--all'], 3))}")
