"""Events of the lines of session logs. A run of lines that are not understood, or too long, is one event."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from agentdash.model.events import LineSkipped, ThreadEvent
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.sanitize import clean_line


class LineEvents(ABC):
    """Reader of one log: the events of its lines, as they are parsed. Never raises: a line that is too long,
    or not understood, is a `LineSkipped`.

    Args:
        thread: the thread's id.
        at: its time before any line states one (unix seconds).
    """

    def __init__(self, thread: str, at: float = 0.0) -> None:
        self._thread = thread
        self._events: list[ThreadEvent] = []
        self._number = 0
        """Of the line that is parsed, counted from 1; 0: not known."""
        self._at = at

    @property
    def at(self) -> float:
        """Time of the newest line (unix seconds)."""
        return self._at

    @property
    def is_copying(self) -> bool:
        """Whether the newest line was copied from another session."""
        return False

    def read(self, lines: Iterable[bytes], first: int = 1) -> list[ThreadEvent]:
        """Return the events of lines, in the order of the file.

        Args:
            lines: with or without their newline.
            first: number of the first line, counted from 1; 0 where it is unknown: then the events have line
                0.
        """
        events: list[ThreadEvent] = []
        self._events = events
        for offset, line in enumerate(lines):
            self._number = first + offset if first else 0
            if len(line) > MAX_LINE_BYTES:
                self._skip("oversized", f"longer than {MAX_LINE_BYTES >> 20} MiB")
            elif line and not line.isspace():
                try:
                    self._read(line)
                except msgspec.ValidationError as error:
                    self._skip("malformed", str(error))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    self._skip("malformed", f"not JSON: {error}")
        self._events = []  # the returned list belongs to the caller
        return events

    @abstractmethod
    def _read(self, line: bytes) -> None:
        """Emit the events of a line that is not blank.

        Raises:
            msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is not understood.
        """

    def _emit(
        self,
        event: Callable[..., ThreadEvent],
        *,
        at: float | None = None,
        line: int | None = None,
        **fields: Any,
    ) -> None:
        """Add an event of the line that is parsed, or of another time or line."""
        at = self._at if at is None else at
        line = self._number if line is None else line
        self._events.append(event(at=at, thread=self._thread, line=line, **fields))

    def _skip(self, what: Any, detail: str) -> None:
        """Emit that the line is skipped; after another one that was skipped for the same reason, count it
        there: a file may gain a million such lines a second."""
        skipped = LineSkipped(
            at=self._at, thread=self._thread, line=self._number, what=what, detail=clean_line(detail, 200)
        )
        last = self._events[-1] if self._events else None
        if isinstance(last, LineSkipped) and last.reason == skipped.reason:
            self._events[-1] = replace(skipped, count=last.count + 1)
        else:
            self._events.append(skipped)


def oversized_lines(count: int, thread: str, at: float) -> LineSkipped:
    """Return the event of lines that were left out before the reader of the log."""
    return LineSkipped(at=at, thread=thread, what="oversized", detail="longer than is read", count=count)
