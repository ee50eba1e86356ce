"""Apply the changes that a log follower reports, and check them against each other."""

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any

from agentdash.collect.tail.follower import (
    Change,
    FileGrown,
    FileMoved,
    FileUnreadable,
    FileVanished,
    LogFollower,
    ReadLimits,
)


def log_follower(roots: Sequence[Path], **options: Any) -> LogFollower:
    """Return a follower of logs that are known by the names of their files."""
    limits = {name: options.pop(name) for name in ReadLimits.__struct_fields__ if name in options}
    return LogFollower(roots, log_name, ReadLimits(**limits), **options)


def log_name(path: PurePath) -> str | None:
    """Return the log that a file belongs to, or None if it is not a log."""
    name = path.name.removesuffix(".zst")
    return name if name.endswith(".jsonl") else None


class Replayed:
    """The files as a consumer of changes knows them; a change that contradicts earlier ones fails."""

    def __init__(self) -> None:
        self.files: dict[Path, list[bytes]] = {}
        """Lines by path."""
        self.failures: dict[Path, str] = {}
        self.gaps: set[Path] = set()
        """Skimmed files."""
        self.skipped: dict[Path, int] = {}
        """Oversized lines by path."""

    def apply(self, changes: Iterable[Change]) -> list[Change]:
        applied = list(changes)
        for change in applied:
            match change:
                case FileGrown():
                    self._grown(change)
                case FileMoved(path=new):
                    old = next(path for path in self.files if log_name(path) == log_name(new))
                    self.files[new] = self.files.pop(old)
                    self.skipped[new] = self.skipped.pop(old)
                    self.gaps = {new if path == old else path for path in self.gaps}
                case FileVanished(path=path):
                    del self.files[path], self.skipped[path]
                    self.gaps.discard(path)
                case FileUnreadable(path=path, reason=reason):
                    self.failures[path] = reason
        return applied

    def _grown(self, change: FileGrown) -> None:
        if change.reset:
            assert change.path in self.files, "reset of a file of which nothing was emitted"
            self.gaps.discard(change.path)
        lines = [] if change.reset else self.files.get(change.path, [])
        skipped = change.oversized + (0 if change.reset else self.skipped.get(change.path, 0))
        assert change.first == len(lines) + skipped + 1 or (change.first == 0 and change.skimmed)
        self.skipped[change.path] = skipped
        self.files[change.path] = [*lines, *change.lines]
        self.failures.pop(change.path, None)
        if change.skimmed:
            self.gaps.add(change.path)


def complete_lines(path: Path) -> list[bytes]:
    """Return the complete lines that a file has now."""
    return path.read_bytes().split(b"\n")[:-1]
