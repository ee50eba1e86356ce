"""Where agentdash keeps its own files: the directories of the XDG specification, and of macOS.

As `platformdirs` has them, which takes longer to import than some commands run.
"""

from __future__ import annotations

import os
import sys

# Paths are strings here: `pathlib` starts slowly.
# ruff: noqa: PTH111, PTH117


def state_folder() -> str:
    """Return the directory that agentdash writes its own files to, `~/.local/state/agentdash` on Linux."""
    return _folder("XDG_STATE_HOME", "~/.local/state")


def config_folder() -> str:
    """Return the directory of `config.toml`, `~/.config/agentdash` on Linux."""
    return _folder("XDG_CONFIG_HOME", "~/.config")


def _folder(variable: str, usual: str) -> str:
    named = os.environ.get(variable, "")
    if not os.path.isabs(named):  # the specification: a relative path is ignored
        named = "~/Library/Application Support" if sys.platform == "darwin" else usual
    return os.path.expanduser(f"{named}/agentdash")
