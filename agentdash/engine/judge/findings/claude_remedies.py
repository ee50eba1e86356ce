"""Remedies in the settings of Claude Code: `sandbox.filesystem.allowWrite`, `sandbox.network.allowedDomains`.

Tried on 2.1.330, in a file and after `--settings` (`tests/live/test_claude_live.py`): lists of all files are
joined, a directory that does not exist is left out of the sandbox, and the files that Claude Code protects
stay read-only.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from agentdash.engine.judge.findings.overruled import instead_of_root
from agentdash.engine.judge.findings.remedy_places import absolute, is_at_or_below, place_of
from agentdash.model.denials import Denial, LedgerEntry, PathFacts, Remedy
from agentdash.model.policy import Filesystem, Policy

_INEXACT: Final = ("…", "\ufffd")
"""Marks of a text that was cut or could not be decoded."""
_OUTSIDE: Final = "or run it yourself outside of the sandbox"


def claude_remedy(
    entry: LedgerEntry | Denial, policy: Policy, facts: PathFacts, script: str = ""
) -> Remedy | None:
    """Return the remedy for a denial by the sandbox of Claude Code; None where none is known to work.

    Args:
        entry: the denial, or its entry in the ledger.
        policy: the one in force.
        facts: what is known of the disk, and where the configuration is.
        script: of the denied call.
    """
    named = next((pattern for pattern in facts.excluded if _names(pattern, script)), None)
    if named is not None:
        return Remedy(
            f"run it yourself outside of the sandbox: `sandbox.excludedCommands` has `{named}`,"
            " and the command ran inside all the same"
        )
    if entry.what == "filesystem" and entry.target:
        return _filesystem_remedy(entry, policy, facts)
    if entry.what == "network" and entry.target and "/" not in entry.target:
        return _settings({"network": {"allowedDomains": [entry.target]}}, facts)
    return None


def _names(pattern: str, script: str) -> bool:
    """Return whether an entry of `excludedCommands` (`git`, `git *`, `docker:*`) names a script."""
    words, named = script.split(), pattern.replace(":*", " *").split()
    fixed = named[:-1] if named[-1:] == ["*"] else named
    return bool(fixed) and words[: len(fixed)] == fixed


def _filesystem_remedy(entry: LedgerEntry | Denial, policy: Policy, facts: PathFacts) -> Remedy | None:
    path = absolute(entry.target or "", facts)
    if not path.startswith("/") or any(mark in path for mark in _INEXACT):
        return None
    if policy.filesystem is not Filesystem.WORKSPACE or policy.may_write(path):
        return None
    place = place_of(path, entry.operation, facts)
    root = next((root for root in policy.writable_roots if is_at_or_below(path, root)), None)
    if root is not None:
        return Remedy(f"Claude Code keeps {path} read-only in every sandbox: write elsewhere, {_OUTSIDE}")
    if place.obstacle:
        return Remedy(f"write elsewhere below the working directory, {_OUTSIDE}: {place.obstacle}")
    if (decides := instead_of_root(path, policy, facts)) is not None:
        return Remedy(f"write elsewhere below the working directory, {_OUTSIDE}: {decides}")
    remedy = _settings({"filesystem": {"allowWrite": [place.directory]}}, facts)
    if not place.create:
        return remedy
    create = f"mkdir -p {shlex.quote(place.directory)}"
    return Remedy(
        text=remedy.text,
        where=f"{remedy.where}; before that, `{create}`: a directory that does not exist is left out",
        once=f"{create} && {remedy.once}",
    )


def _settings(sandbox: Mapping[str, Any], facts: PathFacts) -> Remedy:
    """Return an entry of `sandbox` in settings.json, and the option for one run."""
    home = facts.claude_home or "~/.claude"
    return Remedy(
        text=json.dumps({"sandbox": sandbox}),
        where=f"{home}/settings.json, merged with what is there; then start Claude Code again",
        once=f"claude --settings {shlex.quote(json.dumps({'sandbox': sandbox}, separators=(',', ':')))}",
    )
