"""The table of faults in a short form: `python -m tests.torture` runs all of it."""

import os
import sys
from pathlib import Path

import pytest

from tests.live.programs import run
from tests.torture.__main__ import AS_ANOTHER_USER

SHORT = (
    "nothing is wrong",
    "rollout is a FIFO",
    "config.toml is a FIFO",
    "10889",
    "ids have separators",
    "COLUMNS is",
    "a day is a loop",
    "file cannot be read",
    "cannot be listed",
    "export onto a FIFO",
    "infinite seconds",
    "digests.sqlite is locked",
)
"""Words of the faults that the review of 0.1.0 found to be the worst."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_worst_faults_are_survived() -> None:
    command = AS_ANOTHER_USER if os.geteuid() == 0 else (sys.executable, "-m", "tests.torture")
    done = run([*command, *SHORT], cwd=Path(__file__).parents[2], timeout=600)
    rows = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert len(rows) >= len(SHORT)
    assert [row for row in rows if not row.endswith(": survived")] == []
    assert done.returncode == 0, done.stderr
