"""Read the conversation of one thread from its file, on demand: nothing of it is kept in the fleet."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentdash.agents.session_logs import log_of
from agentdash.agents.session_rows import log_stat
from agentdash.engine.conversation import ConversationBuilder
from agentdash.model.conversation import Conversation
from agentdash.model.denials import Denial
from agentdash.model.events import CallEnded, Event
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line
from agentdash.replay.cursor import Cursor
from agentdash.replay.streams import MergedStream, log_stream

_WINDOW_BYTES: Final = 8 << 20
"""Of a larger file only the head, and so much of its end, is read: in about a second."""
_HEAD_STEPS: Final = 64
"""Steps read from the beginning: they hold the metadata, the first prompt and the first policy."""


def denials_of(fleet: Fleet, event: Event) -> tuple[Denial, ...]:
    """Return the denials that the output of a call shows; the fleet is that after it."""
    if not isinstance(event, CallEnded):
        return ()
    thread = fleet.threads.get(event.thread)
    call = thread.find_call(event.call) if thread else None
    return call.denials if call else ()


class ConversationFile:
    """The conversation in one session file, up to any time. Reads on where it stopped.

    Args:
        path: a rollout or a transcript.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        log = log_of(path)
        self._thread = clean_line(path.name) if log is None else log.thread
        self._builder = ConversationBuilder(self._thread)
        self._cursor: Cursor | None = None
        self._file: tuple[int, int] | None = None
        """Device and inode of what has been read."""
        self._size = 0
        """Its bytes then."""
        self._read_to = -math.inf
        """The time up to which it has been read (unix seconds)."""

    def read(self, until: float = math.inf) -> Conversation:
        """Return the conversation up to a time (unix seconds)."""
        try:
            stat = log_stat(self._path)
        except OSError as error:
            return Conversation(thread=self._thread, problem=clean_line(error.strerror or str(error)))
        cursor = self._cursor
        file = stat.st_dev, stat.st_ino
        if cursor is None or until < self._read_to or file != self._file or stat.st_size < self._size:
            self._file = file
            self._cursor = cursor = self._begin(until)
        self._size = stat.st_size
        while True:
            while cursor.due is not None and cursor.due <= until:
                self._advance(cursor)
            if cursor.due is not None or not cursor.stream.poll():
                break
        self._read_to = until if math.isfinite(until) else cursor.at
        return self._builder.conversation(cursor.stream.streams[0].problem)

    def _begin(self, until: float) -> Cursor:
        """Return a cursor that has read the head of the file, and of a large one skipped all but its end."""
        self._builder = ConversationBuilder(self._thread)
        stream = log_stream(self._path)
        cursor = Cursor(MergedStream([stream]))
        if math.isinf(until) and self._path.suffix != ".zst":
            while cursor.position < _HEAD_STEPS and cursor.due is not None:
                self._advance(cursor)
            with suppress(OSError):
                stream.skip_to_end(_WINDOW_BYTES)
        return cursor

    def _advance(self, cursor: Cursor) -> None:
        step = cursor.advance()
        for event in step.events if step else ():
            self._builder.add(event, denials_of(cursor.fleet, event))
