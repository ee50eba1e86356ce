"""What a tail says, replayed: the lines of each file as far as anybody was told."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agentdash.collect.tail.follower import Change, FileGrown, FileMoved, FileUnreadable, FileVanished


class Replayed:
    """Believes every change, and complains about those that contradict what was said before."""

    def __init__(self) -> None:
        self.files: dict[Path, list[bytes]] = {}
        self.trouble: dict[Path, str] = {}
        self.gaps: set[Path] = set()
        self.skipped: dict[Path, int] = {}

    def hear(self, changes: Iterable[Change]) -> list[Change]:
        heard = list(changes)
        for change in heard:
            match change:
                case FileGrown():
                    self._grown(change)
                case FileMoved(old=old, new=new):
                    self.files[new] = self.files.pop(old)
                    self.skipped[new] = self.skipped.pop(old)
                    self.gaps = {new if path == old else path for path in self.gaps}
                case FileVanished(path=path):
                    del self.files[path], self.skipped[path]
                    self.gaps.discard(path)
                case FileUnreadable(path=path, why=why):
                    self.trouble[path] = why
        return heard

    def _grown(self, change: FileGrown) -> None:
        if change.reset:
            assert change.path in self.files, "nothing was said of it that could be void"
            self.gaps.discard(change.path)
        lines = [] if change.reset else self.files.get(change.path, [])
        skipped = change.oversized + (0 if change.reset else self.skipped.get(change.path, 0))
        assert change.first == len(lines) + skipped + 1 or (change.first == 0 and change.skimmed)
        self.skipped[change.path] = skipped
        self.files[change.path] = [*lines, *change.lines]
        self.trouble.pop(change.path, None)
        if change.skimmed:
            self.gaps.add(change.path)


def complete(path: Path) -> list[bytes]:
    """The complete lines that a file has now."""
    return path.read_bytes().split(b"\n")[:-1]
