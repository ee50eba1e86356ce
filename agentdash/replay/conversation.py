"""Read the conversation of one thread from its file, on demand: nothing of it is kept in the fleet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentdash.agents.codex.rollout.lineage import line_time
from agentdash.agents.session_logs import SessionLog, log_begun_at, log_of
from agentdash.engine.conversation import ConversationBuilder
from agentdash.files import open_stream
from agentdash.model.conversation import Conversation
from agentdash.model.events import CallEnded, Event
from agentdash.model.fleet import Fleet
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.sanitize import clean_line
from agentdash.replay.cursor import Cursor
from agentdash.replay.streams import FileStream, MergedStream, Step

_WINDOW_BYTES: Final = 8 << 20
"""Of a larger file only the head, and so much before the wanted time, is read: in about a second."""
_HEAD_STEPS: Final = 64
"""Steps read from the beginning: they hold the metadata, the first prompt and the first policy."""
_MIN_SKIP_BYTES: Final = 1 << 20
"""A smaller gap is read: that takes a few hundredths of a second."""
_BISECT_BYTES: Final = 1 << 16
"""Interval at which the search for a time ends: one read."""


class _Cursor(Cursor):
    """A cursor that adds what it reads to a conversation."""

    def __init__(self, stream: MergedStream, thread: str) -> None:
        super().__init__(stream)
        self.builder = ConversationBuilder(thread)

    def advance(self) -> Step | None:
        """Consume one step and return it; None at the current end."""
        step = super().advance()
        for event in step.events if step else ():
            self.builder.add(event, denial_quote(self.fleet, event))
        return step


def denial_quote(fleet: Fleet, event: Event) -> str | None:
    """Return the words of the denial that the output of a call shows, or None; the fleet is that after it."""
    if not isinstance(event, CallEnded) or (thread := fleet.threads.get(event.thread)) is None:
        return None
    call = next((call for call in reversed(thread.calls) if call.id == event.call), None)
    return call.denial.quote if call and call.denial else None


class ConversationFile:
    """The conversation in one session file, up to any time. Reads on where it stopped.

    Args:
        path: a rollout or a transcript.
        is_whole: whether large files are read whole, which takes a second for each 20 MB or so.
    """

    def __init__(self, path: Path, *, is_whole: bool = False) -> None:
        self.path = path
        self._log = log_of(path) or SessionLog(path, clean_line(path.name), "codex")
        self.thread = self._log.thread
        self._is_whole = is_whole
        self._cursor: _Cursor | None = None
        self._file: tuple[int, int] | None = None
        """Device and inode of what has been read."""
        self._read_to = -math.inf
        """The time up to which it has been read (unix seconds)."""

    @property
    def fleet(self) -> Fleet:
        """The thread as it was at the time read."""
        return self._cursor.fleet if self._cursor else Fleet()

    @property
    def at(self) -> float:
        """The time of the newest line read (unix seconds)."""
        return self._cursor.at if self._cursor else 0.0

    def read(self, until: float = math.inf) -> Conversation:
        """Return the conversation up to a time (unix seconds)."""
        try:
            stat = self.path.stat()
        except OSError as error:
            return Conversation(thread=self.thread, problem=clean_line(error.strerror or str(error)))
        cursor = self._cursor
        if cursor is None or self._is_void(cursor, (stat.st_dev, stat.st_ino), stat.st_size, until):
            self._file = stat.st_dev, stat.st_ino
            self._cursor = cursor = self._begin(until)
        while True:
            while cursor.due is not None and cursor.due <= until:
                cursor.advance()
            if cursor.due is not None or not cursor.stream.poll():
                break
        self._read_to = until if math.isfinite(until) else cursor.at
        return cursor.builder.conversation(cursor.stream.streams[0].problem)

    def _is_void(self, cursor: Cursor, file: tuple[int, int], size: int, until: float) -> bool:
        """Return whether an earlier time is wanted, or the file is another one, or one that is far ahead."""
        if until < self._read_to or self._file != file:
            return True
        if self.path.suffix == ".zst":
            return False
        ahead = size - cursor.stream.offset
        return ahead < 0 or (ahead > 2 * _WINDOW_BYTES and not self._is_whole)

    def _begin(self, until: float) -> _Cursor:
        """Return a cursor that has read the file up to a time, of a large one the head and the part before
        that time."""
        begun = log_begun_at(self.path) or 0.0
        stream = FileStream(self.path, self._log.reader(), begun=begun, thread=self.thread)
        cursor = _Cursor(MergedStream([stream]), self.thread)
        if not self._is_whole:
            while cursor.position < _HEAD_STEPS and cursor.due is not None and cursor.due <= until:
                cursor.advance()
            _skip_ahead(stream, until)
        return cursor


def _skip_ahead(file: FileStream, until: float) -> None:
    """Skip to shortly before a time (unix seconds), if that is far ahead; not in a compressed file."""
    try:
        low, high = file.offset, file.path.stat().st_size
    except OSError:
        return
    while high - low > _BISECT_BYTES:
        middle = (low + high) // 2
        start, at = next(_timed_lines(file.path, middle, high), (high, until))
        if at < until and start < high:
            low = start
        else:
            high = middle
    target, _ = next(_timed_lines(file.path, max(file.offset, low - _WINDOW_BYTES), low), (low, until))
    if target - file.offset > _MIN_SKIP_BYTES and file.path.suffix != ".zst":
        file.skip_to(target)


def _timed_lines(path: Path, offset: int, end: int) -> Iterator[tuple[int, float]]:
    """Yield offset and time of each line that begins after `offset` (or at 0) and before `end`, if it has a
    time."""
    try:
        with open_stream(path) as file:
            file.seek(offset)
            offset += len(file.readline(MAX_LINE_BYTES)) if offset else 0
            while offset < end and (line := file.readline(MAX_LINE_BYTES)):
                if (at := line_time(line)) is not None:
                    yield offset, at
                offset += len(line)
    except OSError:
        return
