"""The paths of worker CLIs' state: sessions, databases, locks. A sandbox that forbids to write these stops
the CLI early.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

# ------------------------------------------------------------
# The mount table of a namespace, which decides without touching the disk whether mounts let a path be
# written


class Mount(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of `/proc/PID/mountinfo`."""

    id: int
    parent: int
    """The id of the mount it is mounted on. The parent of the root mount is not in the table, or is
    itself."""
    point: str
    """Where it is mounted, absolute, as the process sees it."""
    read_only: bool = False
    """By an option of this mount (`mount --bind -o ro`), or because its filesystem is."""
    fstype: str = ""
    """`ext4`, `tmpfs` ..."""
    root: str = "/"
    """Which directory of its filesystem is mounted."""
    device: str = ""
    """`254:0`: the device of its filesystem; empty in journals of 0.1.0."""
    private: bool = False
    """Whether it is a filesystem in memory, or an overlay, that is mounted nowhere in agentdash's namespace:
    what is written there reaches no file of the user, and is lost with the namespace."""


class WriteAccess(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a process may write a path, and what refuses it."""

    verdict: Literal["allowed", "read-only-mount", "mode", "unknown"]
    """`allowed` as far as mounts, modes and owners go; Landlock cannot be read. `mode`: owner and mode refuse
    it."""
    missing: bool = False
    """Whether the path does not exist yet: then it, or the directories above it, would have to be created."""


class MountTable:
    """All mounts of a namespace, resolved as the kernel does: component by component, from mount to mount.

    Args:
        mounts: in the order of mountinfo. Of several on the same place the last one counts.
    """

    def __init__(self, mounts: Iterable[Mount]) -> None:
        self.mounts = mounts = tuple(mounts)
        ids = {mount.id for mount in mounts}
        tops = [mount for mount in mounts if mount.parent == mount.id or mount.parent not in ids]
        # a mount stacked on "/" covers it only for a process that changes its root to it
        self._root = next((mount for mount in tops if mount.point == "/"), None)
        """None: the process is in a chroot, whose table has only what is mounted in it."""
        self._on: dict[tuple[int | None, str], Mount] = {(None, mount.point): mount for mount in tops}
        self._on |= {(mount.parent, mount.point): mount for mount in mounts if mount.parent != mount.id}
        self.devices = frozenset(mount.device for mount in mounts)
        """Those of all its filesystems."""

    def of(self, path: str) -> Mount | None:
        """Return the mount that a path lies on, existing or not; None where the table does not show it
        (relative paths, the directory of a chroot).

        Args:
            path: absolute, free of symlinks as far as it exists.
        """
        if not path.startswith("/"):
            return None
        mount, walked = self._root, ""
        for name in posixpath.normpath(path).strip("/").split("/"):
            walked = f"{walked}/{name}"
            while (on := self._on.get((mount.id if mount else None, walked))) is not None:
                mount = on
        return mount

    def may_write(self, path: str) -> bool | None:
        """Return whether mounts let this path be written; None: not known. Modes, owners and Landlock may
        still forbid it.

        Args:
            path: absolute, free of symlinks as far as it exists.
        """
        mount = self.of(path)
        return None if mount is None else not mount.read_only

    def is_lost(self, path: str, host: MountTable | None) -> bool:
        """Return whether what is written to a path stays in the namespace, and is lost with it.

        Args:
            path: absolute, free of symlinks as far as it exists.
            host: the mounts that the program outside has; None: they are agentdash's own.
        """
        mount = self.of(path)
        if mount is None or mount.read_only or not mount.private:
            return False
        return host is None or mount.device not in host.devices


# ------------------------------------------------------------


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
    "GEMINI_CLI_HOME": "$HOME",
    "QWEN_HOME": "$HOME/.qwen",
    "QWEN_RUNTIME_DIR": "$QWEN_HOME",
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
        return self.access.verdict in ("read-only-mount", "mode")


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
