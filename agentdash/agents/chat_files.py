"""Chat files in JSON lines (Gemini CLI, Qwen Code, Copilot CLI): found for a process, and read as they grow.

Where no file names the process that writes it, one is taken for the session of a process only if it is the
single one of its directory that was written since the process began, and no other process of the CLI works in
the same directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from agentdash.agents.adapter import UnreadableSessionError
from agentdash.files import open_regular
from agentdash.model.chat import Chat
from agentdash.model.events import SessionSeen
from agentdash.model.process import Process, ProcessKey
from agentdash.model.prompts import asked
from agentdash.model.sanitize import clean_line
from agentdash.model.times import parse_iso
from agentdash.model.tokens import ModelUsage

_INTERVAL_S: Final = 0.5
"""Between two readings of the files of one process."""
_LISTING_INTERVAL_S: Final = 5.0
"""Between two listings of a directory that has not changed."""
_MAX_FILES: Final = 2_000
"""Chats of one project that are looked at."""
_MAX_WHOLE_BYTES: Final = 32 << 20
"""Size above which only the end of a chat is read: a week of work has a few MB."""
_TAIL_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 20
_FINGERPRINT_BYTES: Final = 256
"""Before the offset, compared before reading on: the file may have been cut, and have grown again since."""
_MAX_LINE_BYTES: Final = 4 << 20
"""Longer lines are skipped: outputs of tools in them."""
_CLOCK_TOLERANCE_S: Final = 1.0


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


class Candidate(NamedTuple):
    """A chat that may be that of a process."""

    path: Path
    by: str
    """How it is known to be its own if it is the only one."""


class ChatParser(Protocol):
    """Parses the records of one chat."""

    def feed(self, line: bytes) -> None:
        """Add a record. Never raises."""
        ...

    def chat(self, by: str, *, is_whole: bool) -> Chat:
        """Return what is known of the chat so far.

        Args:
            by: how it was found.
            is_whole: whether it was read from its first line on.
        """
        ...


class ChatLog:
    """One chat file, read as it grows.

    Args:
        new_parser: makes a parser, also where the file is replaced by another one.
    """

    def __init__(self, path: Path, new_parser: Callable[[], ChatParser]) -> None:
        self.path = path
        self._new_parser = new_parser
        self._parser = new_parser()
        self._inode = 0
        self._offset = 0
        self._fingerprint = b""
        self._partial = b""
        self._is_skipping = False
        self._is_whole = True

    def update(self) -> None:
        """Read what was appended since the last time.

        Raises:
            OSError: the file cannot be read.
        """
        with open_regular(self.path) as fd:
            found = os.fstat(fd)
            if found.st_ino != self._inode or not self._continues(fd):
                self._start(found.st_ino, found.st_size)
            while self._offset < found.st_size and (block := os.pread(fd, _READ_BYTES, self._offset)):
                self._offset += len(block)
                self._fingerprint = (self._fingerprint + block)[-_FINGERPRINT_BYTES:]
                self._add(block)

    def chat(self, by: str) -> Chat:
        """Return what is known of it."""
        return self._parser.chat(by, is_whole=self._is_whole)

    def _continues(self, fd: int) -> bool:
        """Return whether what was read last still stands before the offset."""
        start = self._offset - len(self._fingerprint)
        return os.pread(fd, len(self._fingerprint), start) == self._fingerprint

    def _start(self, inode: int, size: int) -> None:
        self._inode = inode
        self._fingerprint = b""
        self._is_whole = size <= _MAX_WHOLE_BYTES
        self._offset = 0 if self._is_whole else size - _TAIL_BYTES
        self._partial = b""
        self._is_skipping = not self._is_whole
        self._parser = self._new_parser()

    def _add(self, block: bytes) -> None:
        *lines, rest = (self._partial + block).split(b"\n")
        for line in lines:
            if not self._is_skipping and line:
                self._parser.feed(line)
            self._is_skipping = False
        self._is_skipping |= len(rest) > _MAX_LINE_BYTES
        self._partial = b"" if self._is_skipping else rest


class _Followed:
    """The chat of one process, as read last."""

    def __init__(self) -> None:
        self.read_at = 0.0
        self.listed_at = 0.0
        self.listed = (0, True)
        """When the directory was listed last; its own time then (nanoseconds), and whether the process was
        alone in it."""
        self.log: ChatLog | None = None
        self.by = ""
        """How the log is known to be its own."""
        self.seen: SessionSeen | None = None
        self.failure: str | None = None
        """Why it cannot be read."""


class ChatFiles:
    """Reads the chats of running processes of one CLI.

    Args:
        locate: returns the directory with the chats of a process's project, or None if unknown.
        pattern: of the names of chats in it.
    """

    def __init__(
        self,
        locate: Callable[[Process], Path | None],
        pattern: str,
        new_parser: Callable[[], ChatParser],
    ) -> None:
        self._locate = locate
        self._pattern = pattern
        self._new_parser = new_parser
        self._followed: dict[ProcessKey, _Followed] = {}

    def read(self, process: Process, at: float, *, is_alone: bool = True) -> SessionSeen | None:
        """Return what the chat of a process contains; None where none is certainly its own.

        Raises:
            UnreadableSessionError: the chats cannot be listed, or its own cannot be read.
        """
        followed = self._followed.setdefault(process.key, _Followed())
        if not 0.0 <= at - followed.read_at < _INTERVAL_S:
            followed.read_at = at
            followed.seen = None
            followed.failure = None
            try:
                followed.seen = self._update(followed, process, at, is_alone=is_alone)
            except (FileNotFoundError, NotADirectoryError, ValueError):
                pass
            except OSError as error:
                followed.failure = f"{error.filename}: {error.strerror}"
            self._forget(at)
        if followed.failure is not None:
            raise UnreadableSessionError(followed.failure)
        return followed.seen

    def _update(
        self, followed: _Followed, process: Process, at: float, *, is_alone: bool
    ) -> SessionSeen | None:
        """Find and read the chat of a process.

        Raises:
            OSError: a directory or file cannot be read.
        """
        self._find(process, followed, at, is_alone=is_alone)
        if followed.log is None:
            return None
        followed.log.update()
        path = followed.log.path
        chat = followed.log.chat(followed.by)
        return SessionSeen(
            at=at,
            key=process.key,
            agent=process.agent or "",
            status=None,
            since=chat.since or process.key.started,
            session=clean_line(self.session_id(path), 80),
            chat=chat,
        )

    def candidates(self, directory: Path, process: Process, *, is_alone: bool) -> list[Candidate]:
        """Return the chats of a directory that may be that of a process.

        Raises:
            OSError: the directory or a file cannot be read.
        """
        if not is_alone:
            return []
        by = "the only chat of its directory that was written since it began"
        return [
            Candidate(path, f"{path.name}, {by}")
            for path in files_of(directory, self._pattern)
            if is_written_since(path, process)
        ]

    def session_id(self, path: Path) -> str:
        """Return the id of a chat's session."""
        return path.stem

    def _find(self, process: Process, followed: _Followed, at: float, *, is_alone: bool) -> None:
        """Set the log to the one chat that may be that of a process; to None where there are none or several.
        The directory is listed where it has changed, and now and then: an old chat may go on.

        Raises:
            OSError: a directory or file cannot be read.
        """
        directory = self._locate(process)
        if directory is None or not is_same_place(process, directory):
            followed.log = None
            return
        now = (directory.stat().st_mtime_ns, is_alone)
        if now == followed.listed and at - followed.listed_at < _LISTING_INTERVAL_S:
            return
        followed.listed = now
        followed.listed_at = at
        found = self.candidates(directory, process, is_alone=is_alone)
        if len(found) != 1:
            followed.log = None
            return
        path, followed.by = found[0]
        if followed.log is None or followed.log.path != path:
            followed.log = ChatLog(path, self._new_parser)

    def _forget(self, at: float) -> None:
        """Drop what was read of processes that have ended: nothing needs it any more."""
        old = [key for key, each in self._followed.items() if at - each.read_at > 60 * _INTERVAL_S]
        for key in old:
            del self._followed[key]


_MAX_TEXT_CHARS: Final = 200
_OBJECTS: Final = ("command", "file_path", "absolute_path", "path", "pattern", "query", "url", "prompt")
"""Arguments of tools that say what they are called for, the most telling first."""


def clean_text(text: object) -> str:
    """Return one line of a prompt, a command or an error, not longer than a row may show."""
    return clean_line(str(text), _MAX_TEXT_CHARS)


def token_counts(usage: dict[str, Any]) -> dict[str, int]:
    """Return the counts in what a record states of its tokens, by name."""
    return {name: value for name, value in usage.items() if isinstance(value, int) and value >= 0}


class ChatFacts:
    """The facts of a chat, as its records are parsed one after the other."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.model: str | None = None
        self.tool: str | None = None
        self.turn: Any = None
        self.since: float | None = None
        self.why = ""
        self.trouble: str | None = None
        self.usages: tuple[ModelUsage, ...] = ()
        self.context: int | None = None

    def set_turn(self, turn: str | None, record: dict[str, Any], why: str = "") -> None:
        """Set where the turn is, since the record's time."""
        if turn != self.turn:
            self.since = parse_iso(str(record.get("timestamp")))
        self.turn = turn
        self.why = clean_text(why)

    def begin(self, prompt: str, record: dict[str, Any]) -> None:
        """Begin a turn with a prompt of the user."""
        self.name = self.name or clean_text(asked(prompt)) or None
        self.trouble = None
        self.turn = None
        self.set_turn("open", record)

    def add_tool(self, name: object, arguments: object) -> None:
        """Note a call of a tool."""
        values = arguments if isinstance(arguments, dict) else {}
        object_ = next((values[key] for key in _OBJECTS if isinstance(values.get(key), str)), "")
        words = f"{name}: {object_}" if object_ else str(name)
        self.tool = clean_text(words)

    def chat(self, by: str, *, is_whole: bool) -> Chat:
        """Return what is known; totals only of a chat that was read as a whole."""
        usages = self.usages if is_whole else ()
        return Chat(
            by=by,
            name=self.name if is_whole else None,
            model=self.model,
            total=sum(each.usage.total for each in usages) if usages else None,
            by_model=usages,
            context=self.context,
            tool=self.tool,
            turn=self.turn,
            since=self.since,
            why=self.why,
            trouble=self.trouble,
        )
