"""The adapter of OpenCode: its sessions, and its permission rules."""

from __future__ import annotations

import os
import posixpath
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from agentdash.agents.adapter import Adapter, RequestReader, UnreadableSessionError
from agentdash.agents.chat_files import is_same_place
from agentdash.agents.settings_files import SettingsFile, SettingsReader, dated
from agentdash.agents.sqlite_files import FileStamp, database_stamp, open_database
from agentdash.model.chat import Chat
from agentdash.model.events import SessionSeen
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.process import Process, ProcessKey
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line
from agentdash.model.state_paths import resolve_path
from agentdash.model.thread import Thread
from agentdash.model.times import possible_time
from agentdash.model.tokens import ModelUsage, TokenUsage

_INTERVAL_S: Final = 0.5
"""Between two readings for one process."""
_MAX_TEXT_CHARS: Final = 200
_CLOCK_TOLERANCE_MS: Final = 1_000
_NEWEST: Final = 12
"""Messages that are read, in which the newest tool is looked for."""
_BY_ID: Final = "SELECT * FROM session WHERE id = ?"
_BY_DIRECTORY: Final = (
    "SELECT * FROM session WHERE directory = ? AND parent_id IS NULL AND time_updated >= ? LIMIT 2"
)
_MESSAGES: Final = (
    "SELECT id, substr(data, 1, 100000) FROM message WHERE session_id = ?"
    " ORDER BY time_created DESC, id DESC LIMIT 12"
)
_PARTS: Final = (
    f"SELECT substr(data, 1, 100000) FROM part WHERE message_id IN ({', '.join('?' * _NEWEST)})"  # noqa: S608
    " ORDER BY id DESC LIMIT 60"
)
_OBJECTS: Final = ("command", "filePath", "path", "pattern", "url", "description")
"""Arguments of tools that say what they are called for, the most telling first."""
_any: Final = msgspec.json.Decoder(dict[str, Any])


class _Followed:
    """The session of one process, as read last."""

    def __init__(self) -> None:
        self.read_at = 0.0
        self.stamp = (FileStamp(), FileStamp())
        self.seen: SessionSeen | None = None
        self.failure: str | None = None
        """Why it cannot be read."""


class OpencodeSessions:
    """Reads the sessions of running OpenCodes.

    Args:
        place: of the database.
    """

    def __init__(self, place: str = "$XDG_DATA_HOME/opencode/opencode.db") -> None:
        self._place = place
        self._followed: dict[ProcessKey, _Followed] = {}

    def read(self, process: Process, at: float, *, is_alone: bool = True) -> SessionSeen | None:
        """Return what the database has of a process's session; None where none is certainly its own.

        Raises:
            UnreadableSessionError: the database is locked, torn, or of another schema.
        """
        if not is_alone:
            return None
        followed = self._followed.setdefault(process.key, _Followed())
        if not 0.0 <= at - followed.read_at < _INTERVAL_S:
            followed.read_at = at
            self._update(followed, process, at)
            self._forget(at)
        if followed.failure is not None:
            raise UnreadableSessionError(followed.failure)
        return followed.seen

    def _update(self, followed: _Followed, process: Process, at: float) -> None:
        """Read the session of a process where the database has changed."""
        file = _database(process, self._place)
        stamp = (FileStamp(), FileStamp()) if file is None else database_stamp(file)
        if stamp == followed.stamp:
            return
        followed.failure = None
        try:
            followed.seen = None if file is None else _read(file, process, at)
        except (sqlite3.Error, ValueError, LookupError) as error:
            followed.failure = f"{file}: {error}"
        else:
            followed.stamp = stamp

    def _forget(self, at: float) -> None:
        old = [key for key, each in self._followed.items() if at - each.read_at > 60 * _INTERVAL_S]
        for key in old:
            del self._followed[key]


def _database(process: Process, place: str) -> Path | None:
    """Return the place of a process's database; None where it is not there."""
    where = resolve_path(place, process.env or {}, process.cwd)
    if process.env is None or where is None:
        return None
    if not os.path.exists(where):  # noqa: PTH110 - never raises
        return None
    return Path(where) if is_same_place(process, Path(where)) else None


def _read(file: Path, process: Process, at: float) -> SessionSeen | None:
    with closing(open_database(file)) as database:
        return _session(database, process, at)


def _session(database: sqlite3.Connection, process: Process, at: float) -> SessionSeen | None:
    """Return the session of a process.

    Raises:
        sqlite3.Error: the database cannot be read, or has other tables.
        LookupError: the sessions lack a column.
        ValueError: a record is malformed.
    """
    database.row_factory = sqlite3.Row
    row, by = _row(database, process)
    if row is None:
        return None
    ident = clean_line(str(row["id"]), 80)
    found = database.execute(_MESSAGES, (row["id"],)).fetchall()
    idents = [each[0] for each in found]
    parts = database.execute(_PARTS, (*idents, *[""] * (_NEWEST - len(idents)))).fetchall()
    tools = (part for each in parts if (part := _decoded(each[0])).get("type") == "tool")
    chat = _chat(row, by, [_decoded(each[1]) for each in found], next(tools, {}))
    return SessionSeen(
        at=at,
        key=process.key,
        agent=process.agent or "",
        status=None,
        since=chat.since or process.key.started,
        session=ident,
        chat=chat,
    )


def _row(database: sqlite3.Connection, process: Process) -> tuple[sqlite3.Row | None, str]:
    """Return the session of a process, and how it was found: by its arguments, or as the only one."""
    for at, word in enumerate(process.argv[:-1]):
        if word in ("-s", "--session"):
            named = process.argv[at + 1]
            return database.execute(_BY_ID, (named,)).fetchone(), f"its arguments name {named}"
    since = int(process.key.started * 1000) - _CLOCK_TOLERANCE_MS
    rows = database.execute(_BY_DIRECTORY, (process.cwd, since)).fetchall()
    by = "the only session of its directory that was changed since it began"
    return (rows[0] if len(rows) == 1 else None), by


def _chat(row: sqlite3.Row, by: str, messages: list[dict[str, Any]], tool: dict[str, Any]) -> Chat:
    answer = next((each for each in messages if each.get("role") == "assistant"), {})
    model = clean_line(str(answer.get("modelID") or "")) or None
    turn, since, why = _turn(messages)
    usage = TokenUsage(
        input=_count(row, "tokens_input"),
        cached=_count(row, "tokens_cache_read"),
        cache_writes=_count(row, "tokens_cache_write"),
        output=_count(row, "tokens_output") + _count(row, "tokens_reasoning"),
        reasoning=_count(row, "tokens_reasoning"),
    )
    return Chat(
        by=by,
        name=clean_line(str(row["title"] or ""), _MAX_TEXT_CHARS) or None,
        model=model,
        total=usage.total or None,
        by_model=(ModelUsage(model=model, usage=usage),) if usage.total else (),
        context=_context(messages),
        tool=_tool_words(tool),
        turn=turn,
        since=since,
        why=why,
    )


def _count(row: sqlite3.Row, column: str) -> int:
    value = row[column] if column in row.keys() else 0  # noqa: SIM118 - a row is no mapping
    return value if isinstance(value, int) and value >= 0 else 0


def _turn(messages: list[dict[str, Any]]) -> tuple[Any, float | None, str]:
    """Return where the newest turn is, since when, and the error of a failed one."""
    if not messages:
        return None, None, ""
    newest = messages[0]
    times = newest.get("time")
    times = times if isinstance(times, dict) else {}
    created = _seconds(times.get("created"))
    error = newest.get("error")
    if newest.get("role") != "assistant":
        return "open", created, ""
    if isinstance(error, dict):
        if error.get("name") == "MessageAbortedError":
            return "interrupted", _seconds(times.get("completed")) or created, ""
        data = error.get("data")
        text = (data.get("message") if isinstance(data, dict) else None) or error.get("name") or "an error"
        return "failed", _seconds(times.get("completed")) or created, clean_line(str(text), _MAX_TEXT_CHARS)
    if times.get("completed") is None or newest.get("finish") in (None, "tool-calls", "unknown"):
        return "open", created, ""
    return "ended", _seconds(times.get("completed")), ""


def _context(messages: list[dict[str, Any]]) -> int | None:
    """Return the tokens that the newest request was given."""
    for each in messages:
        tokens = each.get("tokens")
        if isinstance(tokens, dict) and isinstance(tokens.get("input"), int) and tokens["input"] > 0:
            cache = tokens.get("cache")
            cached = cache.values() if isinstance(cache, dict) else ()
            return int(tokens["input"]) + sum(value for value in cached if isinstance(value, int))
    return None


def _tool_words(part: dict[str, Any]) -> str | None:
    if not part:
        return None
    state = part.get("state")
    given = state.get("input") if isinstance(state, dict) else None
    values = given if isinstance(given, dict) else {}
    object_ = next((values[key] for key in _OBJECTS if isinstance(values.get(key), str)), "")
    return clean_line(f"{part.get('tool')}: {object_}" if object_ else str(part.get("tool")), _MAX_TEXT_CHARS)


def _decoded(text: object) -> dict[str, Any]:
    """Parse a record; one that was cut off is empty."""
    try:
        return _any.decode(text if isinstance(text, str) else "{}")
    except (msgspec.DecodeError, RecursionError):
        return {}


def _seconds(value: object) -> float | None:
    return possible_time(value / 1000) if isinstance(value, (int, float)) else None


_MAX_PARENTS: Final = 40
_CLOCK_TOLERANCE_S: Final = 1.0
"""A file that was written so shortly after a process began was read by it, too."""
_GLOBAL_NAMES: Final = ("config.json", "opencode.json", "opencode.jsonc")
_PROJECT_NAMES: Final = ("opencode.json", "opencode.jsonc")
_ACTIONS: Final = ("allow", "ask", "deny")
_AUTO: Final = "--auto"
"""Allows what no rule denies."""


class _Config(msgspec.Struct):
    permission: Any = None


_CONFIG: Final = SettingsReader(_Config, allows_comments=True)
_File = SettingsFile[_Config]


def _rules(file: _File) -> dict[str, Any]:
    """Return the rules in a file: `{"bash": "ask"}`, `{"bash": {"git *": "allow"}}`."""
    permission = file.settings.permission
    if isinstance(permission, str):
        return {"*": permission}
    return dict(permission) if isinstance(permission, dict) else {}


class OpencodeRequests(RequestReader):
    """What an `opencode` process was asked for."""

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return the rules in force for a process; None where its environment cannot be read."""
        del thread
        if process.env is None or not process.cwd:
            return None
        sources = list(rules_sources(process.env, process.cwd, root))
        found = requested(process.argv, sources)
        started = process.key.started
        found = dated(found, started, at, started + _CLOCK_TOLERANCE_S)
        return msgspec.structs.replace(found, is_fixed=process.once)


def requested(argv: Sequence[str], sources: Sequence[_File]) -> Requested:
    """Return what arguments and rules ask for.

    Args:
        sources: the places that set rules, the weakest first.
    """
    text = "OpenCode has no sandbox: permissions are questions, no walls"
    origins = [RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.DEFAULT, text=text)]
    approval: str | None = None
    if not any(source.problem for source in sources):
        approval = rules_in_words(merged(sources))
        for source in reversed(sources):
            if rules := _rules(source):
                words = f'"permission": {msgspec.json.encode(rules).decode()}'
                origins.append(source.origin(RequestField.APPROVAL, words, "permission"))
    if _AUTO in argv[: argv.index("--")] if "--" in argv else _AUTO in argv:
        approval = f"{_AUTO}, {approval}" if approval else _AUTO
        typed = RequestOrigin(field=RequestField.APPROVAL, layer=RequestLayer.ARGV, text=_AUTO)
        origins.insert(1, typed)
    policy = Policy(Filesystem.UNRESTRICTED, Network.ON, approval=approval, enforced_by="nobody")
    return Requested(
        policy=policy,
        origins=tuple(origins),
        files_written=max((source.modified for source in sources), default=None),
        scope="worker",
    )


def merged(sources: Sequence[_File]) -> dict[str, Any]:
    """Return the rules of all places: of the same key the later one counts, patterns are joined."""
    rules: dict[str, Any] = {}
    for source in sources:
        for name, value in _rules(source).items():
            before = rules.get(name)
            if isinstance(before, dict) and isinstance(value, dict):
                rules[name] = before | value
            else:
                rules[name] = value
    return rules


def rules_in_words(rules: Mapping[str, Any]) -> str | None:
    """Return rules on one line: `bash ask, edit deny`; those with patterns by their number. None without
    rules."""
    words = []
    for name, value in sorted(rules.items()):
        if value in _ACTIONS:
            words.append(f"{clean_line(name, 40)} {value}")
        elif isinstance(value, dict):
            words.append(f"{clean_line(name, 40)} by {len(value)} pattern{'s' * (len(value) != 1)}")
    return ", ".join(words) or None


# ---------------------------------------------------------------- places


def rules_sources(env: Mapping[str, str], cwd: str, root: Path) -> Iterator[_File]:
    """Yield the places that are there, the weakest first.

    Args:
        root: where its file system is mounted.
    """
    config = env.get("XDG_CONFIG_HOME") or posixpath.join(env.get("HOME", "/"), ".config")
    for name in _GLOBAL_NAMES:
        yield from _CONFIG.read(RequestLayer.USER, posixpath.join(config, "opencode", name), root)
    if named := env.get("OPENCODE_CONFIG"):
        yield from _CONFIG.read(RequestLayer.ENVIRONMENT, posixpath.join(cwd, named), root)
    directories = _project_directories(cwd, root)
    for directory in directories:
        for name in _PROJECT_NAMES:
            yield from _CONFIG.read(RequestLayer.PROJECT, posixpath.join(directory, name), root)
    for directory in directories:
        for name in _PROJECT_NAMES:
            yield from _CONFIG.read(RequestLayer.PROJECT, posixpath.join(directory, ".opencode", name), root)
    if content := env.get("OPENCODE_CONFIG_CONTENT"):
        yield _CONFIG.parse(RequestLayer.ENVIRONMENT, content)
    if content := env.get("OPENCODE_PERMISSION"):
        yield _CONFIG.parse(RequestLayer.ENVIRONMENT, f'{{"permission": {content}}}')


def _project_directories(cwd: str, root: Path) -> list[str]:
    """Return the directories from the root of the repository down to the working directory."""
    found: list[str] = []
    directory = cwd
    for _ in range(_MAX_PARENTS):
        found.insert(0, directory)
        try:
            is_top = (root / directory.lstrip("/") / ".git").exists()
        except (OSError, ValueError):
            is_top = True
        above = posixpath.dirname(directory)
        if is_top or above == directory:
            return found
        directory = above
    return found


class OpencodeAdapter(Adapter):
    """OpenCode."""

    session_files = OpencodeSessions()
    request_reader = OpencodeRequests()


ADAPTER = OpencodeAdapter
