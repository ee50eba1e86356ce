"""Past sessions of OpenCode and Kilo, rows of a database, as logs: `DATABASE/SESSION` has JSON lines.

Their rows are rewritten while a message grows. A line is made of what is final, with the time of that: so a
log only grows, as a file does.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Final

import msgspec

from agentdash.agents.sqlite_files import database_stamp, open_database
from agentdash.files import OnError, open_stream
from agentdash.model.decoders import decoded, field
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.state_paths import resolve_path
from agentdash.model.times import iso, possible_time

_AGENTS: Final = ("opencode", "kilo")
DATABASES: Final = tuple(f"{agent}.db" for agent in _AGENTS)
LOGS: Final = {agent: re.compile(rf"(?:.*/)?{agent}\.db/(ses_\w{{1,100}})", re.ASCII) for agent in _AGENTS}
"""The paths of sessions, with their ids, by worker CLI."""
_SESSION: Final = "SELECT directory, version, parent_id, time_created, time_updated FROM session WHERE id = ?"
_MESSAGES: Final = (
    "SELECT id, time_created, coalesce(substr(data, 1, ?3), '') AS data FROM message WHERE session_id = ?1"
    " ORDER BY time_created DESC, id DESC LIMIT ?2"
)
_PARTS: Final = "SELECT coalesce(substr(data, 1, ?2), '') AS data FROM part WHERE message_id = ?1 ORDER BY id"
_MAX_BYTES: Final = 256 << 20
"""Of a session: a week of work has a few MB."""


def own_sessions(on_error: OnError) -> Iterator[tuple[float, Path]]:
    """Yield when each session of this user was changed (unix seconds), and its path."""
    for agent, name in zip(_AGENTS, DATABASES, strict=True):
        place = Path(resolve_path(f"$XDG_DATA_HOME/{agent}/{name}", os.environ) or "/")
        try:
            yield from sessions_in(place) if place.is_file() else ()
        except OSError as error:
            on_error(error)


def sessions_in(database: Path) -> list[tuple[float, Path]]:
    """Return when each session of a database was changed (unix seconds), and its path.

    Raises:
        OSError: the database cannot be read.
    """
    with reading(database) as rows_of:
        rows = rows_of.execute("SELECT time_updated, id FROM session").fetchall()
    logs = ((_seconds(changed) or 0.0, database / str(name)) for changed, name in rows)
    return [(changed, path) for changed, path in logs if is_row(path)]


def open_log(path: Path, buffering: int = -1) -> BinaryIO:
    """Return a session log, opened for reading: a regular file, or a session of a database.

    Args:
        buffering: bytes that are read of a file at once; -1: few.

    Raises:
        OSError: it cannot be read.
    """
    return open_stream(path, buffering) if not is_row(path) else io.BytesIO(_content(path)[0])


def log_stat(path: Path) -> os.stat_result:
    """Return size and times of a session log; of a session of a database with its own size and last change.

    Raises:
        OSError: it cannot be read.
    """
    if not is_row(path):
        return path.stat()
    content, changed = _content(path)
    mode, inode, device, links, user, group, *_ = path.parent.stat()
    return os.stat_result((mode, inode, device, links, user, group, len(content), changed, changed, changed))


def written_at(logs: Iterable[Path]) -> float:
    """Return when the last of session logs was written (unix seconds); 0 where none can be read."""
    written = 0.0
    for log in logs:
        with suppress(OSError):
            written = max(written, log_stat(log).st_mtime)
    return written


def is_row(path: PurePath) -> bool:
    """Return whether a path is that of a session of a database."""
    return path.parent.name in DATABASES and any(log.fullmatch(str(path)) for log in LOGS.values())


def _content(path: Path) -> tuple[bytes, float]:
    return _read(path, database_stamp(path.parent))


@lru_cache(maxsize=2)
def _read(path: Path, _stamp: object) -> tuple[bytes, float]:
    """Return the lines of a session, and when it was changed (unix seconds)."""
    with reading(path.parent) as database:
        row = database.execute(_SESSION, (path.name,)).fetchone()
        if row is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        head = {
            "type": "session",
            "cwd": row["directory"],
            "version": row["version"],
            "parent": row["parent_id"],
        }
        dated = [_dated(row["time_created"], head), *records(database, path.name)]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in dated), _seconds(row["time_updated"]) or 0.0


@contextmanager
def reading(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for the block, whose errors are raised as `OSError`."""
    try:
        with closing(open_database(file)) as database:
            database.row_factory = sqlite3.Row
            yield database
    except (sqlite3.Error, LookupError) as error:  # other tables, or without a column
        raise OSError(errno.EIO, str(error), str(file)) from error


def records(
    database: sqlite3.Connection, session: str, messages: int = -1, chars: int = MAX_LINE_BYTES
) -> list[dict[str, Any]]:
    """Return the lines of a session.

    Args:
        messages: so many of the newest ones are read; -1: all.
        chars: of a row; a longer one is left out.

    Raises:
        sqlite3.Error: the database cannot be read, or has other tables.
        OSError: the session is too large.
    """
    found: list[dict[str, Any]] = []
    size = 0
    for row in database.execute(_MESSAGES, (session, messages, chars)).fetchall()[::-1]:
        parts = [part["data"] for part in database.execute(_PARTS, (row["id"], chars))]
        size += len(row["data"]) + sum(map(len, parts))
        if size > _MAX_BYTES:
            raise OSError(errno.EFBIG, f"larger than {_MAX_BYTES >> 20} MB", session)
        found += _lines(row["time_created"], decoded(row["data"]), [decoded(part) for part in parts])
    return sorted(found, key=lambda line: line["timestamp"])


def _lines(created: object, message: dict[str, Any], parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a message."""
    if message.get("role") != "assistant":
        if texts := [str(part.get("text")) for part in parts if _is_written(part)]:
            said = {"type": "prompt", "text": " ".join(texts), "model": message.get("model")}
            yield _dated(created, said)
        return
    completed = field(message, "time").get("completed")
    for part in parts:
        kind, state = part.get("type"), field(part, "state")
        begun, ended = (field(state or part, "time").get(name) for name in ("start", "end"))
        if kind in ("text", "reasoning") and (ended or completed):
            yield _dated(ended or completed, {"type": kind, "text": part.get("text")})
        elif kind == "tool" and begun:
            call = {"call": part.get("callID"), "tool": part.get("tool")}
            yield _dated(begun, {"type": "call", **call, "input": state.get("input")})
            if ended:
                result = {name: state.get(name) for name in ("status", "output", "error", "metadata")}
                yield _dated(ended, {"type": "result", **call, **result})
    if completed:
        yield _dated(completed, {"type": "answer", **message})


def _is_written(part: dict[str, Any]) -> bool:
    """Return whether a part of a prompt is a text of the user."""
    return part.get("type") == "text" and not part.get("synthetic")


def _dated(at: object, record: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": iso(_seconds(at)) or "", **record}


def _seconds(value: object) -> float | None:
    """Return a time of a record, in milliseconds, as unix seconds."""
    return possible_time(value / 1000) if isinstance(value, (int, float)) else None
