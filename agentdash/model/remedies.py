"""Remedies: what to change so that a denied operation succeeds, and the facts about places that decide it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The narrowest change that would help."""

    text: str
    """Lines of a configuration file to paste, or a command, or words."""
    where: str | None = None
    """The file and the place in it for the lines; None where `text` is no configuration."""
    once: str | None = None
    """The shell command that starts Codex with this change for one run; None where there is none."""


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

    def is_same(self, other: PathFacts) -> bool:
        """Return whether both are the same; `kinds` is frozen and large, so identity is enough for it."""
        ours = (self.homes, self.workspaces, self.codex_home)
        return self.kinds is other.kinds and ours == (other.homes, other.workspaces, other.codex_home)
