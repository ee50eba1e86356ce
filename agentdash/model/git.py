"""The git repository that a worker works in, as read from its files."""

from __future__ import annotations

import msgspec


class Repository(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a working tree. None: not known."""

    root: str
    """The working tree."""
    branch: str | None = None
    """None also where HEAD is detached."""
    commit: str | None = None
    """The commit that is checked out, in hexadecimal; None before the first."""
    worktree: str | None = None
    """Its name, if it is a linked worktree (`git worktree add`); None for the main one."""
    dirty: bool | None = None
    """Whether tracked files differ from the last commit. Untracked files are not looked at."""
    upstream: str | None = None
    """`origin/main`, or None."""
    ahead: int | None = None
    """Commits that the upstream has not."""
    behind: int | None = None
    """Commits of the upstream that the branch has not."""

    def short(self) -> str:
        """Return it in few cells: `main*+2-1`."""
        name = self.branch or (self.commit or "no commit")[:8]
        ahead = f"+{self.ahead}" if self.ahead else ""
        behind = f"-{self.behind}" if self.behind else ""
        return f"{name}{'*' if self.dirty else ''}{ahead}{behind}"

    def in_words(self) -> str:
        """Return it in words: `main, worktree fix, changed, 2 ahead of origin/main`."""
        parts = [self.branch or f"detached at {(self.commit or '?')[:12]}"]
        parts += [f"worktree {self.worktree}"] if self.worktree else []
        parts += ["changed" if self.dirty else "unchanged"] if self.dirty is not None else []
        if self.upstream is not None:
            counts = [
                f"{count} {word}"
                for count, word in ((self.ahead, "ahead of"), (self.behind, "behind"))
                if count
            ]
            same = ["level with"] if self.ahead == 0 == self.behind else []
            known = " and ".join(counts or same) or "follows"
            parts.append(f"{known} {self.upstream}")
        return ", ".join(parts)
