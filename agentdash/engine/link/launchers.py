"""Find the sandbox launcher between a command and its Codex."""

from __future__ import annotations

from typing import Final

from agentdash.engine.link.process_tree import ProcessTree, is_codex
from agentdash.model.observation import Applied
from agentdash.model.process import Process

_HELPER: Final = "codex-linux-sandbox"
"""Launcher whose arguments contain the policy itself; a `bwrap` below it has what the helper derived from
it."""


def find_launcher(process: Process, tree: ProcessTree) -> Applied | None:
    """Return what stands between a command and its Codex; None where no Codex is found above the command."""
    found: Applied | None = None
    for parent in tree.above(process):
        if is_codex(parent):
            return found or Applied("nothing")
        launcher = parent.launcher
        if launcher is None or (found and found.policy):
            continue
        if found is None or (launcher.policy and found.by != _HELPER):
            found = Applied(launcher.name, launcher.policy)
    return found
