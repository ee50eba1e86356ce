"""The narrowest change that would help, as text to copy. Never full access where less is enough."""

from __future__ import annotations

import posixpath
from typing import Final

from agentdash.facts.policy import Policy

EXCLUDE_FLAGS: Final = 'shell_environment_policy.exclude = ["CODEX_SANDBOX*"]'
"""Removes inherited flags; a true one is set again after the filter (checked on 0.169), so nothing is hidden."""

_FILE: Final = (".db", ".sqlite", ".sqlite3", ".lock", ".log", ".json", ".txt", ".toml")


def writable_root(path: str, policy: Policy | None) -> str | None:
    """The one directory that would have to be writable for `path` to be written.

    A file needs its directory: databases and locks put siblings beside it.
    """
    if policy and policy.may_write(path):
        return None
    directory = posixpath.dirname(path) if path.endswith(_FILE) else path
    return f'sandbox_workspace_write.writable_roots = ["{directory}"]'
