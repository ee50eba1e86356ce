"""Files of lines as one stream of beats, in the order of time: what a player plays.

asciinema's chain, resumable: a strand turns the lines of one file into beats, a tape merges strands. Both can be pickled at any beat and go
on from there: that is what checkpoints are made of.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from agentdash.agents.codex.home import CodexHome, begun_at, names, thread_id
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.model.events import Event, FileGapSkipped, FileSeen
from agentdash.model.sanitize import clean_line
from agentdash.replay.family import Family
from agentdash.replay.line_reader import Lines


class Step(NamedTuple):
    """What one line told."""

    at: float
    """When it is due (unix seconds): its own time, but never before the beat in front of it."""
    events: Sequence[Event]


class Reader(Protocol):
    """Makes events of lines. What it remembers between two lines can be pickled."""

    @property
    def at(self) -> float:
        """When the newest line was written (unix seconds)."""
        ...

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[Event]:
        """The events of these lines, the first of which has this number."""
        ...


class FileStream:
    """The beats of one file, as far as it has been written.

    Args:
        path: a file of lines, plain or compressed (`.zst`).
        reader: makes events of its lines.
        opening: what there is to say of the file itself, with its first beat.
        begun: when that is, should there be no line.
    """

    def __init__(self, path: Path, reader: Reader, opening: Sequence[Event] = (), begun: float = 0.0) -> None:
        self.path, self.reader = path, reader
        self.offset = 0
        """Bytes of the (unpacked) file that have become beats."""
        self.line = 1
        """Number of the next line; 0: not known, for a gap was left before."""
        self.opening = tuple(opening)
        self._due = begun
        self._lines: Lines | None = None
        self._broken = False

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_lines": None}

    def next(self) -> Step | None:
        """The next beat; None where there is none (yet)."""
        if self._broken:
            return None
        events: list[Event] = []
        try:
            while not events and (line := self._line()) is not None:
                events = self.reader.read((line,), self.line)
                self.line += self.line > 0
        except OSError as error:
            return self._break(error)
        if not events and not self.opening:
            return None
        if events:
            self._due = self.reader.at if self.opening else max(self._due, self.reader.at)
        said, self.opening = (*self.opening, *events), ()
        return Step(self._due, said)

    def leap(self, offset: int) -> None:
        """Leaves out everything up to a line that begins at `offset`, and says so with the next beat."""
        self.offset, self.line, self._lines = offset, 0, None
        if (thread := thread_id(self.path)) is not None:
            size = self.path.stat().st_size
            seen = FileSeen(
                at=self._due,
                thread=thread,
                path=clean_line(str(self.path)),
                size=size,
                modified=self._due,
                skimmed=True,
            )
            self.opening = (seen, FileGapSkipped(at=self._due, thread=thread))

    def _line(self) -> bytes | None:
        if self._lines is None:
            self._lines = Lines(self.path, self.offset)
        if (line := self._lines.next()) is None:
            self._lines = None  # what is being written is no line yet: it is read again from its beginning
        else:
            self.offset = self._lines.offset
        return line

    def _break(self, error: OSError) -> Step | None:
        """Says once what is wrong with the file; nothing comes from it any more."""
        self._broken = True
        if (thread := thread_id(self.path)) is None:
            return None
        why = clean_line(error.strerror or str(error))
        seen = FileSeen(
            at=self._due,
            thread=thread,
            path=clean_line(str(self.path)),
            size=0,
            modified=self._due,
            unreadable=why,
        )
        said, self.opening = (*self.opening, seen), ()
        return Step(self._due, said)


class MergedStream:
    """Strands as one: what is due first comes first, and of what is due together the older strand's.

    Args:
        strands: older ones first.
    """

    def __init__(self, journal_streams: Sequence[FileStream]) -> None:
        self.journal_streams = tuple(journal_streams)
        self._heads: list[tuple[float, int, Step]] = []
        self._waiting = list(range(len(self.journal_streams)))
        self._at = 0.0
        self.wake()

    @property
    def offset(self) -> int:
        """Bytes read of all files."""
        return sum(strand.offset for strand in self.journal_streams)

    @property
    def due(self) -> float | None:
        """When the next beat is; None at the end of what has been written."""
        return max(self._at, self._heads[0][0]) if self._heads else None

    def next(self) -> Step | None:
        """The next beat; None at the end of what has been written."""
        if not self._heads:
            return None
        _, number, beat = heapq.heappop(self._heads)
        self._pull(number)
        self._at = max(self._at, beat.at)
        return beat._replace(at=self._at)

    def wake(self) -> bool:
        """Looks whether files that had ended have grown."""
        waiting, self._waiting = self._waiting, []
        for number in waiting:
            self._pull(number)
        return len(self._waiting) < len(waiting)

    def _pull(self, number: int) -> None:
        if (beat := self.journal_streams[number].next()) is None:
            self._waiting.append(number)
        else:
            heapq.heappush(self._heads, (beat.at, number, beat))


def family_stream(family: Family, more: Sequence[FileStream] = ()) -> MergedStream:
    """The tape of a family's rollouts.

    Args:
        more: further strands that belong to it, such as what was recorded of its panes.
    """
    called = {named.thread: named for named in names(family.home)} if family.home else {}
    return MergedStream(
        [*(_rollout(path, family.home, called.get(thread_id(path) or "")) for path in family.paths), *more]
    )


def _rollout(path: Path, home: CodexHome | None, named: Event | None) -> FileStream:
    thread = thread_id(path) or clean_line(path.name)
    try:
        stat = path.stat()
        size, modified = stat.st_size, stat.st_mtime
    except OSError:
        size, modified = 0, 0.0
    seen = FileSeen(
        at=modified,
        thread=thread,
        path=clean_line(str(path)),
        size=size,
        modified=modified,
        archived=home is not None and path.is_relative_to(home.archived),
        compressed=path.suffix == ".zst",
    )
    begun = begun_at(path)
    return FileStream(
        path, RolloutReader(thread), (named, seen) if named else (seen,), modified if begun is None else begun
    )
