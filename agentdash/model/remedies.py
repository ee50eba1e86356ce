"""Remedies: what to change so that a denied operation succeeds, and the facts about places that decide it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash.model.requested import Requested


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The narrowest change that would help."""

    text: str
    """Lines of a configuration file to paste, or a command, or words."""
    where: str | None = None
    """The file and the place in it for the lines; None where `text` is no configuration."""
    once: str | None = None
    """The shell command that starts Codex with this change for one run; None where there is none."""


_BEFORE: Final = "; before that, `mkdir -p "
_WHY_BEFORE: Final = "`: Codex ignores a directory that does not exist"


def with_directories(where: str, directories: Iterable[str]) -> str:
    """Return the place of a remedy with the command that has to create these directories first."""
    quoted = " ".join(map(shlex.quote, directories))
    return f"{where}{_BEFORE}{quoted}{_WHY_BEFORE}" if quoted else where


def split_directories(where: str) -> tuple[str, list[str]]:
    """Return the place of a remedy, and the directories that have to be created first."""
    place, _, command = where.partition(_BEFORE)
    return place, shlex.split(command.removesuffix(_WHY_BEFORE))


class PathKind(StrEnum):
    """What is at a path."""

    DIRECTORY = "directory"
    HOME = "home"
    """A home directory: of a user of this machine, or one that has the files of a login shell."""
    MOUNT = "mount"
    """A mount point."""
    FILE = "file"
    LINK = "link"
    """A symbolic link: what it opens lies elsewhere."""
    OTHER = "other"
    """A socket, a device, a pipe."""
    MISSING = "missing"

    @property
    def is_directory(self) -> bool:
        """Return whether it is a directory of any kind."""
        return self in (PathKind.DIRECTORY, PathKind.HOME, PathKind.MOUNT)


class PathFacts(msgspec.Struct, frozen=True):
    """What is known of the places that the remedies of one worker may name."""

    kinds: Mapping[str, PathKind] = {}
    """What is at absolute paths. A path that is not in it is not known."""
    homes: tuple[str, ...] = ()
    """Known home directories."""
    workspaces: tuple[str, ...] = ()
    """Working directories of the thread."""
    codex_home: str | None = None
    """The directory of Codex's `config.toml`; None: `~/.codex`."""
    claude_home: str | None = None
    """The directory of Claude Code's `settings.json`; None: `~/.claude`."""
    profile: str | None = None
    """The permission profile that was asked for and is given by the rules of the CLI's version; for policies
    that do not state theirs (Codex 0.138 to 0.150)."""
    request: Requested | None = None
    """What the thread was asked for last, and what its CLI makes of that; None: not known."""
    excluded: tuple[str, ...] = ()
    """Commands that are to run without the sandbox (Claude Code, `excludedCommands`)."""

    def has_link(self, path: str) -> bool:
        """Return whether a symbolic link is known at an absolute path or above it: the kernel, and the
        arguments of launchers, have another name for what is there."""
        parts = path.split("/")
        return any(
            self.kinds.get("/".join(parts[:count])) is PathKind.LINK for count in range(2, len(parts) + 1)
        )

    def is_same(self, other: PathFacts) -> bool:
        """Return whether both are the same; `kinds` is frozen and large, so identity is enough for it."""
        return self.kinds is other.kinds and replace(self, kinds={}) == replace(other, kinds={})
