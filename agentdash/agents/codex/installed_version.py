"""Find the version of the Codex on PATH without running it."""

from __future__ import annotations

import shutil

from agentdash.agents import knowledge
from agentdash.agents.registry import adapters


def installed_version() -> str | None:
    """Return the version that npm installed; None where there is no Codex, or it is no npm package."""
    program = shutil.which("codex")
    return None if program is None else knowledge.installed_version(adapters()["codex"], program)
