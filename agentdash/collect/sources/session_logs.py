"""Session logs (Codex's rollouts, Claude Code's transcripts): found, followed as they grow and move, and
read by the readers of their CLIs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Sequence
from functools import cache
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from agentdash.agents.claude import home as claude
from agentdash.agents.codex.home import (
    LINE_MARKS,
    CodexHome,
    NameIndex,
    locks,
    problem,
    read_names,
    thread_id,
)
from agentdash.agents.line_events import LineEvents, oversized_lines
from agentdash.agents.session_logs import reader_of_log
from agentdash.collect.scheduler import PollScheduler
from agentdash.collect.tail.follower import Change, FileMoved, FileVanished, LogFollower
from agentdash.collect.tail.log_file import FileGrown, FileUnreadable, ReadLimits
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
from agentdash.model.fleet import Fleet
from agentdash.model.limits import SKIM_ABOVE_BYTES
from agentdash.model.line_marks import LineMarks
from agentdash.model.sanitize import clean_line
from agentdash.model.source import NOT_READ, Clock, Emit, FleetChannel
from agentdash.model.times import possible_time

_BATCH_BYTES: Final = 1 << 18
"""Read and reduced at once: small, so that the screen is drawn in between."""
_RECENT_S: Final = 86_400.0
"""Sessions changed within a day are read at first even beyond the configured number, up to a bound."""
_NAMES_INTERVAL_S: Final = 10.0
"""Between two readings of the session index: names change seldom, and by hand."""


class SessionLogs(NamedTuple):
    """The session logs of one CLI."""

    name: str
    root: Path
    """The directory that they belong to."""
    folders: Sequence[Path]
    """Those that are searched."""
    thread_id: Callable[[PurePath], str | None]
    """Returns the thread whose log a file is, or None if it is not a log."""
    problem: Callable[[], str | None]
    """Returns why there are no readable sessions, in one line."""
    marks: LineMarks
    """What lines contain that are read even where only head and tail of a log are."""
    skim_above: int = SKIM_ABOVE_BYTES
    """Size above which that is so at first."""
    is_open: Callable[[str], bool] = lambda _: False
    """Whether a program is known to have a thread's log open."""
    names: Callable[[], NameIndex] = NameIndex
    """Returns the names of threads that stand in no log."""


def rollouts_of(home: CodexHome) -> SessionLogs:
    """Return the rollouts of Codex."""
    locked = cache(lambda: frozenset(locks(home, 0.0).holders))
    return SessionLogs(
        name="codex",
        root=home.root,
        folders=(home.sessions, home.archived),
        thread_id=thread_id,
        problem=lambda: problem(home),
        marks=LINE_MARKS,
        is_open=lambda thread: thread in locked(),
        names=lambda: read_names(home),
    )


def transcripts_of(home: claude.ClaudeHome) -> SessionLogs:
    """Return the transcripts of Claude Code, those of sub-agents too."""
    return SessionLogs(
        name="claude",
        root=home.root,
        folders=(home.projects,),
        thread_id=claude.thread_id,
        problem=lambda: claude.problem(home),
        marks=claude.LINE_MARKS,
        skim_above=1 << 20,  # before the first answer it has 120 KB of instructions and tools
    )


class SessionLogSource:
    """Reads session logs as they are found, grow, move and vanish.

    Args:
        newest: how many of the newest sessions are read at first; None: all.
        scheduler: notified of activity, and of commands that start.
        whole: threads whose logs are read whole at first.
    """

    def __init__(
        self,
        logs: SessionLogs,
        newest: int | None,
        clock: Clock,
        scheduler: PollScheduler,
        whole: Container[str] = (),
    ) -> None:
        self.name = logs.name
        self._logs = logs
        self._clock = clock
        self._scheduler = scheduler
        self._follower = LogFollower(
            logs.folders,
            logs.thread_id,
            ReadLimits(logs.skim_above, batch=_BATCH_BYTES, marks=logs.marks),
            newest=newest,
            since=clock.now() - _RECENT_S,
            is_open=logs.is_open,
            whole=whole,
        )
        self._readers: dict[str, LineEvents] = {}
        self._skimmed: set[str] = set()
        """Threads of which only head and tail were read."""
        self._names: dict[str, ThreadNamed] = {}
        self._names_problem: str | None = None
        """Why names that stand in no log cannot be read."""

    async def poll(self, fleet: Fleet) -> Sequence[Event]:
        """Return the events of every session that changed, large ones by head and tail."""
        del fleet
        self._read_names()
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
            changed = self._read_names()
            emit([*(named for named in changed if named.thread in self._readers), self._health()])
            await asyncio.sleep(_NAMES_INTERVAL_S)

    def _read_names(self) -> list[ThreadNamed]:
        """Read the names of threads; return those that have changed."""
        index = self._logs.names()
        self._names_problem = index.problem
        changed = [named for named in index.names if self._names.get(named.thread) != named]
        self._names |= {named.thread: named for named in changed}
        return changed

    def _events(self, change: Change) -> list[Event]:
        now = self._clock.now()
        path = change.path
        thread = self._logs.thread_id(path)
        if thread is None:  # a directory that cannot be listed
            return [self._health()]
        match change:
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
            skimmed=grown is not None and grown.skimmed,
            unreadable=unreadable,
        )

    def _unlisted(self) -> str | None:
        """Return which directories cannot be listed, the first one by its name, or None if all can."""
        found = {
            path: reason
            for path, reason in self._follower.unreadable.items()
            if self._logs.thread_id(PurePath(path)) is None
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
        trouble = self._logs.problem() or self._unlisted() or self._names_problem
        where = clean_line(str(self._logs.root))
        detail = trouble or f"{len(self._readers)} sessions of {where}{self._unread()}"
        return SourceSeen(at=self._clock.now(), name=self.name, ok=trouble is None, detail=detail)


def _size_and_mtime(path: Path, now: float) -> tuple[int, float]:
    """Return a file's size in bytes and its time of change; 0 and now where it is gone."""
    try:
        stat = path.stat()
    except OSError:
        return 0, now
    return stat.st_size, possible_time(stat.st_mtime) or 0.0
