"""The adapter of OpenCode: its sessions. It has no sandbox: its permissions are questions."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

from agentdash.agents.adapter import Adapter, RequestReader, UnreadableSessionError
from agentdash.agents.chats import (
    ChatFacts,
    Chats,
    Followed,
    clean_text,
    is_same_place,
    seen_chat,
    token_counts,
)
from agentdash.agents.session_rows import reading, records
from agentdash.agents.settings_files import options, typed
from agentdash.agents.sqlite_files import database_stamp
from agentdash.model.decoders import decoded, field
from agentdash.model.events import Outcome, SessionSeen
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.process import Process
from agentdash.model.prompts import asked, without_context
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.state_paths import resolve_path
from agentdash.model.thread import Thread
from agentdash.model.tokens import ModelUsage, TokenUsage

_CLOCK_TOLERANCE_MS: Final = 1_000
_BY_ID: Final = "SELECT * FROM session WHERE id = ?"
_BY_DIRECTORY: Final = (
    "SELECT * FROM session WHERE directory = ? AND parent_id IS NULL AND time_updated >= ? LIMIT 2"
)
_NEWEST: Final = 12
"""Messages of a running session that are read."""
_MAX_ROW_CHARS: Final = 100_000
_PROMPT: Final = (
    "SELECT substr(data, 1, 100000) AS data FROM part WHERE message_id ="
    " (SELECT id FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT 1) ORDER BY id LIMIT 10"
)
_REFUSALS: Final[dict[str, Outcome]] = {
    "user rejected permission": "refused-by-user",
    "a rule which prevents you": "refused-by-policy",
}
"""Words of the error of a call that was not made (1.18)."""
_NEW_TITLE: Final = re.compile(r"(?:New|Child) session - \d")
"""Begins the title of a session that has no other one yet."""


class OpencodeSessions(Chats):
    """Reads the sessions of running OpenCodes.

    Args:
        place: of the database.
    """

    def __init__(self, place: str = "$XDG_DATA_HOME/opencode/opencode.db") -> None:
        super().__init__()
        self._place = place

    def _look(self, followed: Followed, process: Process, at: float, *, is_alone: bool) -> SessionSeen | None:
        file = _database(process, self._place) if is_alone else None
        if file is None:
            followed.stamp = None
            return None
        stamp = database_stamp(file)
        if stamp == followed.stamp:
            return followed.seen
        try:
            with reading(file) as database:
                found = _session(database, process, at)
        except OSError as error:
            raise UnreadableSessionError(f"{file}: {error.strerror}") from error
        followed.stamp = stamp
        return found


def _database(process: Process, place: str) -> Path | None:
    """Return the place of a process's database; None where it is not there."""
    where = resolve_path(place, process.env or {})
    if where is None or not os.path.exists(where):  # noqa: PTH110 - never raises
        return None
    return Path(where) if is_same_place(process, Path(where)) else None


def _session(database: sqlite3.Connection, process: Process, at: float) -> SessionSeen | None:
    """Return the session of a process.

    Raises:
        sqlite3.Error: the database cannot be read, or has other tables.
        LookupError: the sessions lack a column.
        OSError: the newest messages are too large.
    """
    row, by = _row(database, process)
    if row is None:
        return None
    facts = OpencodeFacts()
    for line in records(database, row["id"], _NEWEST, _MAX_ROW_CHARS):
        facts.add(line)
    title = str(row["title"] or "")
    if _NEW_TITLE.match(title):
        parts = [decoded(part["data"]) for part in database.execute(_PROMPT, (row["id"],))]
        own = (part for part in parts if part.get("type") == "text" and not part.get("synthetic"))
        title = next((str(part.get("text")) for part in own), title)
    facts.name = clean_text(asked(without_context(title))) or None
    facts.count(row)
    return seen_chat(process, at, str(row["id"]), facts.chat(by))


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


class OpencodeFacts(ChatFacts):
    """The facts of a session, by the lines that `session_rows` makes of it."""

    def add_record(self, record: dict[str, Any]) -> None:
        """Add a line."""
        match record.get("type"):
            case "prompt":
                self.set_model(field(record, "model").get("modelID"))
                self.begin(str(record.get("text") or ""))
            case "text":
                self.say(record.get("text"))
            case "call":
                self.set_tool(record.get("tool"), record.get("input"), record.get("call"))
            case "result":
                self._end_call(record)
            case "answer":
                self._answer(record)

    def _end_call(self, record: dict[str, Any]) -> None:
        error = str(record.get("error") or "")
        refused = (outcome for words, outcome in _REFUSALS.items() if words in error)
        outcome = next(refused, "failed" if record.get("status") == "error" else "ended")
        code = field(record, "metadata").get("exit")
        output = record.get("output") or error
        self.end_call(record.get("call"), output, outcome, code if isinstance(code, int) else None)

    def _answer(self, record: dict[str, Any]) -> None:
        self.set_model(record.get("modelID"))
        tokens, error = field(record, "tokens"), field(record, "error")
        if error.get("name") == "MessageAbortedError":
            self.set_turn("interrupted")
        elif error:
            text = field(error, "data").get("message")
            self.set_turn("failed", text or error.get("name") or "an error")
        elif record.get("finish") in (None, "tool-calls", "unknown"):
            self.set_turn("open")
        else:
            self.set_turn("ended")
        cache = token_counts(field(tokens, "cache"))
        self.add_usage(_usage(token_counts(tokens), cache["read"], cache["write"]))

    def count(self, row: sqlite3.Row) -> None:
        """Set the tokens of a session by its row."""
        counts = token_counts({name.removeprefix("tokens_"): value for name, value in dict(row).items()})
        usage = _usage(counts, counts["cache_read"], counts["cache_write"])
        self.usages = (ModelUsage(model=self.model, usage=usage),) if usage.total else ()


def _usage(counts: Counter[str], read: int, written: int) -> TokenUsage:
    return TokenUsage(
        input=counts["input"],
        cached=read,
        cache_writes=written,
        output=counts["output"] + counts["reasoning"],
        reasoning=counts["reasoning"],
    )


_AUTO: Final = "--auto"
"""Allows what no rule denies."""


class OpencodeRequests(RequestReader):
    """What an `opencode` process was asked for."""

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return that nothing keeps it from anything, and whether it is to ask."""
        del thread, root, at
        text = "OpenCode has no sandbox: permissions are questions, no walls"
        origins = [RequestOrigin(field=RequestField.FILESYSTEM, layer=RequestLayer.DEFAULT, text=text)]
        approval = _AUTO if _AUTO in options(process.argv) else None
        if approval:
            origins.append(typed(RequestField.APPROVAL, approval))
        return Requested(
            policy=Policy(Filesystem.UNRESTRICTED, Network.ON, approval=approval, enforced_by="nobody"),
            origins=tuple(origins),
            since=process.key.started,
            is_fixed=process.once,
        )


ADAPTER: Final = partial(Adapter, session_files=OpencodeSessions(), request_reader=OpencodeRequests())
