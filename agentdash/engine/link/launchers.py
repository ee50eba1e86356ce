"""Find the sandbox launcher between a command and its Codex."""

from __future__ import annotations

from typing import Final

from agentdash.engine.link.process_tree import Tree, is_codex
from agentdash.model.fleet import Applied
from agentdash.model.process import Process

_HELPER: Final = "codex-linux-sandbox"
"""States the policy itself; a `bwrap` below it states what the helper made of it."""


def applied(process: Process, tree: Tree) -> Applied | None:
    """Return what stands between a command and its Codex; None where the way up to Codex is not known."""
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
