"""The paths of worker CLIs' state: sessions, databases, locks. A sandbox that forbids to write these stops
the CLI early."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from agentdash.model.state_paths import WriteAccess

DEFAULTS: Final[Mapping[str, str]] = {
    "XDG_DATA_HOME": "$HOME/.local/share",
    "XDG_STATE_HOME": "$HOME/.local/state",
    "XDG_CACHE_HOME": "$HOME/.cache",
    "XDG_CONFIG_HOME": "$HOME/.config",
    "CODEX_HOME": "$HOME/.codex",
    "CLAUDE_CONFIG_DIR": "$HOME/.claude",
    "COPILOT_HOME": "$HOME/.copilot",
    "KIMI_CODE_HOME": "$HOME/.kimi-code",
    "CURSOR_CONFIG_DIR": "$XDG_CONFIG_HOME/cursor",
    "TMPDIR": "/tmp",  # noqa: S108 - what the system means by it
}
"""The value of a variable where it is not set."""
_VARIABLE: Final = re.compile(r"\$(\w+)")


class StatePath(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A path that a worker CLI writes: one row of the `[state]` table of `agents/<cli>.toml`."""

    path: str
    """A directory or file, `$XDG_DATA_HOME/opencode`; `$PWD` is the directory it works in."""
    what: str
    """What the CLI keeps there, in a few words."""
    needed: Literal["always", "at-first", "no"] = "no"
    """Whether the CLI fails or stalls where it may not write the path. `at-first`: only where it does not
    exist yet and has to be created."""


class Installed(msgspec.Struct, frozen=True):
    """The worker CLIs that could be started on this machine, and the paths of their state."""

    workers: dict[str, tuple[StatePath, ...]]
    """By name (`opencode`)."""
    env: dict[str, str]
    """agentdash's own variables that name these paths: a worker that is started inherits much the same."""


class PathAccess(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a worker may write one of its state paths."""

    path: str
    """Absolute."""
    what: str
    access: WriteAccess
    needed: bool = False
    """Whether the CLI fails or stalls where it may not write this, as things are on this disk."""

    @property
    def denied(self) -> bool:
        """Return whether it is known that it may not be written."""
        return self.access.verdict in ("read-only-mount", "mode", "policy")


class PredictedDenials(msgspec.Struct, frozen=True):
    """The state paths that a policy would deny a worker CLI if it were started under it."""

    agent: str
    """`opencode`"""
    paths: tuple[PathAccess, ...]
    """Those first that it needs."""


def path_access(row: StatePath, path: str, access: WriteAccess) -> PathAccess:
    """Return the access to a state path, once its place and the access to that are known."""
    return PathAccess(
        path, row.what, access, row.needed == "always" or (row.needed == "at-first" and access.missing)
    )


def resolve_path(path: str, env: Mapping[str, str], cwd: str | None = None) -> str | None:
    """Return a state path as an absolute one; None where a variable in it is not known, or the result is
    relative.

    Args:
        path: as in the table.
        env: the worker's environment: `HOME`, and any of `DEFAULTS` that is set.
    """
    for _ in range(4):  # a default may name a variable itself
        path = _VARIABLE.sub(lambda m: _value(m[1], env, cwd) or m[0], path)
    return posixpath.normpath(path) if path.startswith("/") and "$" not in path else None


def _value(name: str, env: Mapping[str, str], cwd: str | None) -> str | None:
    if name == "PWD":
        return cwd or env.get("PWD")
    value = env.get(name)
    if name.startswith("XDG_") and value and not value.startswith("/"):
        value = None  # by the XDG rules a relative path counts as none
    return value or DEFAULTS.get(name)
