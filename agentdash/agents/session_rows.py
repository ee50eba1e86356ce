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
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Final

import msgspec

from agentdash.agents.sqlite_files import database_stamp, open_database
from agentdash.files import open_stream
from agentdash.model.decoders import decoded, field
from agentdash.model.state_paths import resolve_path
from agentdash.model.times import iso, possible_time

_AGENTS: Final = ("opencode", "kilo")
DATABASES: Final = tuple(f"{agent}.db" for agent in _AGENTS)
LOGS: Final = {agent: re.compile(rf"(?:.*/)?{agent}\.db/(ses_\w{{1,100}})", re.ASCII) for agent in _AGENTS}
"""The paths of sessions, with their ids, by worker CLI."""
_SESSION: Final = "SELECT directory, version, parent_id, time_created, time_updated FROM session WHERE id = ?"
_MESSAGES: Final = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS: Final = "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id"
_MAX_BYTES: Final = 256 << 20
"""Of a session: a week of work has a few MB."""


def own_sessions(on_error: Callable[[OSError], None]) -> Iterator[tuple[float, Path]]:
    """Yield when each session of this user was changed (unix seconds), and its path.

    Args:
        on_error: called with the error, which has a `filename`, of each database that cannot be read.
    """
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
    with _reading(database) as reading:
        rows = reading.execute("SELECT time_updated, id FROM session").fetchall()
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
    with _reading(path.parent) as database:
        row = database.execute(_SESSION, (path.name,)).fetchone()
        if row is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        begun = _seconds(row["time_created"]) or 0.0
        head = {
            "type": "session",
            "cwd": row["directory"],
            "version": row["version"],
            "parent": row["parent_id"],
        }
        dated = [(begun, _line(begun, head))]
        size = 0
        for at, record in _records(database, path.name):
            dated.append((seconds := _seconds(at) or begun, _line(seconds, record)))
            size += len(dated[-1][1])
            if size > _MAX_BYTES:
                raise OSError(errno.EFBIG, f"larger than {_MAX_BYTES >> 20} MB", str(path))
    dated.sort(key=lambda each: each[0])
    return b"".join(line for _, line in dated), _seconds(row["time_updated"]) or begun


def _line(at: float, record: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"timestamp": iso(at), **record}) + b"\n"


@contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for the block, whose errors are raised as `OSError`."""
    try:
        with closing(open_database(file)) as database:
            database.row_factory = sqlite3.Row
            yield database
    except (sqlite3.Error, LookupError) as error:  # other tables, or without a column
        raise OSError(errno.EIO, str(error), str(file)) from error


def _records(database: sqlite3.Connection, session: str) -> Iterator[tuple[object, dict[str, Any]]]:
    """Yield time (unix milliseconds) and content of the lines of a session."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in database.execute(_PARTS, (session,)):
        parts.setdefault(row["message_id"], []).append(decoded(row["data"]))
    for row in database.execute(_MESSAGES, (session,)):
        message = decoded(row["data"])
        own = parts.get(row["id"], [])
        if message.get("role") == "assistant":
            yield from _answer(message, own)
        elif texts := [str(each.get("text")) for each in own if _is_written(each)]:
            yield (
                row["time_created"],
                {"type": "prompt", "text": " ".join(texts), "model": message.get("model")},
            )


def _is_written(part: dict[str, Any]) -> bool:
    """Return whether a part of a prompt is a text of the user."""
    return part.get("type") == "text" and not part.get("synthetic")


def _answer(message: dict[str, Any], parts: list[dict[str, Any]]) -> Iterator[tuple[object, dict[str, Any]]]:
    """Yield the lines of a message of the model."""
    completed = field(message, "time").get("completed")
    for part in parts:
        kind, state = part.get("type"), field(part, "state")
        begun, ended = (field(state or part, "time").get(name) for name in ("start", "end"))
        if kind in ("text", "reasoning") and (ended or completed):
            yield ended or completed, {"type": kind, "text": part.get("text")}
        elif kind == "tool" and begun:
            call = {"call": part.get("callID"), "tool": part.get("tool")}
            yield begun, {"type": "call", **call, "input": state.get("input")}
            if ended:
                result = {name: state.get(name) for name in ("status", "output", "error", "metadata")}
                yield ended, {"type": "result", **call, **result}
    if completed:
        yield completed, {"type": "answer", **message}


def _seconds(value: object) -> float | None:
    return possible_time(value / 1000) if isinstance(value, (int, float)) else None
