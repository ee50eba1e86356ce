"""Chats of Gemini CLI, Qwen Code, Copilot CLI, OpenCode and Kilo: found for a process, and read as they grow.

Where nothing names the process that writes it, a chat is taken for that of a process only if it is the single
one of its directory that was written since the process began, and no other process of the CLI works there.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from msgspec.structs import replace

from agentdash.agents.adapter import UnreadableSessionError
from agentdash.files import open_regular
from agentdash.model.changes import Edit, FileChange, edited, file_changes
from agentdash.model.chat import Chat
from agentdash.model.decoders import decoded
from agentdash.model.events import (
    CallEnded,
    CallStarted,
    MessageLogged,
    Outcome,
    PolicySet,
    SessionSeen,
    TokensCounted,
    TroubleLogged,
    TurnEnded,
)
from agentdash.model.process import Process, ProcessKey
from agentdash.model.prompts import asked, question_of, without_context
from agentdash.model.sanitize import clean_block, clean_line
from agentdash.model.times import parse_iso
from agentdash.model.tokens import ModelUsage, TokenUsage, merged_usage

_INTERVAL_S: Final = 0.5
"""Between two readings for one process."""
_KEPT_S: Final = 30.0
"""What was read of a process is forgotten so long after its last reading: it has ended."""
_LISTING_INTERVAL_S: Final = 5.0
"""Between two listings of a directory that has not changed."""
_MAX_FILES: Final = 2_000
"""Chats of one project that are looked at."""
_MAX_BYTES: Final = 64 << 20
"""Of a chat: a week of work has a few MB."""
_READ_BYTES: Final = 1 << 20
_MAX_TEXT_CHARS: Final = 200
_MAX_QUESTION_CHARS: Final = 2_000
_CLOCK_TOLERANCE_S: Final = 1.0
_MAX_EDITS: Final = 50
"""Files kept of a chat, those edited last."""


def is_same_place(process: Process, place: Path, proc: Path = Path("/proc")) -> bool:
    """Return whether a path is the same for a process as for agentdash: in a container it is another one.

    True where that is not known (macOS, a process that has ended).
    """
    own = proc / str(process.pid)
    if not own.exists():
        return True
    try:
        theirs = (own / "root" / str(place).lstrip("/")).stat()
        ours = place.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)


def is_written_since(path: Path, process: Process) -> bool:
    """Return whether a file was written since a process began.

    Raises:
        OSError: the file cannot be read.
    """
    return path.stat().st_mtime >= process.key.started - _CLOCK_TOLERANCE_S


def files_of(directory: Path, pattern: str) -> Iterator[Path]:
    """Return the files below a directory whose names match, up to a limit.

    Raises:
        OSError: it cannot be read.
    """
    return islice(directory.glob(pattern), _MAX_FILES)


# ---------------------------------------------------------------- what a chat says


_OBJECTS: Final = (
    *("command", "file_path", "filePath", "absolute_path", "path", "pattern", "query", "url"),
    *("description", "prompt"),
)
"""Arguments of tools that say what they are called for, the most telling first."""
_EDITORS: Final = ("edit", "replace", "write", "write_file", "create")
"""Tools that change a file."""
_PATHS: Final = ("file_path", "filePath", "path")
_OLD_TEXTS: Final = ("old_string", "oldString", "old_str")
_NEW_TEXTS: Final = ("new_string", "newString", "new_str", "content", "file_text")
SHELLS: Final = ("run_shell_command", "bash", "shell")
"""Tools that run commands."""


def clean_text(text: object) -> str:
    """Return one line of a prompt, a command or an error, not longer than a row may show."""
    return clean_line(str(text), _MAX_TEXT_CHARS)


def token_counts(usage: object) -> Counter[str]:
    """Return the counts in what a record states of its tokens, by name."""
    items = usage.items() if isinstance(usage, dict) else ()
    return Counter({name: value for name, value in items if isinstance(value, int) and value >= 0})


def _changes(tool: object, arguments: dict[str, Any]) -> tuple[FileChange, ...]:
    """Return what a call is to change."""
    path, old, new = (
        next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)
        for names in (_PATHS, _OLD_TEXTS, _NEW_TEXTS)
    )
    return file_changes([edited(path, [(old, new)])]) if tool in _EDITORS and path and new is not None else ()


class ChatFacts:
    """The facts of a chat, as its records are added one after the other. Subclasses know the records of one
    CLI.

    What is said and done is told as well, by events without time and thread: a reader of past chats logs it.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.model: str | None = None
        self.tool: str | None = None
        self.edits: tuple[Edit, ...] = ()
        self.asks = ""
        self.turn: Literal["open", "ended", "failed", "interrupted"] | None = None
        self.since: float | None = None
        self.why = ""
        self.trouble: str | None = None
        self.usages: tuple[ModelUsage, ...] = ()
        self.context: int | None = None
        self.at: float | None = None
        """Time of the newest record (unix seconds)."""
        self._changing: dict[str, Edit] = {}
        """Files that open calls are to change, by call."""
        self._said = ""
        """The newest message of the model in this turn."""
        self.tell: Callable[..., None] = lambda _event, **_fields: None
        """Called with an event and its fields; with a `key` where records may repeat it."""

    def place(self, record: dict[str, Any], path: Path) -> tuple[object, object, object]:
        """Return working directory, version and parent, as far as the first record of a file states them."""
        del path
        return record.get("cwd"), record.get("version"), record.get("parent")

    def add(self, record: dict[str, Any]) -> None:
        """Add a record. Never raises."""
        self.at = parse_iso(str(record.get("timestamp")))
        self.add_record(record)

    def add_record(self, record: dict[str, Any]) -> None:
        """Add a record whose time is `at`."""
        raise NotImplementedError

    def set_turn(self, turn: Any, why: object = "") -> None:
        """Set where the turn is since the newest record, if it was not there before."""
        if turn != self.turn:
            self.since = self.at
        self.turn = turn
        self.why = clean_text(why)
        if turn == "ended":
            self.tell(TurnEnded, how="completed", message=self._said or None)
        elif turn == "failed":
            self.tell(TurnEnded, how="completed", error=self.why, error_kind="api_error")
        elif turn == "interrupted":
            self.tell(TurnEnded, how="aborted", reason="interrupted")

    def begin(self, prompt: str) -> None:
        """Begin a turn with a prompt of the user."""
        self.name = self.name or clean_text(asked(without_context(prompt))) or None
        self.trouble = None
        self.asks = ""
        self.turn = None
        self._said = ""
        self.set_turn("open")
        self.tell(MessageLogged, role="user", text=clean_block(without_context(prompt)))

    def say(self, text: object, key: object = None) -> None:
        """Set the newest message of the model, which may call tools behind it.

        Args:
            key: identifies it where records may repeat it.
        """
        written = str(text or "")
        self.asks = clean_line(question_of(written), _MAX_QUESTION_CHARS)
        if written.strip():
            self._said = clean_block(written)
            self.tell(MessageLogged, key=key and (key, written), role="agent", text=self._said)

    def set_model(self, name: object) -> None:
        """Set the model, where a record names it."""
        before, self.model = self.model, clean_line(str(name or "")) or self.model
        if self.model != before:
            self.tell(PolicySet, origin="permission_mode", model=self.model)

    def set_trouble(self, text: object) -> None:
        """Set why a request failed that is tried again."""
        self.trouble = clean_text(text)
        self.tell(TroubleLogged, text=self.trouble)

    def set_tool(self, name: object, arguments: object, call: object = None) -> None:
        """Set the newest tool, with what it is called for.

        Args:
            call: the id of the call.
        """
        self.asks = ""
        values = arguments if isinstance(arguments, dict) else {}
        object_ = next((values[key] for key in _OBJECTS if isinstance(values.get(key), str)), "")
        self.tool = clean_text(f"{name}: {object_}" if object_ else name)
        if call:
            is_command = name in SHELLS
            changes = _changes(name, values)
            for change in changes:
                self._changing[str(call)] = Edit(change.path, 0.0, clean_line(f"{name} {change.path}"))
            self.tell(
                CallStarted,
                key=call,
                call=clean_line(str(call)),
                kind="command" if is_command else "patch" if changes else "other",
                tool=clean_line(str(name)),
                text=clean_line(object_),
                script=clean_block(object_) if is_command else "",
                changes=changes,
            )

    def end_call(
        self, call: object, output: object, outcome: Outcome = "ended", exit_code: int | None = None
    ) -> None:
        """Tell the end of a call, where its id is known."""
        edit = self._changing.pop(str(call), None)
        if edit is not None and outcome == "ended" and self.at and edit.path.startswith("/"):
            others = (each for each in self.edits if each.path != edit.path)
            self.edits = (replace(edit, at=self.at), *others)[:_MAX_EDITS]
        if call:
            text = clean_block(output if isinstance(output, str) else "")
            name = clean_line(str(call))
            self.tell(CallEnded, key=call, call=name, outcome=outcome, output=text, exit_code=exit_code)

    def add_usage(self, usage: TokenUsage, model: str | None = None, *, is_own: bool = True) -> None:
        """Add the tokens of a request, if any.

        Args:
            model: of the request; None: the one that was named last.
            is_own: whether its prompt is the context of this chat, and not that of a sub-agent.
        """
        if not usage.total:
            return
        added = ModelUsage(model=model or self.model, usage=usage, longest_prompt=usage.prompt)
        self.usages = merged_usage((*self.usages, added))
        self.context = usage.prompt if is_own else self.context
        total = sum(each.usage.total for each in self.usages)
        self.tell(TokensCounted, total=total, by_model=self.usages, context=self.context)

    def chat(self, by: str) -> Chat:
        """Return what is known.

        Args:
            by: how the chat was found.
        """
        total = sum(each.usage.total for each in self.usages) or None
        known = {name: getattr(self, name) for name in Chat.__struct_fields__ if hasattr(self, name)}
        return Chat(by=by, total=total, by_model=self.usages, **known)


class ChatLog:
    """One chat in JSON lines, read as it grows.

    Args:
        new_facts: makes its facts, also where the file is replaced by another one.
        by: how it is known to be that of a process.
    """

    def __init__(self, path: Path, new_facts: Callable[[], ChatFacts], by: str) -> None:
        self.path = path
        self._new_facts = new_facts
        self._by = by
        self._begin(0)

    def _begin(self, inode: int) -> None:
        self._facts = self._new_facts()
        self._inode = inode
        self._offset = 0
        self._partial = b""

    def read(self) -> Chat:
        """Return what it says, after reading what was appended since the last time.

        Raises:
            OSError: the file cannot be read, or is too large.
        """
        with open_regular(self.path) as descriptor:
            found = os.fstat(descriptor)
            if found.st_size > _MAX_BYTES:
                raise OSError(errno.EFBIG, f"larger than {_MAX_BYTES >> 20} MB", str(self.path))
            if found.st_ino != self._inode or found.st_size < self._offset:
                self._begin(found.st_ino)
            while self._offset < found.st_size and (block := os.pread(descriptor, _READ_BYTES, self._offset)):
                self._offset += len(block)
                self._add(block)
        return self._facts.chat(self._by)

    def _add(self, block: bytes) -> None:
        *lines, self._partial = (self._partial + block).split(b"\n")
        for line in lines:
            self._facts.add(decoded(line))


# ---------------------------------------------------------------- the chats of processes


class Followed:
    """What was read last of the chat of one process."""

    def __init__(self) -> None:
        self.read_at = 0.0
        self.seen: SessionSeen | None = None
        self.failure: str | None = None
        """Why it cannot be read."""
        self.stamp: object = None
        """Tells whether its place has changed since it was looked at."""
        self.listed_at = 0.0
        """When its directory was listed last."""
        self.log: ChatLog | None = None


class Chats:
    """Reads the chats of running processes of one CLI. Subclasses know where they are."""

    def __init__(self) -> None:
        self._followed: dict[ProcessKey, Followed] = {}

    def read(self, process: Process, at: float, *, is_alone: bool = True) -> SessionSeen | None:
        """Return what the chat of a process contains; None where none is certainly its own.

        Raises:
            UnreadableSessionError: the chats cannot be listed, or its own cannot be read.
        """
        followed = self._followed.setdefault(process.key, Followed())
        if not 0.0 <= at - followed.read_at < _INTERVAL_S:
            followed.read_at = at
            followed.failure = None
            try:
                followed.seen = self._look(followed, process, at, is_alone=is_alone)
            except UnreadableSessionError as error:
                followed.failure = str(error)
            self._followed = {
                key: each for key, each in self._followed.items() if at - each.read_at <= _KEPT_S
            }
        if followed.failure is not None:
            raise UnreadableSessionError(followed.failure)
        return followed.seen

    def _look(self, followed: Followed, process: Process, at: float, *, is_alone: bool) -> SessionSeen | None:
        """Find and read the chat of a process.

        Raises:
            UnreadableSessionError: it, or its place, cannot be read.
        """
        raise NotImplementedError


def seen_chat(process: Process, at: float, session: str, chat: Chat) -> SessionSeen:
    """Return the event of a chat."""
    return SessionSeen(
        at=at,
        key=process.key,
        agent=process.agent or "",
        status=None,
        since=chat.since or process.key.started,
        session=clean_line(session, 80),
        chat=chat,
    )


class ChatFiles(Chats):
    """Reads chats in JSON lines.

    Args:
        locate: returns the directory with the chats of a process's project, or None if unknown.
        pattern: of the names of chats in it.
        new_facts: makes the facts of a chat.
    """

    def __init__(
        self,
        locate: Callable[[Process], Path | None],
        pattern: str,
        new_facts: Callable[[], ChatFacts],
    ) -> None:
        super().__init__()
        self._locate = locate
        self._pattern = pattern
        self._new_facts = new_facts

    def _look(self, followed: Followed, process: Process, at: float, *, is_alone: bool) -> SessionSeen | None:
        try:
            self._find(process, followed, at, is_alone=is_alone)
            if followed.log is None:
                return None
            return seen_chat(process, at, self.session_id(followed.log.path), followed.log.read())
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the path
            return None
        except OSError as error:
            raise UnreadableSessionError(f"{error.filename}: {error.strerror}") from error

    def candidates(self, directory: Path, process: Process, *, is_alone: bool) -> dict[Path, str]:
        """Return the chats of a directory that may be that of a process, each with how it is known to be its
        own if it is the only one.

        Raises:
            OSError: the directory or a file cannot be read.
        """
        if not is_alone:
            return {}
        by = "the only chat of its directory that was written since it began"
        found = files_of(directory, self._pattern)
        return {path: f"{path.name}, {by}" for path in found if is_written_since(path, process)}

    def session_id(self, path: Path) -> str:
        """Return the id of a chat's session."""
        return path.stem

    def _find(self, process: Process, followed: Followed, at: float, *, is_alone: bool) -> None:
        """Set the log to the one chat that may be that of a process; to None where there are none or several.
        The directory is listed where it has changed, and now and then: an old chat may go on.

        Raises:
            OSError: a directory or file cannot be read.
        """
        directory = self._locate(process)
        if directory is None or not is_same_place(process, directory):
            followed.log = None
            return
        stamp = (directory.stat().st_mtime_ns, is_alone)
        if stamp == followed.stamp and at - followed.listed_at < _LISTING_INTERVAL_S:
            return
        followed.stamp = stamp
        followed.listed_at = at
        found = self.candidates(directory, process, is_alone=is_alone)
        path = next(iter(found)) if len(found) == 1 else None
        if path is None:
            followed.log = None
        elif followed.log is None or followed.log.path != path:
            followed.log = ChatLog(path, self._new_facts, found[path])
