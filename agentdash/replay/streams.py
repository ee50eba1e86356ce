"""Files of lines as one stream of steps, in the order of time: the input of the player.

A `FileStream` turns the lines of one file into steps, a `MergedStream` merges several files. Both can be
pickled after any step and continue from there: checkpoints are made of that.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from agentdash.agents.codex.home import open_lines, read_names
from agentdash.agents.line_events import LineEvents
from agentdash.agents.registry import adapters
from agentdash.agents.session_logs import SessionLog, log_begun_at, log_of
from agentdash.agents.session_rows import log_stat, open_log
from agentdash.files import is_record
from agentdash.model.events import (
    Event,
    FileGapSkipped,
    FileSeen,
    ObservationsRecalled,
    PolicyRequested,
    ThreadNamed,
)
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread
from agentdash.model.times import possible_time
from agentdash.replay.family import Family

if TYPE_CHECKING:
    from agentdash.replay.journal import JournalReader

# ------------------------------------------------------------
# Read the lines of a file from any offset in bounded memory
# A plain file is opened for each read and not kept open: it may be moved, or still be written.


_BLOCK_BYTES: Final = 1 << 17
"""Bytes per read: enough to amortize opening the file; a restored cursor reads at most so much for its next
line."""
_LIMIT: Final = MAX_LINE_BYTES + 1
"""Of a longer line so many bytes are returned: its reader reports it."""


class LineReader:
    """Returns complete lines, one per call. Can be pickled, and reads on behind the line returned last then.

    Args:
        path: a plain or compressed (`.zst`) file.
        offset: start of a line, in bytes of the uncompressed content.
        newline_due: whether the newline of the line before is at the offset, or still to come.
        ends_with_record: whether a whole JSON object at the end of the file is a line without its newline.
    """

    def __init__(
        self, path: Path, offset: int = 0, *, newline_due: bool = False, ends_with_record: bool = False
    ) -> None:
        self.offset = offset
        """Start of the next line, in uncompressed bytes."""
        self._path = path
        self._newline_due = newline_due
        self._ends_with_record = ends_with_record
        self._packed = _packed_lines(path, offset) if path.suffix == ".zst" else None
        self._ready: deque[tuple[bytes, int]] = deque()
        """Lines, and their length in the file with their newline."""

    def __reduce__(self) -> tuple[Any, ...]:
        options = {"newline_due": self._newline_due, "ends_with_record": self._ends_with_record}
        return partial(LineReader, self._path, self.offset, **options), ()

    def next(self) -> bytes | None:
        """Return the next line without its newline; None if no complete line is available (yet).

        Raises:
            OSError: the file cannot be read or decompressed.
        """
        if not self._ready:
            self._ready.extend(self._read() if self._packed is None else islice(self._packed, 1))
        if not self._ready:
            return None
        line, length = self._ready.popleft()
        self.offset += length
        self._newline_due = length == len(line)
        return line

    def _read(self) -> list[tuple[bytes, int]]:
        """Return the lines of the next block of a plain file."""
        found: list[tuple[bytes, int]] = []
        with open_log(self._path) as file:
            file.seek(self.offset)
            if self._newline_due and (following := file.read(1)):
                self._newline_due = False
                self.offset += following == b"\n"
                file.seek(self.offset)
            size = 0
            while size < _BLOCK_BYTES and (line := file.readline(_LIMIT)):
                length, end = len(line), line
                while end and not end.endswith(b"\n"):
                    end = file.readline(_LIMIT)
                    length += len(end)
                if end or (self._ends_with_record and is_record(line)):
                    found.append((line.removesuffix(b"\n"), length))
                size += length
        return found


def _packed_lines(path: Path, offset: int) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of a compressed file from an offset on, which is reached by decompressing all before
    it; a longer line counts as far as it is returned."""
    at = 0
    for line in open_lines(path):
        length = len(line) + 1
        if at >= offset:
            yield line, length
        at += length


# ------------------------------------------------------------


OVERHANG_S: Final = 5.0
"""Time for which recordings are read on after the last line of a family, or its last sign of life: its
processes end after it."""


class Step(NamedTuple):
    """The events of one line."""

    at: float
    """When it is due (unix seconds): the time of the line, but never before the preceding step."""
    events: Sequence[Event]


class FileStream:
    """The steps of one file, as far as it has been written.

    Args:
        path: a plain or compressed (`.zst`) file of lines.
        reader: parses its lines; its state between two of them can be pickled.
        seen: the file, if it is the log of a thread, emitted with its first step; None: it is a recording.
        named: names of the thread, emitted with it.
        begun: time of that step if the file has no line (unix seconds).
        dated: what was seen of the thread, in the order of time: each is emitted at its time, or at the end.
    """

    def __init__(
        self,
        path: Path,
        reader: LineEvents | JournalReader,
        seen: FileSeen | None = None,
        named: Sequence[Event] = (),
        begun: float = 0.0,
        dated: Sequence[Event] = (),
    ) -> None:
        self.path = path
        self.dated = tuple(dated)
        """What is still to be emitted of it."""
        self._seen = seen
        self.reader = reader
        self._lines = LineReader(path, ends_with_record=seen is not None)
        self.line = 1
        """Number of the next line; 0: unknown, because a gap was skipped."""
        self.opening: tuple[Event, ...] = () if seen is None else (seen, *named)
        self._due = begun
        self.problem: str | None = None
        """Why the file cannot be read on, or None."""

    @property
    def offset(self) -> int:
        """Bytes of the (uncompressed) file that were turned into steps."""
        return self._lines.offset

    def next(self) -> Step | None:
        """Return the next step, or None."""
        if self.problem is not None:
            return None
        events: Sequence[Event] = ()
        try:
            while not events and (line := self._lines.next()) is not None:
                events = self.reader.read((line,), self.line)
                self.line += self.line > 0
        except OSError as error:
            return self._fail(error)
        if not events and not self.opening:
            return None
        if events:
            self._due = self.reader.at if self.opening else max(self._due, self.reader.at)
        return self._step(events)

    def skip_to_end(self, window: int) -> None:
        """Skip all but so many bytes of a plain log that is larger; the next step has an event for the gap.

        Raises:
            OSError: the file cannot be read.
        """
        size = log_stat(self.path).st_size
        if self._seen is None or size - window <= self.offset:
            return
        with open_log(self.path) as file:
            file.seek(size - window)
            offset = size - window + len(file.readline(window))
        self.line = 0
        self._lines = LineReader(self.path, offset, ends_with_record=True)
        seen = replace(self._seen, at=self._due, modified=self._due, size=size, skimmed=True)
        self.opening = seen, FileGapSkipped(at=self._due, thread=seen.thread)

    def _fail(self, error: OSError) -> Step | None:
        """Return a step with the error; no step follows it."""
        self.problem = clean_line(error.strerror or str(error))
        if self._seen is None:
            return None
        due = self._due  # when it was written is later than the time of a replay
        return self._step([replace(self._seen, at=due, modified=due, unreadable=self.problem)])

    def _step(self, events: Sequence[Event]) -> Step:
        opening = self.opening
        self.opening = ()
        dated = tuple(takewhile(lambda event: event.at <= self._due, self.dated))
        self.dated = self.dated[len(dated) :]
        return Step(self._due, (*opening, *dated, *events))


class MergedStream:
    """Several file streams as one, ordered by due time; at equal times the earlier stream comes first.

    Args:
        streams: older ones first.
        recorded: recordings of the same time.
        recalls: whether they have more than files do: what agentdash remembers of their threads.
    """

    def __init__(
        self, streams: Sequence[FileStream], recorded: Sequence[FileStream] = (), *, recalls: bool = False
    ) -> None:
        self.streams = (*streams, *recorded)
        self._recalls = recalls
        self._logs = len(streams)
        """Number of streams of session logs."""
        self._heads: list[tuple[float, int, Step]] = []
        """A heap of the next step of each stream: due time, number of the stream, step."""
        self._exhausted = list(range(len(self.streams)))
        self._at = 0.0
        self.poll()

    @property
    def offset(self) -> int:
        """Bytes read of all files."""
        return sum(stream.offset for stream in self.streams)

    @property
    def due(self) -> float | None:
        """Time of the next step (unix seconds); None at the current end of the files."""
        return max(self._at, self._heads[0][0]) if self._heads else None

    @property
    def has_logs(self) -> bool:
        """Whether there are other streams than recordings."""
        return bool(self._logs)

    @property
    def sources(self) -> str:
        """What it is made of, as a sentence goes on after "from"."""
        sources = ["the session's own files"] if self.has_logs else []
        if len(self.streams) > self._logs:
            sources.append("a recording")
        if self._recalls:
            sources.append("what was seen of it while it ran")
        return " and ".join(sources) if len(sources) < 3 else f"{', '.join(sources[:2])} and {sources[2]}"

    @property
    def logs_pending(self) -> bool:
        """Whether a step of a session log is left; True if there are only recordings."""
        return not self._logs or any(number < self._logs for _, number, _ in self._heads)

    def next(self) -> Step | None:
        """Return the next step; None at the current end of the files."""
        if not self._heads:
            return None
        _, number, step = heapq.heappop(self._heads)
        self._add(number, self.streams[number].next())
        self._at = max(self._at, step.at)
        return step._replace(at=self._at)

    def poll(self) -> bool:
        """Read on in exhausted files; return whether any of them has grown."""
        waiting, self._exhausted = self._exhausted, []
        for number in waiting:
            self._add(number, self.streams[number].next())
        return len(self._exhausted) < len(waiting)

    def _add(self, number: int, step: Step | None) -> None:
        """Add the next step of a stream; None: it has no more (yet)."""
        if step is None:
            self._exhausted.append(number)
        else:
            heapq.heappush(self._heads, (step.at, number, step))


def family_stream(family: Family, extra: Sequence[FileStream] = ()) -> MergedStream:
    """Return the merged stream of a family's rollouts.

    Args:
        extra: further streams of the same time, such as recordings of its panes.
    """
    names = read_names(family.home).names if family.home else ()
    seen = {memory.thread: tuple(recalled_events(memory)) for memory in family.memories}
    logs = [log_stream(path, names, seen) for path in family.paths]
    return MergedStream(logs, extra, recalls=bool(family.memories))


def log_stream(
    path: Path,
    names: Sequence[ThreadNamed] = (),
    recalled: Mapping[str, Sequence[Event]] = MappingProxyType({}),
) -> FileStream:
    """Return the stream of a session log, with the names of threads and what was seen of these."""
    log = log_of(path) or SessionLog(path, clean_line(path.name), "codex")
    seen, begun = file_seen(path, log.thread), log_begun_at(path)
    return FileStream(
        path,
        log.reader(),
        seen,
        named=[each for each in names if each.thread == log.thread],
        begun=seen.modified if begun is None else begun,
        dated=recalled.get(log.thread, ()),
    )


def file_seen(path: Path, thread: str) -> FileSeen:
    """Return the event of a log as it is now; without size and time if it cannot be looked at."""
    try:
        stat = log_stat(path)
        size, modified = stat.st_size, possible_time(stat.st_mtime) or 0.0
    except OSError:
        size, modified = 0, 0.0
    return FileSeen(
        at=modified,
        thread=thread,
        path=clean_line(str(path)),
        size=size,
        modified=modified,
    )


# ------------------------------------------------------------
# What is known of past threads beyond their files, as events: observations, and what was asked of them


def recalled_events(memory: ThreadMemory) -> Iterator[ObservationsRecalled]:
    """Yield events in the order of their time, each with all that had been seen until then."""
    observed = [each.observation for each in memory.observations]
    times = {time for each in observed for time in (each.first, each.last)}
    times |= {escape.at for escape in memory.escapes}
    times |= {request.since or 0.0 for request in memory.requests}
    for at in sorted(times):
        observations = (
            replace(each, observation=replace(seen, last=min(seen.last, at)))
            for each, seen in zip(memory.observations, observed, strict=True)
            if seen.first <= at
        )
        known = ThreadMemory(
            memory.thread,
            tuple(observations),
            tuple(escape for escape in memory.escapes if escape.at <= at),
            tuple(request for request in memory.requests if (request.since or 0.0) <= at),
        )
        yield ObservationsRecalled(at=at, memory=known)


def past_requests(thread: Thread, at: float) -> list[PolicyRequested]:
    """Return what the configuration files of a thread ask for, as they are now (Claude Code).

    Args:
        thread: with its file.
        at: the time of the event (unix seconds).
    """
    adapter = adapters().get(thread.agent)
    reader = adapter.request_reader if adapter is not None else None
    found = reader.read_past(thread, at) if reader is not None else None
    return [] if found is None else [PolicyRequested(at=at, worker=thread.id, requested=found)]
