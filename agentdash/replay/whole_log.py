"""Read a past session log whole, for audits and the library."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from agentdash.agents.codex.home import open_lines
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
    fleet, at = _read(log, seen, _lines(log, failures))
    if not failures:
        return fleet, None
    problem = clean_line(failures[0].strerror or str(failures[0]))
    return reduce(fleet, [replace(seen, at=at, modified=at, unreadable=problem)]), problem


def _lines(log: SessionLog, failures: list[OSError]) -> Iterator[bytes]:
    """Yield the lines of a log as far as it can be read; then add why it ends there."""
    try:
        yield from open_lines(log.path)
    except OSError as error:
        failures.append(error)


def _read(log: SessionLog, seen: FileSeen, lines: Iterator[bytes]) -> tuple[Fleet, float]:
    """Return the fleet of a log, and the time of its last line."""
    reader = log.reader()
    thread = reduce_log(Thread(log.thread, agent=log.agent), [seen])
    number = 1
    while batch := list(islice(lines, _BATCH_LINES)):
        thread = reduce_log(thread, reader.read(batch, number))
        number += len(batch)
    return Fleet(threads={thread.id: thread}), reader.at
