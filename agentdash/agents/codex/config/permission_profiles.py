"""Permission profiles of Codex (`default_permissions`, `[permissions.NAME]`; 0.130+) as policies.

A profile has `extends` (0.133+), `[permissions.NAME.filesystem]` with paths and special paths, each `read`,
`write`, `deny`, or a table of paths below it, and `[permissions.NAME.network]` with `enabled`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agentdash.agents.codex.policy_formats import classify
from agentdash.model.policy import TMPDIR, AccessMode, Network, Policy, PolicyRule

READ_ONLY: Final = ":read-only"
WORKSPACE: Final = ":workspace"
FULL_ACCESS: Final = ":danger-full-access"
MODES: Final = {
    READ_ONLY: "read-only",
    WORKSPACE: "workspace-write",
    FULL_ACCESS: "danger-full-access",
}
"""The built-in profiles, and the `sandbox_mode` that does the same."""
_ROOTS: Final = {":root": "/", "/": "/", ":tmpdir": TMPDIR, ":slash_tmp": "/tmp"}  # noqa: S108
_WORKSPACES: Final = (":workspace_roots", ":project_roots", ":cwd")
"""`:project_roots` until 0.131, `:workspace_roots` since."""
_MINIMAL: Final = ":minimal"
_ACCESS: Final[dict[str, AccessMode]] = {"read": "read", "write": "write", "deny": "deny", "none": "deny"}
_MAX_EXTENDS: Final = 10

Look = Callable[..., Any]
"""Looks a path of keys up in all layers: the highest that has it."""


def builtin_profile(name: str, cwd: str) -> Policy | None:
    """Return the policy of a built-in profile; None for another name."""
    if name == FULL_ACCESS:
        return Policy(
            filesystem=classify((PolicyRule("/", "write"),)), network=Network.ON, enforced_by="nobody"
        )
    if name not in MODES:
        return None
    rules = tuple(_builtin_rules(name, cwd))
    return Policy(filesystem=classify(rules), network=Network.OFF, rules=rules, profile=name)


def custom_profile(name: str, look: Look, cwd: str, *, extends: bool) -> Policy | None:
    """Return the policy of a profile of a configuration file; None where it is not wholly understood.

    Domains are left to Codex's proxy, and are not understood.

    Args:
        name: of the profile.
        look: looks up keys in the configuration.
        cwd: the workspace.
        extends: whether this version knows `extends`.
    """
    chain = [name]
    rules: list[PolicyRule] = []
    while extends and isinstance(parent := look("permissions", chain[-1], "extends"), str):
        if parent in MODES:
            if parent == FULL_ACCESS:
                return None
            rules += _builtin_rules(parent, cwd)
            break
        if parent in chain or len(chain) > _MAX_EXTENDS:
            return None
        chain.append(parent)
    network = Network.OFF
    for each in reversed(chain):
        if look("permissions", each) is None:
            return None
        found = _own_rules(look("permissions", each, "filesystem"), cwd)
        if found is None:
            return None
        named = {rule.path for rule in found}
        rules = [*(rule for rule in rules if rule.path not in named), *found]
        enabled = look("permissions", each, "network", "enabled")
        if look("permissions", each, "network", "domains"):
            return None
        if isinstance(enabled, bool):
            network = Network.ON if enabled else Network.OFF
    return Policy(filesystem=classify(rules), network=network, rules=tuple(rules), profile=name)


def _builtin_rules(name: str, cwd: str) -> Iterator[PolicyRule]:
    yield PolicyRule("/", "read")
    if name == WORKSPACE:
        yield from (PolicyRule(root, "write") for root in (cwd, "/tmp", TMPDIR))  # noqa: S108


def _own_rules(table: Any, cwd: str) -> list[PolicyRule] | None:
    """Return the rules of a `filesystem` table; None where an entry is not understood."""
    if table is None:
        return []
    if not isinstance(table, Mapping):
        return None
    found: list[PolicyRule] = []
    path: str
    for path, access in table.items():
        if path == _MINIMAL:
            continue
        root: str = cwd if path in _WORKSPACES else _ROOTS.get(path, path)
        if not root.startswith(("/", "$")) or "*" in root or path == "glob_scan_max_depth":
            return None
        below = access if isinstance(access, Mapping) else {".": access}
        for sub, mode in below.items():
            if mode not in _ACCESS or "*" in sub:
                return None
            where = posixpath.normpath(posixpath.join(root, sub)) if sub != "." else root
            found.append(PolicyRule(where, _ACCESS[mode]))
    return found
