"""Read a past session log whole, for audits and the library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from agentdash.agents.codex.home import open_lines
from agentdash.agents.line_events import LineEvents
from agentdash.agents.session_logs import SessionLog
from agentdash.engine.reduce.fleet import reduce, reduce_log
from agentdash.model.events import FileSeen
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread

_BATCH_LINES: Final = 2_000
"""Lines held in memory at a time."""


def read_whole(log: SessionLog, seen: FileSeen) -> tuple[Fleet, str | None]:
    """Return what a log has, as far as it can be read, and why it ends there.

    Args:
        seen: the file.
    """
    failures: list[OSError] = []
    reader, thread = log.reader(), reduce_log(Thread(log.thread, agent=log.agent), [seen])
    thread = reduce_lines(thread, reader, _lines(log, failures))
    fleet = Fleet(threads={thread.id: thread})
    if not failures:
        return fleet, None
    problem = clean_line(failures[0].strerror or str(failures[0]))
    return reduce(fleet, [replace(seen, at=reader.at, modified=reader.at, unreadable=problem)]), problem


def reduce_lines(thread: Thread, reader: LineEvents, lines: Iterable[bytes]) -> Thread:
    """Return a thread after the first lines of its log, in bounded memory."""
    left, number = iter(lines), 1
    while batch := list(islice(left, _BATCH_LINES)):
        thread = reduce_log(thread, reader.read(batch, number))
        number += len(batch)
    return thread


def _lines(log: SessionLog, failures: list[OSError]) -> Iterator[bytes]:
    """Yield the lines of a log as far as it can be read; then add why it ends there."""
    try:
        yield from open_lines(log.path)
    except OSError as error:
        failures.append(error)
