"""Remedies: the narrowest change that would help, as text to copy. Never full access where less is enough."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from agentdash.model.policy import Network, Policy

EXCLUDE_FLAGS: Final = 'shell_environment_policy.exclude = ["CODEX_SANDBOX*"]'
"""Removes inherited flags. Codex sets a true one again after the filter (checked on 0.169), so nothing is
hidden."""
OUTSIDE: Final = "start this Codex from a shell outside of the sandbox"
SERVER_OUTSIDE: Final = (
    "start the tmux server from a shell outside of the sandbox: tmux kill-server, then tmux"
)
NETWORK_ACCESS: Final = "sandbox_workspace_write.network_access = true"
"""Turns the network on for commands inside of the sandbox, and leaves files as they are."""
NO_NETWORK_ACCESS: Final = "sandbox_workspace_write.network_access = false"

_MISSING_DIRECTORY: Final = re.compile(r"\bmkdir\b|create director|Failed to initialize cache", re.IGNORECASE)
"""A refusal to create a directory: that directory itself has to be writable."""


def writable_root(path: str, policy: Policy | None, quote: str = "") -> str | None:
    """Return the setting that makes `path` writable; None where the policy lets it be written already.

    The root is the path's directory, since databases and locks put siblings beside a file. But for one file
    in a home directory, or above, it is the file alone.

    Args:
        path: what was refused; may start with `~`.
        policy: the one in force.
        quote: the text of the refusal.
    """
    if policy and policy.may_write(path):
        return None
    directory = path if _MISSING_DIRECTORY.search(quote) else posixpath.dirname(path)
    root = path if _is_too_wide(directory) else directory
    return f'sandbox_workspace_write.writable_roots = ["{root}"]'


def network(policy: Policy, quote: str) -> str:
    """Return the setting that gives a command the network, or the one host that its proxy refused."""
    if policy.network is Network.MEDIATED and (host := _refused_host(quote)):
        profile = (policy.profile or "").lstrip(":") or "PROFILE"
        return f'permissions.{profile}.network.domains = {{ "{host}" = "allow" }}'
    return NETWORK_ACCESS


def _is_too_wide(directory: str) -> bool:
    """Return whether it is the root, a system directory, a home directory, or the parent of homes."""
    parts = [part for part in directory.split("/") if part]
    if directory.startswith("~"):
        return len(parts) <= 1
    return len(parts) <= 1 or (len(parts) == 2 and parts[0] in ("home", "Users"))


def _refused_host(quote: str) -> str | None:
    match = re.search(r'Network access to "([\w.-]+)"|"host":\s*"([\w.-]+)"', quote)
    return next(filter(None, match.groups()), None) if match else None
