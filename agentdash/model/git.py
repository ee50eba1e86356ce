"""The git repository that a worker works in, as read from its files."""

from __future__ import annotations

import msgspec


class Repository(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a working tree. None: not known."""

    root: str
    """The working tree."""
    common: str = ""
    """The directory of the files that all its worktrees share."""
    branch: str | None = None
    """None also where HEAD is detached."""
    commit: str | None = None
    """The commit that is checked out, in hexadecimal; None before the first."""
    worktree: str | None = None
    """Its name, if it is a linked worktree (`git worktree add`); None for the main one."""
    dirty: bool | None = None
    """Whether tracked files differ from the last commit. Untracked files are not looked at."""

    def in_words(self) -> str:
        """Return it in words: `main, worktree fix, changed`."""
        parts = [self.branch or f"detached at {(self.commit or '?')[:12]}"]
        parts += [f"worktree {self.worktree}"] if self.worktree else []
        parts += ["changed" if self.dirty else "unchanged"] if self.dirty is not None else []
        return ", ".join(parts)
