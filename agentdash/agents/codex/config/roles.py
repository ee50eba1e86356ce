"""Read the role files of sub-agents."""

from __future__ import annotations

from pathlib import Path

from agentdash.model.requested import Requested


def read_role(role: str, *, home: str, cwd: str, root: Path, since: float, at: float) -> Requested | None:
    """Return what a role asks for."""
    return None
