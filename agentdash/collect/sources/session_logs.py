"""Session logs (Codex's rollouts, Claude Code's transcripts): found, followed as they grow and move, and
read by the readers of their CLIs.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Collection, Container, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final, Protocol

from agentdash.agents.claude import home as claude
from agentdash.agents.codex.home import LINE_MARKS, CodexHome, locks, problem, read_names, thread_id
from agentdash.agents.line_events import oversized_lines
from agentdash.agents.session_logs import LogReader, reader_of_log
from agentdash.collect.scheduler import PollScheduler
from agentdash.collect.tail.follower import Change, FileKnown, FileMoved, FileVanished, LogFollower
from agentdash.collect.tail.log_file import FileGrown, FileUnreadable
from agentdash.model.events import (
    CallStarted,
    Event,
    FileGapSkipped,
    FileGone,
    FileReset,
    FileSeen,
    SourceSeen,
    ThreadNamed,
)
from agentdash.model.fleet import Fleet, ThreadRestored
from agentdash.model.limits import SKIM_ABOVE_BYTES
from agentdash.model.line_marks import NO_MARKS
from agentdash.model.sanitize import clean_line
from agentdash.model.source import NOT_READ, Clock, Emit, FleetChannel
from agentdash.model.times import possible_time

_BATCH_BYTES: Final = 1 << 18
"""Read and reduced at once: small, so that the screen is drawn in between."""
_RECENT_S: Final = 86_400.0
"""Sessions changed within a day are read at first even beyond the configured number, up to a bound."""
_NAMES_INTERVAL_S: Final = 10.0
"""Between two readings of the session index: names change seldom, and by hand."""


class KnownThreads(Protocol):
    """What an earlier agentdash read."""

    def restore(self, threads: Mapping[Path, str], names: Mapping[str, str]) -> Mapping[Path, ThreadRestored]:
        """Return what is known of logs that have not changed, given their threads and the names of these."""
        ...


class SessionLogSource:
    """Reads session logs as they are found, grow, move and vanish. Subclasses know one CLI.

    Args:
        newest: how many of the newest sessions are read at first; None: all.
        scheduler: notified of activity, and of commands that start.
        known: of earlier, for a single pass; None: all logs are read.
        whole: threads whose logs are read whole at first.
    """

    name = "sessions"
    skim_above = SKIM_ABOVE_BYTES
    """Size above which only head and tail of a log are read at first."""
    marks = NO_MARKS
    """What lines contain that are read also between these."""

    def __init__(
        self,
        roots: Sequence[Path],
        newest: int | None,
        clock: Clock,
        scheduler: PollScheduler,
        known: KnownThreads | None = None,
        whole: Container[str] = (),
    ) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._known = known
        self._restored: Mapping[Path, ThreadRestored] = {}
        self._follower = LogFollower(
            roots,
            self._thread_id,
            skim_above=self.skim_above,
            marks=self.marks,
            newest=newest,
            since=clock.now() - _RECENT_S,
            age_key=self._age_key,
            is_open=self._is_open,
            known=self._restore,
            whole=whole,
            batch=_BATCH_BYTES,
        )
        self._readers: dict[str, LogReader] = {}
        self._skimmed: set[str] = set()
        """Threads of which only head and tail were read."""
        self._names: dict[str, ThreadNamed] = {}
        self._names_problem: str | None = None
        """Why names that stand in no log cannot be read."""

    # ------------------------------------------------------------ of one CLI

    def _thread_id(self, path: PurePath) -> str | None:
        """Return the thread whose log a file is, or None if it is not a log."""
        raise NotImplementedError

    def _problem(self) -> str | None:
        """Return why there are no readable sessions, in one line."""
        raise NotImplementedError

    def _where(self) -> Path:
        """Return the directory that the sessions belong to."""
        raise NotImplementedError

    def _list_names(self) -> list[ThreadNamed]:
        """Return the names of threads that stand in no log."""
        return []

    def _is_archived(self, path: Path) -> bool:
        """Return whether a log is in the archive."""
        del path
        return False

    def _age_key(self, path: str) -> str | float:
        """Return a sort key: newer logs sort higher."""
        return posixpath.basename(path)

    def _is_open(self, thread: str) -> bool:
        """Return whether a program is known to have a thread's log open."""
        del thread
        return False

    # ------------------------------------------------------------ the source

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the events of every session that changed, large ones by head and tail."""
        del fleet
        self._names = {named.thread: named for named in self._list_names()}
        events = [event for change in self._follower.sweep() for event in self._events(change)]
        return [*events, self._health()]

    async def stream(self, emit: Emit, channel: FleetChannel) -> None:
        """Emit the newest sessions, then changes as they happen."""
        emit([self._health()])
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(emit, channel))
            group.create_task(self._follow_names(emit))

    async def _follow(self, emit: Emit, channel: FleetChannel) -> None:
        async for changes in self._follower.follow():
            await channel.wait_for_room()
            self._scheduler.mark_activity()
            events = [event for change in changes for event in self._events(change)]
            if any(isinstance(event, CallStarted) and event.kind == "command" for event in events):
                self._scheduler.burst()
            emit([*events, self._health()])

    async def _follow_names(self, emit: Emit) -> None:
        while True:
            changed = {n.thread: n for n in self._list_names() if self._names.get(n.thread) != n}
            self._names |= changed
            emit([*(n for n in changed.values() if n.thread in self._readers), self._health()])
            await asyncio.sleep(_NAMES_INTERVAL_S)

    def _restore(self, paths: Sequence[Path]) -> Collection[Path]:
        """Return the logs whose contents are known."""
        threads = {path: thread for path in paths if (thread := self._thread_id(path)) is not None}
        names = {thread: named.name for thread, named in self._names.items()}
        self._restored = self._known.restore(threads, names) if self._known is not None else {}
        return self._restored.keys()

    def _events(self, change: Change) -> list[Event]:
        now = self._clock.now()
        path = change.path
        thread = self._thread_id(path)
        if thread is None:  # a directory that cannot be listed
            return [self._health()]
        match change:
            case FileKnown():
                return [self._restored[path]]
            case FileGrown():
                return self._grown(change, thread, now)
            case FileVanished():
                self._readers.pop(thread, None)
                self._skimmed.discard(thread)
                return [FileGone(at=now, thread=thread)]
            case FileUnreadable():
                return [self._file_seen(path, thread, now, unreadable=change.reason)]
            case FileMoved():
                return [self._file_seen(path, thread, now)]

    def _grown(self, change: FileGrown, thread: str, now: float) -> list[Event]:
        events: list[Event] = []
        if change.reset or thread not in self._readers:
            events += [FileReset(at=now, thread=thread)] if thread in self._readers else []
            self._readers[thread] = reader_of_log(change.path, thread)
            events += [self._names[thread]] if thread in self._names else []
            self._skimmed.discard(thread)
        events.append(self._file_seen(change.path, thread, now, change))
        if change.skimmed and change.first == 0 and thread not in self._skimmed:
            self._skimmed.add(thread)
            events.append(FileGapSkipped(at=now, thread=thread, same_turn=change.same_turn))
        if change.oversized:
            events.append(oversized_lines(change.oversized, thread, now))
        return [*events, *self._readers[thread].read(change.lines, change.first)]

    def _file_seen(
        self,
        path: Path,
        thread: str,
        now: float,
        grown: FileGrown | None = None,
        unreadable: str | None = None,
    ) -> FileSeen:
        size, modified = (grown.size, grown.modified) if grown else _size_and_mtime(path, now)
        return FileSeen(
            at=now,
            thread=thread,
            path=clean_line(str(path)),
            size=size,
            modified=modified,
            archived=self._is_archived(path),
            compressed=path.suffix == ".zst",
            skimmed=grown is not None and grown.skimmed,
            unreadable=unreadable,
        )

    def _unlisted(self) -> str | None:
        """Return which directories cannot be listed, the first one by its name, or None if all can."""
        found = {
            path: reason
            for path, reason in self._follower.unreadable.items()
            if self._thread_id(PurePath(path)) is None
        }
        if not found:
            return None
        first = min(found)
        more = f", and {len(found) - 1} more directories" if len(found) > 1 else ""
        return clean_line(f"{first}: {found[first]}{more}")

    def _unread(self) -> str:
        """Return how many sessions of the last day are not read, and what reading them costs."""
        unread = self._follower.unread_recent
        if not unread:
            return ""
        return f"; {len(unread)} more of the last day ({sum(unread.values()) / 1e6:.0f} MB) {NOT_READ}"

    def _health(self) -> SourceSeen:
        trouble = self._problem() or self._unlisted() or self._names_problem
        detail = (
            trouble
            or f"{len(self._readers) + len(self._restored)} sessions of {clean_line(str(self._where()))}"
            f"{self._unread()}"
        )
        return SourceSeen(at=self._clock.now(), name=self.name, ok=trouble is None, detail=detail)


class RolloutSource(SessionLogSource):
    """Reads the rollouts of Codex.

    Args:
        newest: how many of the newest sessions are read at first; None: all.
        scheduler: notified of activity, and of commands that start.
        known: of earlier, for a single pass; None: all rollouts are read.
        whole: threads whose rollouts are read whole at first.
    """

    name = "codex"
    marks = LINE_MARKS

    def __init__(
        self,
        home: CodexHome,
        newest: int | None,
        clock: Clock,
        scheduler: PollScheduler,
        known: KnownThreads | None = None,
        whole: Container[str] = (),
    ) -> None:
        super().__init__([home.sessions, home.archived], newest, clock, scheduler, known, whole)
        self._home = home
        self._locked: frozenset[str] | None = None
        """Threads whose writer locks were held at the start."""

    def _is_open(self, thread: str) -> bool:
        if self._locked is None:
            self._locked = frozenset(locks(self._home, 0.0).holders)
        return thread in self._locked

    def _thread_id(self, path: PurePath) -> str | None:
        return thread_id(path)

    def _problem(self) -> str | None:
        return problem(self._home)

    def _where(self) -> Path:
        return self._home.root

    def _list_names(self) -> list[ThreadNamed]:
        index = read_names(self._home)
        self._names_problem = index.problem
        return index.names

    def _is_archived(self, path: Path) -> bool:
        return self._home.is_archived(path)


def _size_and_mtime(path: Path, now: float) -> tuple[int, float]:
    """Return a file's size in bytes and its time of change; 0 and now where it is gone."""
    try:
        stat = path.stat()
    except OSError:
        return 0, now
    return stat.st_size, possible_time(stat.st_mtime) or 0.0


class TranscriptSource(SessionLogSource):
    """Reads the transcripts of Claude Code, those of sub-agents too.

    Args:
        home: the configuration directory to follow.
        newest: how many of the newest sessions are read at first; None: all.
        scheduler: notified of activity, and of commands that start.
        whole: threads whose transcripts are read whole at first.
    """

    name = "claude"
    marks = claude.LINE_MARKS
    skim_above = 1 << 20  # before the first answer it has 120 KB of instructions and tools

    def __init__(
        self,
        home: claude.ClaudeHome,
        newest: int | None,
        clock: Clock,
        scheduler: PollScheduler,
        whole: Container[str] = (),
    ) -> None:
        super().__init__([home.projects], newest, clock, scheduler, whole=whole)
        self._home = home

    def _age_key(self, path: str) -> float:
        return claude.last_record_at(path) or 0.0  # their names are random

    def _thread_id(self, path: PurePath) -> str | None:
        return claude.thread_id(path)

    def _problem(self) -> str | None:
        return claude.problem(self._home)

    def _where(self) -> Path:
        return self._home.root
