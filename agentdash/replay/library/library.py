"""All threads of a Codex home and of other CLIs, newest first: listed by their file names, then completed as
the files are read.

Independent of any screen: `Library.fill` yields entries as more of their files is read, those that the
screen wants first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from agentdash.agents.adapter import UnreadableSessionError
from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import (
    CodexHome,
    begun_at,
    locks,
    problem,
    read_names,
    thread_id,
)
from agentdash.agents.registry import adapters
from agentdash.agents.session_logs import SessionLog, agent_of_log, other_logs, thread_of_log
from agentdash.agents.session_rows import log_stat
from agentdash.collect.processes.sensor import ProcessSensor
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.causes import causes
from agentdash.model.denials import may_not
from agentdash.model.events import (
    LocksSeen,
    ObservationsRecalled,
    ProcessesCounted,
    ProcessSeen,
)
from agentdash.model.fact import FactKind
from agentdash.model.fleet import Fleet
from agentdash.model.memory import ThreadMemory
from agentdash.model.process import Process
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock
from agentdash.model.states import State
from agentdash.model.thread import Thread, without_record
from agentdash.model.worker import Worker
from agentdash.replay.family import unreadable_line
from agentdash.replay.journal import recordings
from agentdash.replay.library.entry import RECORDING, Entry
from agentdash.replay.streams import file_seen, past_requests
from agentdash.replay.whole_log import read_whole

_MAX_TITLE_CHARS: Final = 200
"""More than any column shows."""


class Library:
    """The past sessions of a Codex home, and of other CLIs. Read-only.

    Args:
        clock: the time against which ages are measured.
        claude_home: the configuration directory of Claude Code; None: sessions of other CLIs are left out.
        recordings: the directory of recordings; None: they are left out.
        recall: returns what was seen of threads while they ran.
    """

    def __init__(
        self,
        home: CodexHome,
        clock: Clock,
        claude_home: ClaudeHome | None = None,
        recordings: Path | None = None,
        recall: Callable[[CodexHome, Iterable[str]], Mapping[str, ThreadMemory]] = lambda *_: {},
    ) -> None:
        self.home = home
        self._claude_home = claude_home
        self._recordings = recordings
        self._clock = clock
        self._recall = recall
        self._memories: Mapping[str, ThreadMemory] = {}
        self._names: dict[str, str] | None = None
        """Names of threads, from the session index."""
        self._loaded: Mapping[str, int] = {}
        """The processes that have threads loaded, by thread or path."""
        self._paths: dict[str, Path] = {}
        """The logs of all threads."""
        self._parents: dict[str, Thread | None] = {}
        """Threads, as far as their children are compared with them."""
        self.unread: dict[str, None] = {}
        """Directories and indexes that cannot be read, and why; clean lines, each once."""

    @property
    def problem(self) -> str | None:
        """Why no sessions are listed, in one line, or None."""
        return problem(self.home)

    def entries(self) -> Iterator[Entry]:
        """Yield all threads, newest first, from their files' names alone."""
        yield from heapq.merge(
            self._codex_entries(),
            self._other_entries(),
            self._recording_entries(),
            key=lambda each: each.listed_at,
            reverse=True,
        )

    def _codex_entries(self) -> Iterator[Entry]:
        for path in self.home.rollouts(self._note):
            begun = begun_at(path)
            yield Entry(
                id=thread_id(path) or path.stem,
                path=path,
                begun=begun,
                listed_at=begun or 0.0,
                archived=self.home.is_archived(path),
                compressed=path.suffix == ".zst",
            )

    def _note(self, error: OSError) -> None:
        self.unread[unreadable_line(error)] = None

    def _other_entries(self) -> Iterator[Entry]:
        for written, path in other_logs(self._claude_home, self._note) if self._claude_home else ():
            yield Entry(
                id=thread_of_log(path) or path.stem,
                path=path,
                begun=None,
                agent=agent_of_log(path),
                listed_at=written,
            )

    def _recording_entries(self) -> Iterator[Entry]:
        found = recordings(self._recordings) if self._recordings else ()
        for recording in sorted(found, key=lambda each: each.begun, reverse=True):
            yield Entry(
                id=recording.name,
                path=recording.parts[0].path,
                begun=recording.begun,
                agent=RECORDING,
                listed_at=recording.begun,
                is_read=True,
                title="Recording of panes and processes",
                took=max(0.0, recording.until - recording.begun),
            )

    def refresh(self, entry: Entry) -> Entry:
        """Return an entry of an earlier listing, to be read again if its file has changed or it was
        active."""
        if entry.recording:
            return entry
        try:
            unchanged = log_stat(entry.path).st_size == entry.size
        except OSError:
            unchanged = False
        active = entry.state in (State.RUNNING, State.WAITING_APPROVAL, State.WAITING_INPUT)
        return entry if unchanged and not active else replace(entry, is_read=False)

    def fill(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Yield the entries as they are read."""
        index = read_names(self.home)
        self._names = {named.thread: named.name for named in index.names}
        if index.problem is not None:
            self.unread[index.problem] = None
        self._loaded = _loaded(self.home, self._clock.now())
        self._paths = {entry.id: entry.path for entry in reversed(entries)}
        self._memories = self._recall(self.home, self._paths)
        self._parents = {}
        yield from (self.read(entry) for entry in entries if not entry.is_read)

    # ------------------------------------------------------------ reading

    def read(self, entry: Entry) -> Entry:
        """Return an entry judged by its file."""
        now = self._clock.now()
        fleet, size, problem = _read_log(entry.path, entry.id)
        thread = fleet.threads.get(entry.id, Thread(entry.id))
        workers = build_snapshot(self._fleet(entry, fleet, thread, now), now).workers
        worker = next((worker for worker in workers if worker.id == entry.id), None)
        self._parents[entry.id] = thread.as_parent()
        name = (self._names or {}).get(entry.id) or thread.name or thread.nickname or thread.prompt
        took = thread.last_at - thread.created_at if thread.last_at and thread.created_at else None
        return replace(
            entry,
            is_read=True,
            size=size,
            problem=without_record(size) if not problem and not thread.lines else problem,
            begun=thread.created_at or entry.begun,  # names of old files have local times
            parent=thread.parent or thread.forked_from,
            fork=thread.parent is None and thread.forked_from is not None,
            helper=thread.helper,
            title=clean_line(name or "", _MAX_TITLE_CHARS),
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
            **(_verdict(worker) if worker is not None else {}),
        )

    def _fleet(self, entry: Entry, fleet: Fleet, thread: Thread, now: float) -> Fleet:
        """Return what was read of a thread with what is known of it from elsewhere: its parent, its process,
        what was seen while it ran, and what was asked for."""
        parent = self._parent(thread)
        threads = fleet.threads if parent is None else {parent.id: parent, **fleet.threads}
        memories = self._memories_of(entry.id, thread.parent)
        recalled = [ObservationsRecalled(at=now, memory=memory) for memory in memories]
        # a sub-agent of Claude Code runs in the process of its session
        names = [entry.id, clean_line(str(entry.path)), (thread.parent or "") * (entry.agent == "claude")]
        pid = next((self._loaded[name] for name in names if name in self._loaded), None)
        locked = LocksSeen(at=now, holders={} if pid is None else {entry.id: pid})
        owned = [locked, ProcessesCounted(at=now)]
        fleet = reduce(replace(fleet, threads=threads), [*owned, *recalled])
        return fleet if entry.id in fleet.requests else reduce(fleet, past_requests(thread, now))

    def _memories_of(self, *threads: str | None) -> list[ThreadMemory]:
        return [self._memories[thread] for thread in threads if thread and thread in self._memories]

    def _parent(self, thread: Thread) -> Thread | None:
        """Return the parent of a thread, as far as it is compared with it, or None."""
        parent = thread.parent
        if parent is None or parent == thread.id or parent not in self._paths:
            return None
        if parent not in self._parents:
            found = _read_log(self._paths[parent], parent)[0].threads.get(parent)
            self._parents[parent] = None if found is None else found.as_parent()
        return self._parents[parent]


def _read_log(path: Path, thread: str) -> tuple[Fleet, int, str | None]:
    """Return what a file has of a thread, its size in bytes, and why it cannot be read, or not to its end."""
    seen = file_seen(path, thread)
    fleet, problem = read_whole(SessionLog(path, thread, agent_of_log(path)), seen)
    return fleet, seen.size, problem


def _verdict(worker: Worker) -> dict[str, Any]:
    """Return the fields of an entry that are judged."""
    return {
        "state": worker.state,
        "why": worker.assessment.why,
        "verdict": worker.sandbox.verdict,
        "findings": tuple(dict.fromkeys(str(finding.kind) for finding in worker.sandbox.findings)),
        "denied": bool(worker.sandbox.denials),
        "reason": _reason(worker),
    }


def _reason(worker: Worker) -> str:
    """Return why a session deserves a look: what was denied, how its sandbox differed, or how it ended."""
    denials = sorted(worker.sandbox.denials, key=lambda each: (each.got_past, -each.last))
    if denials:
        denial = denials[0]
        words = may_not(denial.operation) if denial.certainty == "certain" else "likely denied:"
        return clean_line(f"{words} {denial.target or denial.quote}", _MAX_TITLE_CHARS)
    if worker.mismatch and (found := causes(worker)):
        return found[0].words
    fact = worker.fact
    is_plain = fact.kind in (FactKind.DONE, FactKind.WORK) and fact.object
    return clean_line(fact.object if is_plain else fact.text, _MAX_TITLE_CHARS)


def _loaded(home: CodexHome, at: float) -> dict[str, int]:
    """Return the processes that have threads loaded, by thread, or by the path of a log that they hold open.

    Args:
        at: now (unix seconds).
    """
    sensor = ProcessSensor()
    seen = [*sensor.poll(at), *sensor.poll(at)]  # the first one defers processes in the middle of an exec
    pids: dict[str, int] = {}
    for process in (event.process for event in seen if isinstance(event, ProcessSeen)):
        pids |= dict.fromkeys(process.rollouts, process.pid)
        if (thread := _thread_of(process, at)) is not None:
            pids[thread] = process.pid
    return pids | locks(home, at).holders


def _thread_of(process: Process, at: float) -> str | None:
    """Return the thread that the session file of a process names."""
    if process.zombie or process.agent is None:
        return None
    reader = adapters()[process.agent].session_files
    try:
        session = reader.read(process, at) if reader is not None else None
    except UnreadableSessionError:
        return None
    return session.session if session is not None else None
