"""The layout of a Codex home (`$CODEX_HOME`, `~/.codex`), for reading only: rollouts, names, locks.

`sessions/YYYY/MM/DD/rollout-TIME-UUID.jsonl` are threads, `archived_sessions/` (flat) the archived ones;
`.jsonl.zst` files are compressed (0.140+). `session_index.jsonl` has their names;
`thread-writer-locks/UUID.lock` (0.148+) is locked by the process that has one loaded.
"""

from __future__ import annotations

import errno
import heapq
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path, PurePath
from stat import S_IWUSR
from typing import Any, Final, NamedTuple

import msgspec

from agentdash.agents.codex.rollout.lineage import uuid_time
from agentdash.agents.session_rows import open_log
from agentdash.files import TORN, OnError, is_record, open_regular, unpacked
from agentdash.model.decoders import JsonDecoder
from agentdash.model.events import LocksSeen, ThreadNamed
from agentdash.model.limits import MAX_LINE_BYTES, READ_BLOCK_BYTES
from agentdash.model.line_marks import LineMarks
from agentdash.model.sanitize import clean_line
from agentdash.model.source import NO_CODEX_HOME, NO_SESSIONS
from agentdash.model.times import parse_iso, possible_time

ROLLOUT_NAME: Final = re.compile(
    r"(rollout-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)"
    r"-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}))\.jsonl(\.zst)?",
    re.ASCII,
)
LINE_MARKS: Final = LineMarks(
    turn=(b'"type":"task_started"', b'"type":"turn_context"'),
    beside=(
        b'"type":"turn_context"',
        b'"type":"thread_settings_applied"',
        b'"type":"user_message"',
        b'"item":{"type":"UserMessage"',
    ),
    later=(b'"type":"thread_settings_applied"',),
)
"""A rollout's turns: `task_started` since 0.99, `turn_context` with each request before; the prompt is an
`item_completed` since 0.150. Settings are changed in mid-turn by 0.169."""
_SESSIONS_DEPTH: Final = 3
"""Levels of directories under `sessions`: year, month, day."""
_MAX_INDEX_BYTES: Final = 8 << 20
"""Read of the end of `session_index.jsonl`: 50,000 entries. It is read every few seconds."""
_LINE_BUFFER_BYTES: Final = 1 << 16
"""Read at once for lines: it stays in the cache of the processor."""
_PROC_LOCKS: Final = Path("/proc/locks")


def default_home() -> Path:
    """Return `$CODEX_HOME`, or `~/.codex`."""
    named = os.environ.get("CODEX_HOME")
    return Path(named).expanduser() if named else Path.home() / ".codex"


class CodexHome:
    """The directory in which Codex keeps sessions, locks and databases.

    Args:
        root: `$CODEX_HOME`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sessions = root / "sessions"
        self.archived = root / "archived_sessions"

    @property
    def roots(self) -> list[Path]:
        """The existing directories with rollouts."""
        return [directory for directory in (self.sessions, self.archived) if directory.is_dir()]

    def is_archived(self, path: Path) -> bool:
        """Return whether a rollout of this home is in its archive."""
        return str(path).startswith(f"{self.archived}{os.sep}")

    def rollouts(self, on_error: OnError = lambda _: None) -> Iterator[Path]:
        """Yield all rollouts, newest first by the time in their names.

        Directories are listed as the iteration reaches them. Of a thread with two files the plain one is
        yielded, not the compressed one, as Codex itself does.
        """
        folders = _walk(self.sessions, _SESSIONS_DEPTH, on_error), _walk(self.archived, 0, on_error)
        found = heapq.merge(*folders, key=_stem, reverse=True)
        for _, same in groupby(found, key=_stem):
            yield Path(min(same, key=lambda file: file.compressed).path)


class _File(NamedTuple):
    stem: str
    compressed: bool
    path: str


def _stem(file: _File) -> str:
    return file.stem


def _walk(directory: Path, depth: int, on_error: OnError) -> Iterator[_File]:
    """Yield the rollouts in the directories `depth` levels below a directory, newest first."""

    def report(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            on_error(error)

    for folder, folders, names in os.walk(directory, onerror=report, followlinks=True):
        if len(Path(folder).parts) - len(directory.parts) == depth:
            folders.clear()
            matches = ((name, ROLLOUT_NAME.fullmatch(name)) for name in names)
            files = (_File(found[1], bool(found[4]), f"{folder}/{name}") for name, found in matches if found)
            yield from sorted(files, reverse=True)
            continue
        folders.sort(reverse=True)
        for name in filter(str.isdecimal, names):  # as a year, a month or a day: its sessions are missing
            try:
                (path := Path(folder, name)).stat()
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            except OSError as error:  # also a loop of links, or a link into a directory that is closed
                report(error)


def thread_id(path: PurePath) -> str | None:
    """Return the thread's id in a rollout's name, or None."""
    match = ROLLOUT_NAME.fullmatch(path.name)
    return match.group(3) if match else None


def begun_at(path: Path) -> float | None:
    """Return when a thread began (unix seconds) by its file's name: the time in a UUIDv7, else the local time
    before it."""
    if (match := ROLLOUT_NAME.fullmatch(path.name)) is None:
        return None
    if (made := uuid_time(match.group(3))) is not None:
        return made
    try:
        return possible_time(time.mktime(time.strptime(match.group(2), "%Y-%m-%dT%H-%M-%S")))
    except (ValueError, OverflowError):
        return None


def problem(home: CodexHome) -> str | None:
    """Return why a home has no readable sessions, in one line, or None if it has some."""
    where = clean_line(str(home.root))
    if not home.root.exists():
        return f"{where} {NO_CODEX_HOME}"
    if not home.root.is_dir():
        return f"{where} is not a directory: set CODEX_HOME to one"
    for directory in (home.root, *home.roots):
        if not os.access(directory, os.R_OK | os.X_OK):
            return f"{clean_line(str(directory))} cannot be read: permission denied"
    return None if home.roots else f"{where} {NO_SESSIONS}"


# ---------------------------------------------------------------- whole files


def open_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a rollout, plain or compressed, without their newlines, in bounded memory.

    Of a line longer than `MAX_LINE_BYTES` a longer beginning is yielded: `RolloutReader` reports it as
    oversized.

    Raises:
        OSError: the file cannot be opened, read or uncompressed.
    """
    limit = MAX_LINE_BYTES + 1
    if path.suffix == ".zst":
        held = b""
        for block in blocks(path):
            *lines, held = (held + block).split(b"\n")
            yield from lines
            held = held[:limit]
        if held and not is_record(held):
            raise OSError(TORN)
        if held:
            yield held
        return
    with open_log(path, _LINE_BUFFER_BYTES) as file:
        while line := file.readline(limit):  # twice as fast as blocks that are split
            if line.endswith(b"\n"):
                yield line[:-1]
                continue
            yield line
            while (rest := file.readline(limit)) and not rest.endswith(b"\n"):
                pass


def blocks(path: Path) -> Iterator[bytes]:
    """Yield the content of a rollout, plain or compressed, in blocks of about 1 MiB.

    Raises:
        OSError: the file cannot be opened, read or uncompressed.
    """
    with open_log(path) as file:
        if path.suffix != ".zst":
            while block := file.read(READ_BLOCK_BYTES):
                yield block
            return
        try:
            yield from filter(None, unpacked(file, READ_BLOCK_BYTES))
        except ValueError as error:
            raise OSError(str(error)) from error


# ---------------------------------------------------------------- names and locks


class _Entry(msgspec.Struct):
    """A line of `session_index.jsonl`."""

    id: str
    thread_name: str
    updated_at: Any = None


_entry = JsonDecoder(_Entry)


class NameIndex(NamedTuple):
    """The content of `session_index.jsonl`."""

    entries: Sequence[ThreadNamed] = ()
    """In the order of the file; time 0: it has none."""
    problem: str | None = None
    """Why it, or a part of it, cannot be read, in one line."""

    @property
    def names(self) -> list[ThreadNamed]:
        """The last entry of each thread."""
        return list({entry.thread: entry for entry in self.entries}.values())


def read_names(home: CodexHome) -> NameIndex:
    """Return the names that threads were given, from `session_index.jsonl`; none if it does not exist."""
    path = home.root / "session_index.jsonl"
    where = clean_line(str(path))
    try:
        with open_regular(path) as fd:
            begin = max(0, os.fstat(fd).st_size - _MAX_INDEX_BYTES)
            lines = os.pread(fd, _MAX_INDEX_BYTES, begin).split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return NameIndex()
    except OSError as error:
        return NameIndex(problem=f"{where} cannot be read: {error.strerror or error}")
    if begin and len(lines) > 1:
        del lines[0]  # a part of one
    read = [_read_entry(line) for line in lines if line.strip()]
    if lines[-1] and read[-1] is None:
        del read[-1]  # it is being written
    entries = [entry for entry in read if entry is not None]
    malformed = len(read) - len(entries)
    if not malformed:
        return NameIndex(entries)
    return NameIndex(entries, f"{where}: {malformed} line{'s' * (malformed != 1)} not understood")


def _read_entry(line: bytes) -> ThreadNamed | None:
    try:
        entry = _entry.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    at = parse_iso(entry.updated_at) if isinstance(entry.updated_at, str) else None
    return ThreadNamed(at=at or 0.0, thread=clean_line(entry.id), name=clean_line(entry.thread_name))


def locks(home: CodexHome, at: float) -> LocksSeen:
    """Return the holders of the writer locks of threads (0.148+), from `/proc/locks`: no lock is taken.

    Args:
        home: contains `thread-writer-locks/`.
        at: the time of the event (unix seconds).
    """
    holders: dict[str, int] = {}
    folder = home.root / "thread-writer-locks"
    files = [path for path in folder.glob("*.lock") if not path.name.startswith(".")]
    try:
        held = _write_locks(_PROC_LOCKS.read_text("ascii", "replace")) if files else {}
    except OSError:
        return LocksSeen(at=at, holders=holders)
    written_by = cache(_written_locks)
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        for pid, device in held.get(stat.st_ino, ()):
            is_holder = device == (os.major(stat.st_dev), os.minor(stat.st_dev))
            if (written := written_by(pid)) is not None:
                is_holder = (stat.st_dev, stat.st_ino) in written
            if is_holder:
                holders[clean_line(file.stem)] = pid
    return LocksSeen(at=at, holders=holders)


def _write_locks(text: str) -> dict[int, list[tuple[int, tuple[int, int]]]]:
    """Parse `1: FLOCK  ADVISORY  WRITE 4242 fe:00:5341931 0 EOF` into inode -> (pid, device); waiting ones
    (`->`) are left out."""
    held: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for line in text.splitlines():
        match line.split():
            case [_, "FLOCK", "ADVISORY", "WRITE", pid, place, *_]:
                major, minor, inode = place.split(":")
                held.setdefault(int(inode), []).append((int(pid), (int(major, 16), int(minor, 16))))
    return held


def _written_locks(pid: int) -> frozenset[tuple[int, int]] | None:
    """Return device and inode of the lock files that a process has open for writing, as Codex does, or None
    if that cannot be seen.

    Who may only read a file may lock it, too: a sandboxed worker could that of another. And `/proc/locks` has
    another device than `stat` on btrfs.
    """
    found: set[tuple[int, int]] = set()
    try:
        with os.scandir(f"/proc/{pid}/fd") as descriptors:
            for each in descriptors:
                with suppress(OSError):  # closed meanwhile
                    # the permissions of the link are those of the descriptor
                    is_written = each.stat(follow_symlinks=False).st_mode & S_IWUSR
                    if is_written and Path(each.path).readlink().suffix == ".lock":
                        stat = each.stat()
                        found.add((stat.st_dev, stat.st_ino))
    except OSError:
        return None
    return frozenset(found)
