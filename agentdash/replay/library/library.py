"""All threads of a Codex home, newest first: listed by their file names, then completed as the files are
read.

Independent of any screen: `Library.fill` yields entries as more of their files is read, those that the
screen wants first.
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
from agentdash.collect.tail.log_file import FileGrown, FileUnreadable, LogFile, ReadLimits
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.clock import Clock
from agentdash.model.events import Event, FileGapSkipped, FileSeen, LineSkipped, LocksSeen, ProcessesCounted
from agentdash.model.findings import Verdict
from agentdash.model.fleet import Fleet, Thread
from agentdash.model.limits import MAX_LINE_BYTES, READ_BLOCK_BYTES, SKIM_ABOVE_BYTES
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.tokens import ModelUsage
from agentdash.model.worker import Worker

Depth = Literal["listed", "header", "skimmed", "read"]
"""How much of a file has been read: nothing, its first line, head and tail, all of it."""

_MAX_WHOLE_BYTES: Final = 4 << 20
"""Largest file that is read whole without being opened: that takes about a hundredth of a second."""
_OWNER_UNCERTAIN_S: Final = 600.0
"""Seconds after its last change for which a file without a known owner may still have one: Codex before
0.148 takes no lock."""
_MAX_TITLE_CHARS: Final = 200
"""More than any column shows."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A past thread, as far as its file has been read. None and empty: not known yet, or not stated."""

    id: str
    path: Path
    begun: float | None
    """Start (unix seconds)."""
    archived: bool = False
    compressed: bool = False
    depth: Depth = "listed"
    size: int = 0
    """Bytes on disk."""
    parent: str | None = None
    """Id of the thread that it was spawned by or forked from."""
    fork: bool = False
    helper: bool = False
    """Whether Codex runs it for itself (review, guardian, titles): helpers are not judged."""
    title: str = ""
    """Its name, or its first prompt."""
    cwd: str | None = None
    version: str | None = None
    model: str | None = None
    source: str | None = None
    """What started it: `cli`, `exec`, `vscode`, `subagent` ... (`source` of `session_meta`, since 0.36)."""
    prompt: str = ""
    """The first message of the user."""
    last_prompt: str = ""
    """The last message of the user that was read."""
    took: float | None = None
    """Seconds from its first line to its last."""
    state: State | None = None
    why: str = ""
    verdict: Verdict | None = None
    findings: tuple[str, ...] = ()
    """Kinds of its findings."""
    denied: bool = False
    """Whether its sandbox refused anything, got past or not."""
    children: tuple[str, ...] = ()
    tokens: int | None = None
    """Those that it used itself."""
    by_model: tuple[ModelUsage, ...] = ()
    """The same by model."""
    problem: str | None = None
    """Why it cannot be read, or not to its end."""

    @property
    def key(self) -> str:
        """The unique key: its path, since two files may have the same thread id."""
        return str(self.path)


class Library:
    """The past sessions of a Codex home. Read-only.

    Args:
        home: the Codex home.
        clock: the time against which ages are measured.
    """

    def __init__(self, home: CodexHome, clock: Clock) -> None:
        self.home = home
        self._clock = clock
        self._names: dict[str, str] | None = None
        """Names of threads, from the session index."""
        self._locks: LocksSeen | None = None

    @property
    def problem(self) -> str | None:
        """Why there are no sessions, in one line; None if there are some."""
        return problem(self.home)

    def entries(self) -> Iterator[Entry]:
        """Yield all threads, newest first, from their file names alone."""
        for path in self.home.rollouts():
            yield Entry(
                id=thread_id(path) or path.stem,
                path=path,
                begun=begun_at(path),
                archived=path.is_relative_to(self.home.archived),
                compressed=path.suffix == ".zst",
            )

    def refresh(self, entry: Entry) -> Entry:
        """Return an entry of an earlier listing, to be read again if its file has changed or it was
        active."""
        try:
            unchanged = entry.path.stat().st_size == entry.size
        except OSError:
            unchanged = False
        active = entry.state in (State.RUNNING, State.WAITING_APPROVAL, State.WAITING_INPUT)
        return entry if unchanged and not active else replace(entry, depth="listed")

    def fill(self, entries: Sequence[Entry], wanted: Callable[[], Iterable[str]]) -> Iterator[Entry]:
        """Yield the entries as they are read: first lines, then heads and tails, then whole files.

        First lines name the parents, so that families are complete early.

        Args:
            wanted: returns keys of entries on the screen; these are skimmed before any other.
        """
        known = {entry.key: entry for entry in entries}
        self._names = {named.thread: named.name for named in names(self.home)}
        self._locks = locks(self.home, self._clock.now())
        for read in (self.read_header, self.skim, self.read_whole):
            for entry in entries:
                for key in wanted():
                    if key in known and known[key].depth in ("listed", "header"):
                        known[key] = self.skim(known[key])
                        yield known[key]
                if (completed := read(known[entry.key])) is not known[entry.key]:
                    known[entry.key] = completed
                    yield completed

    # ------------------------------------------------------------ reading

    def read_header(self, entry: Entry) -> Entry:
        """Return an entry with the facts of its first line: directory, version, parent."""
        if entry.depth != "listed":
            return entry
        try:
            size = entry.path.stat().st_size
            events = RolloutReader(entry.id).read(islice(open_lines(entry.path), 1))
        except OSError as error:
            return replace(entry, depth="header", problem=clean_line(error.strerror or str(error)))
        thread = reduce(Fleet(), events).threads.get(entry.id, Thread(entry.id))
        return replace(self._with_thread(entry, thread), depth="header", size=size)

    def skim(self, entry: Entry) -> Entry:
        """Return an entry judged by head and tail of its file; by all of it if it is small."""
        return self._judge(entry, SKIM_ABOVE_BYTES) if entry.depth in ("listed", "header") else entry

    def read_whole(self, entry: Entry) -> Entry:
        """Return a skimmed entry judged by all of its file, unless that is large."""
        if entry.depth != "skimmed" or entry.size > _MAX_WHOLE_BYTES:
            return entry
        return self._judge(entry, None)

    def _judge(self, entry: Entry, skim_above: int | None) -> Entry:
        fleet, skimmed, size, modified = Fleet(), False, entry.size, 0.0
        trouble: str | None = None
        reader = RolloutReader(entry.id)
        limits = ReadLimits(skim_above, MAX_LINE_BYTES, READ_BLOCK_BYTES)
        try:
            for change in LogFile(str(entry.path), limits).read():
                if isinstance(change, FileGrown):
                    fleet = reduce(fleet, _events(entry, change, reader))
                    skimmed, size, modified = change.skimmed, change.size, change.modified
                elif isinstance(change, FileUnreadable):
                    trouble = change.reason
        except OSError as error:
            trouble = clean_line(error.strerror or str(error))
        fleet = reduce(fleet, self._ownership(modified))
        thread = fleet.threads.get(entry.id, Thread(entry.id))
        if trouble is None and thread.created_at is None:
            trouble = "no rollout: it has no header" if thread.lines or thread.skipped else "empty"
        depth: Depth = "skimmed" if skimmed else "read"
        entry = replace(self._with_thread(entry, thread), depth=depth, size=size, problem=trouble)
        workers = build_snapshot(fleet, self._clock.now()).workers
        worker = next((worker for worker in workers if worker.id == entry.id), None)
        return _with_verdict(entry, worker) if worker and thread.created_at is not None else entry

    def _ownership(self, modified: float) -> list[Event]:
        """Return events for the current owners of threads.

        For a file that changed recently, finding no owner does not prove that there is none.
        """
        now = self._clock.now()
        held = self._locks or locks(self.home, now)
        return [held] if now - modified < _OWNER_UNCERTAIN_S else [held, ProcessesCounted(at=now)]

    def _with_thread(self, entry: Entry, thread: Thread) -> Entry:
        name = (self._names or {}).get(entry.id) or thread.name or thread.nickname
        took = thread.last_at - thread.created_at if thread.last_at and thread.created_at else None
        return replace(
            entry,
            begun=entry.begun or thread.created_at,
            parent=thread.parent or thread.forked_from,
            fork=thread.parent is None and thread.forked_from is not None,
            helper=thread.helper,
            title=clean_line(name or thread.prompt or "", _MAX_TITLE_CHARS),
            cwd=thread.cwd,
            version=thread.version,
            model=thread.model,
            source=thread.source,
            prompt=clean_line(thread.prompt or "", _MAX_TITLE_CHARS),
            last_prompt=clean_line(thread.last_prompt or "", _MAX_TITLE_CHARS),
            took=took,
            children=thread.children,
            tokens=thread.tokens.total,
            by_model=thread.tokens.by_model,
        )


def _events(entry: Entry, grown: FileGrown, reader: RolloutReader) -> list[Event]:
    at = grown.modified
    events: list[Event] = [
        FileSeen(at=at, thread=entry.id, path=entry.key, size=grown.size, modified=at, skimmed=grown.skimmed)
    ]
    if grown.skimmed and grown.first == 0:
        events.append(FileGapSkipped(at=at, thread=entry.id))
    oversized = LineSkipped(at=at, thread=entry.id, what="oversized", detail="longer than is read")
    return [*events, *[oversized] * grown.oversized, *reader.read(grown.lines, grown.first)]


def _with_verdict(entry: Entry, worker: Worker) -> Entry:
    return replace(
        entry,
        state=worker.state,
        why=worker.assessment.why,
        verdict=worker.sandbox.verdict,
        findings=tuple(dict.fromkeys(str(finding.kind) for finding in worker.sandbox.findings)),
        denied=bool(worker.sandbox.denials),
    )
