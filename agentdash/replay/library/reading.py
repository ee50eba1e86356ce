"""Read session logs for the library: whole ones, or head and tail of large ones."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from agentdash.agents.line_events import oversized_lines
from agentdash.agents.session_logs import LogReader, line_marks, reader_of_log
from agentdash.collect.tail.log_file import FileGrown, FileUnreadable, LogFile, ReadLimits
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.events import Event, FileGapSkipped, FileSeen
from agentdash.model.fleet import Fleet
from agentdash.model.limits import MAX_LINE_BYTES, READ_BLOCK_BYTES
from agentdash.model.sanitize import clean_line


class Reading(NamedTuple):
    """What was read of a file."""

    fleet: Fleet
    skimmed: bool
    size: int
    """Bytes on disk."""
    problem: str | None
    """Why it could not be read, or not to its end."""


def read_log(path: Path, thread: str, skim_above: int | None) -> Reading:
    """Return what a file has of a thread; of one larger than `skim_above` bytes its head and tail."""
    fleet = Fleet()
    skimmed = False
    size = 0
    trouble: str | None = None
    reader = reader_of_log(path, thread)
    has_gap = False
    limits = ReadLimits(skim_above, MAX_LINE_BYTES, READ_BLOCK_BYTES, line_marks(path))
    try:
        for change in LogFile(str(path), limits).read():
            if isinstance(change, FileGrown):
                begins_gap = change.skimmed and change.first == 0 and not has_gap
                has_gap = has_gap or begins_gap
                fleet = reduce(fleet, _events(thread, change, reader, begins_gap=begins_gap))
                skimmed = change.skimmed
                size = change.size
            elif isinstance(change, FileUnreadable):
                trouble = change.reason
    except OSError as error:
        trouble = clean_line(error.strerror or str(error))
    if trouble is not None:
        place = clean_line(str(path))
        at = reader.at
        seen = FileSeen(at=at, thread=thread, path=place, size=size, modified=at, unreadable=trouble)
        fleet = reduce(fleet, [seen])
    return Reading(fleet=fleet, skimmed=skimmed, size=size, problem=trouble)


def _events(thread: str, grown: FileGrown, reader: LogReader, *, begins_gap: bool) -> list[Event]:
    at = grown.modified
    seen = FileSeen(
        at=at,
        thread=thread,
        path=clean_line(str(grown.path)),
        size=grown.size,
        modified=at,
        skimmed=grown.skimmed,
    )
    gap = [FileGapSkipped(at=at, thread=thread, same_turn=grown.same_turn)] if begins_gap else []
    oversized = [oversized_lines(grown.oversized, thread, at)] if grown.oversized else []
    return [seen, *gap, *oversized, *reader.read(grown.lines, grown.first)]
