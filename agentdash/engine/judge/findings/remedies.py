"""The narrowest change that would help, as text to copy. Never full access where less is enough."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from agentdash.model.policy import Network, Policy

EXCLUDE_FLAGS: Final = 'shell_environment_policy.exclude = ["CODEX_SANDBOX*"]'
"""Removes inherited flags; a true one is set again after the filter (checked on 0.169), so nothing is hidden."""
OUTSIDE: Final = "start this Codex from a shell outside of the sandbox"
SERVER_OUTSIDE: Final = (
    "start the tmux server from a shell outside of the sandbox: tmux kill-server, then tmux"
)

_DIRECTORY_WORDS: Final = re.compile(r"\bmkdir\b|create director|Failed to initialize cache", re.IGNORECASE)
"""Words of a refusal to make a directory: that directory is what has to be writable."""
NETWORK_ACCESS: Final = "sandbox_workspace_write.network_access = true"
"""The network for what runs inside of the sandbox, with the files as they are."""


def writable_root(path: str, policy: Policy | None, quote: str = "") -> str | None:
    """The one directory that would have to be writable for `path` to be written.

    A file needs its directory: databases and locks put siblings beside it. But not the home directory, or one above it, for one file: then
    the file alone.

    Args:
        path: what was refused; may start with `~`.
        policy: the one in force.
        quote: the words of the refusal.
    """
    if policy and policy.may_write(path):
        return None
    directory = path if _DIRECTORY_WORDS.search(quote) else posixpath.dirname(path)
    return f'sandbox_workspace_write.writable_roots = ["{path if _is_too_wide(directory) else directory}"]'


def network(policy: Policy, quote: str) -> str:
    """What would give a command the network, or the one host that its proxy refused."""
    if policy.network is Network.MEDIATED and (host := _host(quote)):
        profile = (policy.profile or "").lstrip(":") or "PROFILE"
        return f'permissions.{profile}.network.domains = {{ "{host}" = "allow" }}'
    return "sandbox_workspace_write.network_access = true"


def _is_too_wide(directory: str) -> bool:
    """The root, a home directory, what homes lie in, or a system directory right below the root."""
    parts = [part for part in directory.split("/") if part]
    if directory.startswith("~"):
        return len(parts) <= 1
    return len(parts) <= 1 or (len(parts) == 2 and parts[0] in ("home", "Users"))


def _host(quote: str) -> str | None:
    match = re.search(r'Network access to "([\w.-]+)"|"host":\s*"([\w.-]+)"', quote)
    return next(filter(None, match.groups()), None) if match else None
