"""Read a past session log whole, for audits and the library. Calls that show nothing are only counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from agentdash.agents.codex.home import open_lines
from agentdash.agents.codex.rollout.sparse_reader import SparseReader, Suspicion
from agentdash.agents.session_logs import SessionLog, rollout_reader
from agentdash.engine.detect import HINTS, may_show_denial, may_show_sandbox
from agentdash.engine.reduce.denial_ledger import words_of_past
from agentdash.engine.reduce.fleet import reduce, reduce_log
from agentdash.model.events import FileSeen
from agentdash.model.fleet import Fleet
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread

_BATCH_LINES: Final = 2_000
"""Lines held in memory at a time."""
_SUSPICION: Final = Suspicion(HINTS, may_show_sandbox, may_show_denial)


def read_whole(log: SessionLog, seen: FileSeen) -> tuple[Fleet, str | None]:
    """Return what a log has, as far as it can be read, and why it ends there.

    Args:
        seen: the file.
    """
    failures: list[OSError] = []
    read = _read_transcript if log.agent == "claude" else _read_rollout
    fleet, at = read(log, seen, _lines(log, failures))
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


def _read_rollout(log: SessionLog, seen: FileSeen, lines: Iterator[bytes]) -> tuple[Fleet, float]:
    """Return the fleet of a rollout, and the time of its last line."""
    reader = SparseReader(rollout_reader(log.thread, log.path), _SUSPICION)
    thread = reduce_log(Thread(log.thread), [seen])
    number = 1
    while batch := list(islice(lines, _BATCH_LINES)):
        for events in reader.read(batch, number):
            thread = reduce_log(thread, events)
            # an output may show the platform; any call may matter until one has
            reader.watched = None if thread.platform is None else words_of_past(thread)
        number += len(batch)
    return Fleet(threads={thread.id: thread}), reader.at


def _read_transcript(log: SessionLog, seen: FileSeen, lines: Iterator[bytes]) -> tuple[Fleet, float]:
    """Return the fleet of a transcript of Claude Code, and the time of its last line."""
    reader = log.reader()
    fleet = reduce(Fleet(), [seen])
    number = 1
    while batch := list(islice(lines, _BATCH_LINES)):
        fleet = reduce(fleet, reader.read(batch, number))
        number += len(batch)
    return fleet, reader.at
