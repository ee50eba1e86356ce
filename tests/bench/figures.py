"""What is measured, and how durations are shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
AGENTDASH = (sys.executable, "-m", "agentdash")


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """Return median, 95th percentile and maximum as text."""
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    median = ordered[len(ordered) // 2]
    return (
        f"median {median:.1f} {unit}, p95 {p95:.1f} {unit}, max {ordered[-1]:.1f} {unit} (n={len(ordered)})"
    )
