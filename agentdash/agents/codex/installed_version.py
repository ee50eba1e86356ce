"""Find the version of the Codex on PATH without running it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from agentdash.files import read_text
from agentdash.model.sanitize import clean_line

_MAX_PARENTS: Final = 4
"""Directories above the program in which the package is described: `@openai/codex/bin/codex.js`."""


def installed_version() -> str | None:
    """Return the version that npm installed; None where there is no Codex, or it is no npm package."""
    program = shutil.which("codex")
    if program is None:
        return None
    for folder in list(Path(program).resolve().parents)[:_MAX_PARENTS]:
        try:
            package = json.loads(read_text(folder / "package.json"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(package, dict) and package.get("name") == "@openai/codex":
            return clean_line(str(package.get("version"))) or None
    return None
