"""Find the sandbox launcher between a command and its Codex."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentdash.engine.link.process_tree import ProcessTree, is_codex
from agentdash.model.observation import Applied
from agentdash.model.policy import TMPDIR, Policy
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


def with_tmpdir(applied: Applied | None, policy: Policy, tmpdir: str | None) -> Applied | None:
    """Return a launcher's policy in which the temporary directory is named as in the policy in force.

    bubblewrap gets the target of a symbolic link: where `TMPDIR` is not among its arguments, the only
    directory that the policy does not name is taken for it.
    """
    if applied is None or applied.policy is None or tmpdir is None or TMPDIR not in policy.writable_roots:
        return applied
    gained = policy.grants_less_than(applied.policy)
    if tmpdir not in gained:
        if len(gained) != 1 or policy.may_write(tmpdir):
            return applied
        (tmpdir,) = gained
    rules = tuple(
        replace(rule, path=TMPDIR) if rule.path == tmpdir else rule for rule in applied.policy.rules
    )
    return replace(applied, policy=replace(applied.policy, rules=rules))
