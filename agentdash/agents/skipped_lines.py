"""Lines of session logs that are not understood, or too long to be read: a run of them is one event."""

from __future__ import annotations

from msgspec.structs import replace

from agentdash.model.events import Event, LineSkipped


def append_skipped(events: list[Event], skipped: LineSkipped) -> None:
    """Append an event of skipped lines; one that follows another of the same reason is added to its count.

    A file may gain a million such lines a second.
    """
    last = events[-1] if events else None
    if isinstance(last, LineSkipped) and last.reason == skipped.reason:
        events[-1] = replace(skipped, count=last.count + skipped.count)
    else:
        events.append(skipped)


def oversized_lines(count: int, thread: str, at: float) -> LineSkipped:
    """Return the event of lines that were left out before the reader of the log."""
    return LineSkipped(at=at, thread=thread, what="oversized", detail="longer than is read", count=count)
