"""Codex's log database (`logs_N.sqlite`): sandbox violations and retried requests, which are recorded nowhere
else.

Written by the TUI and its server: retries since 0.138, violations since 0.148; `codex exec` leaves it empty.
0.169 writes its rows in batches, up to ten seconds late. Opened read-only, for one short query, and only when
the file or its write-ahead log has changed.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agentdash.agents.sqlite_files import database_stamp, open_database
from agentdash.model.events import Event, SourceSeen, TroubleLogged, ViolationLogged
from agentdash.model.sanitize import clean_line
from agentdash.model.times import possible_time

NAME: Final = "codex log"
"""The name under which its health is reported."""
_VIOLATION_TARGET: Final = "codex_sandboxing::violation"
_RETRY_TARGET: Final = "codex_core::responses_retry"
_MAX_ROWS_SEARCHED: Final = 20_000
"""The newest rows of all targets: the table has no index on targets, and Codex writes thousands of rows in an
hour."""
_MAX_TEXT_CHARS: Final = 400
_QUERY: Final = (
    "SELECT id, ts, ts_nanos, target, thread_id, substr(feedback_log_body, -4000) FROM logs"
    " WHERE id > max(?, (SELECT max(id) FROM logs) - ?) AND target IN (?, ?) ORDER BY id"
)
_MESSAGE: Final = re.compile(r"recorded sandbox violation: (.*)\Z", re.DOTALL)
_FIELD: Final = re.compile(
    r"\b(resource|backend|reason|path|host)="
    r"(\"(?:[^\"\\]|\\.)*\"|.*?)(?=\s(?:resource|backend|reason|path|host)=|\Z)",
    re.DOTALL,
)
_CALL: Final = re.compile(r'\bcall_id="?([\w.:-]+)')
_THREAD: Final = re.compile(r"\bthread[._]id=([0-9a-f-]{36})\b")
_SPANS: Final = re.compile(r"\A.*?\}(?::[\w.]+)*: ", re.DOTALL)
"""The spans before the message: `turn{...}:run_turn{...}: `."""


_Row = tuple[Any, int, int, str, str | None, str | None]


def log_file(root: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the newest generation of the log, `logs_N.sqlite`, in `CODEX_SQLITE_HOME` or the home, or None.
    The first one (0.114) has other columns."""
    folders = [Path(named)] if (named := environ.get("CODEX_SQLITE_HOME")) else []
    for folder in (*folders, root):
        try:
            found = [
                (int(m[1]), folder / name)
                for name in os.listdir(folder)  # noqa: PTH208 - names are what is needed
                if (m := re.fullmatch(r"logs_([2-9]|\d\d+)\.sqlite", name))
            ]
        except OSError:
            continue
        if found:
            return max(found)[1]
    return None


class CodexLog:
    """Reads new rows of the log of one home."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._file: Path | None = None
        self._stamp: tuple[int, ...] = (0,)
        """Of the file and its write-ahead log, when read last; the inode first."""
        self._last = 0
        """Id of the newest row that was read."""
        self._malformed = 0
        """Number of rows that could not be parsed."""
        self._healthy = True
        """Whether the last poll found nothing wrong."""

    @property
    def has_changed(self) -> bool:
        """Whether the log was written to since the last poll; costs two system calls."""
        file = log_file(self._root)
        return file is not None and database_stamp(file) != self._stamp

    def poll(self, at: float) -> list[Event]:
        """Return the violations and retries logged since the last poll, and a `SourceSeen` where the log's
        health changed.

        Args:
            at: now, unix seconds; the time of `SourceSeen`. Other events have the time of their rows.
        """
        file = log_file(self._root)
        if file is None or (stamp := database_stamp(file)) == self._stamp:
            return []
        if file != self._file or stamp[0] != self._stamp[0]:
            self._last = 0  # another generation, or a replaced file
        try:
            rows = _read(file, self._last)
        except sqlite3.Error as error:  # locked, torn, or another schema: reported, and retried
            self._healthy = False
            return [SourceSeen(at=at, name=NAME, ok=False, detail=clean_line(f"{file.name}: {error}", 200))]
        self._file = file
        self._stamp = stamp
        self._last = max((row[0] for row in rows if isinstance(row[0], int)), default=self._last)
        parsed = [_event(row) for row in rows]
        events: list[Event] = [event for event in parsed if event is not None]
        self._malformed += len(parsed) - len(events)
        if self._malformed or not self._healthy:
            self._healthy = not self._malformed
            detail = f"{file.name}: {self._malformed} rows not understood" if self._malformed else file.name
            events.append(SourceSeen(at=at, name=NAME, ok=self._healthy, detail=detail))
        return events


def _read(file: Path, after: int) -> list[_Row]:
    """Return the new rows, in the order in which they were written.

    Raises:
        sqlite3.Error: the database cannot be read, or has other tables.
    """
    database = open_database(file)
    try:
        wanted = (after, _MAX_ROWS_SEARCHED, _VIOLATION_TARGET, _RETRY_TARGET)
        return database.execute(_QUERY, wanted).fetchall()
    finally:
        database.close()


def _event(row: _Row) -> Event | None:
    """Return the event of a row, or None if it cannot be parsed."""
    _, seconds, nanos, target, thread, body = row
    if not isinstance(body, str) or not all(isinstance(number, int) for number in (seconds, nanos)):
        return None
    if thread is None and (named := _THREAD.search(body)) is not None:
        thread = named[1]
    at = possible_time(seconds + nanos / 1e9)
    if at is None or not isinstance(thread, str):
        return None
    thread = clean_line(thread)
    if target != _VIOLATION_TARGET:
        return TroubleLogged(at=at, thread=thread, text=clean_line(_SPANS.sub("", body), _MAX_TEXT_CHARS))
    if (message := _MESSAGE.search(body)) is None:
        return None
    named_values = ((name, clean_line(value.strip('"'))) for name, value in _FIELD.findall(message[1]))
    fields = {name: value for name, value in named_values if value not in ("", "unknown")}
    resource = fields.get("resource")
    if resource not in ("filesystem", "network"):
        return None
    calls = _CALL.findall(body[: message.start()])
    return ViolationLogged(
        at=at,
        thread=thread,
        call=clean_line(calls[-1]) if calls else None,
        resource=resource,  # type: ignore[arg-type]
        reason=fields.get("reason", ""),
        path=fields.get("path"),
        host=fields.get("host"),
    )
