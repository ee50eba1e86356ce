"""Every thread under a Codex home, newest first: listed by the names of the files alone, then filled in as these are read.

Nothing here knows of a screen: `Library.fill` gives entries as they become better known, and asks which ones somebody is looking at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.home import CodexHome, begun_at, locks, names, open_lines, problem, thread_id
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.collect.tail.log_file import FileGrown, FileUnreadable, Limits, LogFile
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.clock import Clock
from agentdash.model.events import Event, FileGapSkipped, FileSeen, LineSkipped, LocksSeen, ProcessesCounted
from agentdash.model.findings import Verdict
from agentdash.model.fleet import Fleet, Thread
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.worker import Worker

Depth = Literal["listed", "begun", "skimmed", "read"]
"""How much of a file has been read: nothing, its first line, head and tail, all of it."""

_SKIM_ABOVE: Final = 1 << 17
_WHOLE_BELOW: Final = 4 << 20
"""Bytes of the largest file that is read whole without being asked for: a hundredth of a second."""
_BATCH: Final = 1 << 20
_LINE_LIMIT: Final = 32 << 20
_FRESH: Final = 600.0
"""Seconds after its last change for which a file that nobody is known to hold may still be somebody's: Codex before 0.148 takes no lock."""
_TITLE: Final = 200


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thread of the past, as far as its file has been read. None and empty is what is not known yet, or not at all."""

    id: str
    path: Path
    begun: float | None
    """When it began (unix seconds)."""
    archived: bool = False
    compressed: bool = False
    depth: Depth = "listed"
    size: int = 0
    """Bytes on disk."""
    parent: str | None = None
    """The thread that spawned it, or that it was forked from."""
    fork: bool = False
    helper: bool = False
    """Codex runs it for itself (review, guardian, titles): it is not judged."""
    title: str = ""
    """Its name, or the first thing that the user said."""
    cwd: str | None = None
    version: str | None = None
    model: str | None = None
    took: float | None = None
    """Seconds from its first line to its last."""
    state: State | None = None
    why: str = ""
    verdict: Verdict | None = None
    findings: tuple[str, ...] = ()
    """Their kinds."""
    children: tuple[str, ...] = ()
    tokens: int | None = None
    problem: str | None = None
    """Why it cannot be read, or not to its end."""

    @property
    def key(self) -> str:
        """What tells it from all others: two files may claim to be the same thread."""
        return str(self.path)


class Library:
    """What there is to replay in a Codex home.

    Args:
        home: read only, like everything.
        clock: what "lately" is counted by.
    """

    def __init__(self, home: CodexHome, clock: Clock) -> None:
        self.home, self._clock = home, clock
        self._names: dict[str, str] | None = None
        self._locks: LocksSeen | None = None

    @property
    def problem(self) -> str | None:
        """Why there is nothing to see, in one line; None where there are sessions."""
        return problem(self.home)

    def entries(self) -> Iterator[Entry]:
        """All threads, newest first, by the names of their files: nothing is opened."""
        for path in self.home.rollouts():
            thread = thread_id(path) or path.stem
            archived = path.is_relative_to(self.home.archived)
            yield Entry(thread, path, begun_at(path), archived, path.suffix == ".zst")

    def again(self, entry: Entry) -> Entry:
        """An entry that was known before: to be read anew if its file has changed since, or if it was at work."""
        try:
            unchanged = entry.path.stat().st_size == entry.size
        except OSError:
            unchanged = False
        at_work = entry.state in (State.RUNNING, State.WAITING_APPROVAL, State.WAITING_INPUT)
        return entry if unchanged and not at_work else replace(entry, depth="listed")

    def fill(self, entries: Sequence[Entry], wanted: Callable[[], Iterable[str]]) -> Iterator[Entry]:
        """The entries again as they become better known: first lines, which tell the families, then heads and tails, then whole files.

        Args:
            wanted: keys of entries that somebody is looking at; these are skimmed before any other.
        """
        known = {entry.key: entry for entry in entries}
        self._names = {named.thread: named.name for named in names(self.home)}
        self._locks = locks(self.home, self._clock.now())
        for step in (self.begin, self.skim, self.read):
            for entry in entries:
                for key in wanted():
                    if key in known and known[key].depth in ("listed", "begun"):
                        known[key] = self.skim(known[key])
                        yield known[key]
                if (better := step(known[entry.key])) is not known[entry.key]:
                    known[entry.key] = better
                    yield better

    # ------------------------------------------------------------ three depths

    def begin(self, entry: Entry) -> Entry:
        """With what its first line says: where it ran, which Codex, whose child or fork it is."""
        if entry.depth != "listed":
            return entry
        try:
            size = entry.path.stat().st_size
            events = RolloutReader(entry.id).read(islice(open_lines(entry.path), 1))
        except OSError as error:
            return replace(entry, depth="begun", problem=clean_line(error.strerror or str(error)))
        thread = reduce(Fleet(), events).threads.get(entry.id, Thread(entry.id))
        return replace(self._told(entry, thread), depth="begun", size=size)

    def skim(self, entry: Entry) -> Entry:
        """Judged by head and tail; small files by all of it."""
        return self._assessment(entry, _SKIM_ABOVE) if entry.depth in ("listed", "begun") else entry

    def read(self, entry: Entry) -> Entry:
        """Judged by all of it, unless that would take long."""
        return (
            self._assessment(entry, None)
            if entry.depth == "skimmed" and entry.size <= _WHOLE_BELOW
            else entry
        )

    def _assessment(self, entry: Entry, skim_above: int | None) -> Entry:
        fleet, trouble, skimmed, size, modified = Fleet(), None, False, entry.size, 0.0
        reader = RolloutReader(entry.id)
        try:
            for change in LogFile(str(entry.path), Limits(skim_above, _LINE_LIMIT, _BATCH)).read():
                if isinstance(change, FileGrown):
                    fleet = reduce(fleet, _events(entry, change, reader))
                    skimmed, size, modified = change.skimmed, change.size, change.modified
                elif isinstance(change, FileUnreadable):
                    trouble = change.why
        except OSError as error:
            trouble = clean_line(error.strerror or str(error))
        fleet = reduce(fleet, self._present(modified))
        thread = fleet.threads.get(entry.id, Thread(entry.id))
        worker = next((w for w in build_snapshot(fleet, self._clock.now()).workers if w.id == entry.id), None)
        if trouble is None and thread.created_at is None:
            trouble = "no rollout: it has no header" if thread.lines or thread.skipped else "empty"
        entry = replace(
            self._told(entry, thread), depth="skimmed" if skimmed else "read", size=size, problem=trouble
        )
        return _with_verdict(entry, worker) if worker and thread.created_at is not None else entry

    def _present(self, modified: float) -> list[Event]:
        """What is known of who holds threads now; of a file that changed lately, nobody being found does not prove that it was left."""
        now = self._clock.now()
        held = self._locks or locks(self.home, now)
        return [held] if now - modified < _FRESH else [held, ProcessesCounted(at=now)]

    def _told(self, entry: Entry, thread: Thread) -> Entry:
        """With what the thread says of itself."""
        name = (self._names or {}).get(entry.id) or thread.name or thread.nickname
        took = thread.last_at - thread.created_at if thread.last_at and thread.created_at else None
        return replace(
            entry,
            begun=entry.begun or thread.created_at,
            parent=thread.parent or thread.forked_from,
            fork=thread.parent is None and thread.forked_from is not None,
            helper=thread.helper,
            title=clean_line(name or thread.prompt or "", _TITLE),
            cwd=thread.cwd,
            version=thread.version,
            model=thread.model,
            took=took,
            children=thread.children,
            tokens=thread.tokens.total,
        )


def _events(entry: Entry, grown: FileGrown, reader: RolloutReader) -> list[Event]:
    at = grown.modified
    seen: Event = FileSeen(
        at=at, thread=entry.id, path=entry.key, size=grown.size, modified=at, skimmed=grown.skimmed
    )
    gap: list[Event] = [FileGapSkipped(at=at, thread=entry.id)] if grown.skimmed and grown.first == 0 else []
    oversized: list[Event] = [
        LineSkipped(at=at, thread=entry.id, what="oversized", detail="longer than is read")
    ] * grown.oversized
    return [seen, *gap, *oversized, *reader.read(grown.lines, grown.first)]


def _with_verdict(entry: Entry, worker: Worker) -> Entry:
    kinds = tuple(dict.fromkeys(finding.kind for finding in worker.sandbox.findings))
    return replace(
        entry, state=worker.state, why=worker.assessment.why, verdict=worker.sandbox.verdict, findings=kinds
    )
