"""Permission profiles of Codex (`default_permissions`, `[permissions.NAME]`; 0.130+) as policies.

A profile has `extends` (0.133+), `[permissions.NAME.filesystem]` with paths and special paths, each `read`,
`write`, `deny`, or a table of paths below it, and `[permissions.NAME.network]` with `enabled` and
`[permissions.NAME.network.domains]`, which `precedence.py` looks at.
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
_SCAN_DEPTH: Final = "glob_scan_max_depth"
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

    Args:
        name: of the profile.
        look: looks up keys in the configuration.
        cwd: the workspace.
        extends: whether this version has `extends`.
    """
    rules: list[PolicyRule] = []
    network = Network.OFF
    for each in reversed(profile_chain(name, look, extends=extends)):
        if each in (READ_ONLY, WORKSPACE):
            rules += _builtin_rules(each, cwd)
            continue
        found = None if look("permissions", each) is None else _own_rules(each, look, cwd)
        if found is None:
            return None
        named = {rule.path for rule in found}
        rules = [*(rule for rule in rules if rule.path not in named), *found]
        enabled = look("permissions", each, "network", "enabled")
        if isinstance(enabled, bool):
            network = Network.ON if enabled else Network.OFF
    return Policy(filesystem=classify(rules), network=network, rules=tuple(rules), profile=name)


def profile_chain(name: str, look: Look, *, extends: bool) -> list[str]:
    """Return a profile and those that it extends, the nearest first; a circle ends in a name without a
    profile."""
    chain = [name]
    while extends and isinstance(parent := look("permissions", chain[-1], "extends"), str):
        chain.append(parent if parent not in chain and len(chain) <= _MAX_EXTENDS else "")
    return chain


def _builtin_rules(name: str, cwd: str) -> Iterator[PolicyRule]:
    yield PolicyRule("/", "read")
    if name == WORKSPACE:
        yield from (PolicyRule(root, "write") for root in (cwd, "/tmp", TMPDIR))  # noqa: S108


def _own_rules(name: str, look: Look, cwd: str) -> list[PolicyRule] | None:
    """Return the rules of the `filesystem` table of a profile; None where an entry is not understood."""
    table = look("permissions", name, "filesystem")
    if table is None:
        return []
    if not isinstance(table, Mapping):
        return None
    found: list[PolicyRule | None] = []
    path: str
    for path, access in table.items():
        if path in (_MINIMAL, _SCAN_DEPTH):
            continue
        root: str = cwd if path in _WORKSPACES else _ROOTS.get(path, path)
        below = access if isinstance(access, Mapping) else {".": access}
        found += [_rule(root, sub, mode) for sub, mode in below.items()]
    known = [rule for rule in found if rule is not None]
    return known if len(known) == len(found) else None


def _rule(root: str, sub: str, mode: Any) -> PolicyRule | None:
    """Return the rule of a path; None where it is not understood. Patterns can be denied only, but for a
    `/**` at the end, which means the directory (0.169)."""
    access = _ACCESS.get(mode) if isinstance(mode, str) else None
    path = root if sub == "." else posixpath.normpath(posixpath.join(root, sub))
    if access is None or not path.startswith(("/", "$")):
        return None
    if access == "deny":
        return PolicyRule(path, access, glob="*" in path)
    path = path.removesuffix("/**")
    return None if "*" in path else PolicyRule(path, access)
