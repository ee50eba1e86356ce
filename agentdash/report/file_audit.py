"""Audit one session file: read it, and judge its threads. Runs in worker processes too."""

from __future__ import annotations

import importlib
import os
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.agents.codex.home import open_lines
from agentdash.agents.codex.rollout.records import RECORD_START
from agentdash.agents.codex.rollout.sparse_reader import SparseReader, Suspicion
from agentdash.agents.session_logs import SessionLog, log_of, rollout_reader
from agentdash.collect.sources.denied_paths import denied_paths
from agentdash.engine.detect import HINTS, may_show_denial, may_show_sandbox
from agentdash.engine.reduce.denial_ledger import words_of_past
from agentdash.engine.reduce.fleet import reduce, reduce_log
from agentdash.engine.snapshot import build_snapshot
from agentdash.files import file_size, is_record, open_stream
from agentdash.model.events import FileSeen, LocksSeen, ObservationsRecalled, PathsSeen, ProcessesCounted
from agentdash.model.fleet import Fleet
from agentdash.model.memory import ThreadMemory
from agentdash.model.patterns import Pattern
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread, without_record
from agentdash.report.audit import END_OF_TIME, AuditDigest, Recall, inputs_of, thread_name
from agentdash.report.check import thread_report, unreadable_report
from agentdash.report.elements import quantity

_BATCH_LINES: Final = 2_000
"""Lines held in memory at a time."""
_SUSPICION: Final = Suspicion(HINTS, may_show_sandbox, may_show_denial)
_IMPORTED_LATE: Final = (
    "agentdash.agents.codex.config.reader",
    "agentdash.sandbox.denials.detector",
    "agentdash.sandbox.denials.success",
    "agentdash.sandbox.flags.reader",
    "agentdash.sandbox.shell",
)
_DAMAGED: Final = {"malformed": "malformed", "oversized": "overlong"}
"""What was skipped of a file and is not known to be harmless, as other kinds of lines are."""
_MAX_TORN_BYTES: Final = 1 << 20
"""Of a last line that may be a whole record without its newline."""


class FileRead(NamedTuple):
    """A file as it was read."""

    digest: AuditDigest
    fleet: bytes | None = None
    """What is to be judged when all parents are known, packed; None if the report is complete."""
    is_kept: bool = True
    """Whether the digest may be kept: not of a file that could not be read."""


def import_late() -> None:
    """Import and compile what the first output that needs it would: worker processes share what exists
    before them."""
    for name in _IMPORTED_LATE:
        importlib.import_module(name)
    Pattern.compile_all()
    may_show_denial("")


# ---------------------------------------------------------------- reading


def _read_as_far(path: Path) -> tuple[Fleet, OSError | None]:
    """Return the fleet of one file as far as it can be read, and why it ends there."""
    log = log_of(path) or SessionLog(path, clean_line(path.name), "codex")
    failures: list[OSError] = []
    read = _read_transcript if log.agent == "claude" else _read_codex
    fleet, at = read(log, _lines(path, failures))
    if not failures:
        return fleet, None
    problem = clean_line(failures[0].strerror or str(failures[0]))
    return reduce(fleet, [_file_seen(log, problem, at)]), failures[0]


def _read_codex(log: SessionLog, lines: Iterator[bytes]) -> tuple[Fleet, float]:
    """Return the fleet of a rollout, and the time of its last line. Calls that show nothing are left out."""
    reader = SparseReader(rollout_reader(log.thread, log.path), _SUSPICION)
    thread = reduce_log(Thread(log.thread), [_file_seen(log)])  # its configuration lies beside it
    number = 1
    while batch := list(islice(lines, _BATCH_LINES)):
        for events in reader.read(batch, number):
            thread = reduce_log(thread, events)
            reader.watched = _watched(thread)
        number += len(batch)
    return Fleet(threads={thread.id: thread}), reader.at


def _watched(thread: Thread) -> tuple[str, ...] | None:
    """Return words: every call that matters by what came before it has one. None: any call may matter."""
    if thread.platform is None:  # an output may show the platform
        return None
    return words_of_past(thread)


def _read_transcript(log: SessionLog, lines: Iterator[bytes]) -> tuple[Fleet, float]:
    """Return the fleet of a transcript of Claude Code, and the time of its last line."""
    reader = log.reader()
    fleet = reduce(Fleet(), [_file_seen(log)])  # its settings lie beside it
    number = 1
    while batch := list(islice(lines, _BATCH_LINES)):
        fleet = reduce(fleet, reader.read(batch, number))
        number += len(batch)
    return fleet, reader.at


def _lines(path: Path, failures: list[OSError]) -> Iterator[bytes]:
    """Yield the lines of a file as far as it can be read; then add why it ends there."""
    try:
        yield from open_lines(path)
    except OSError as error:
        failures.append(error)


def _damage(path: Path, fleet: Fleet) -> str | None:
    """Return which lines of a file were lost: a record may be in them. The last one may still be written."""
    found = Counter({reason: count for thread in fleet.threads.values() for reason, count in thread.skipped})
    if found["malformed"] and _ends_within_a_line(path):
        found["malformed"] -= 1
    lost = [quantity(count, f"{word} line") for reason, word in _DAMAGED.items() if (count := found[reason])]
    return f"{' and '.join(lost)} skipped" if lost else None


def _ends_within_a_line(path: Path) -> bool:
    try:
        with open_stream(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _MAX_TORN_BYTES))
            end = file.read().rpartition(b"\n")[2]
    except OSError:
        return False
    # a torn record before another one (line ends of CR alone, a lost block) is not still being written
    return bool(end) and not is_record(end) and end.find(RECORD_START, 1) < 0


def _file_seen(log: SessionLog, unreadable: str | None = None, at: float = 0.0) -> FileSeen:
    place = clean_line(str(log.path.absolute()))
    return FileSeen(at=at, thread=log.thread, path=place, size=0, modified=at, unreadable=unreadable)


def read_file(path: Path, memory: ThreadMemory) -> FileRead:
    """Read a file, and judge it unless its threads are to be compared with others. Never raises.

    Args:
        memory: what an earlier agentdash saw of its thread.
    """
    fleet, error = _read_as_far(path)
    fleet = reduce(fleet, _end_of_time())
    if not any(thread.lines for thread in fleet.threads.values()):
        problem = _problem(fleet) or without_record(file_size(path))
        report = unreadable_report(thread_name(path), clean_line(str(path)), problem)
        return FileRead(AuditDigest(report, inputs=b"", threads=()), is_kept=False)
    digest = _digest(fleet)
    digest.damage = _damage(path, fleet)
    if digest.parents:
        return FileRead(digest, pickle.dumps(fleet), is_kept=error is None)
    judge_file(digest, fleet, lambda _: memory, {})
    return FileRead(digest, is_kept=error is None)


def _problem(fleet: Fleet) -> str | None:
    """Return why the file cannot be read, or not to its end."""
    files = (thread.file for thread in fleet.threads.values())
    return next((file.unreadable for file in files if file is not None and file.unreadable), None)


def judge_packed(read: FileRead, recall: Recall, known: Mapping[str, Thread]) -> AuditDigest:
    """Return the digest of a file, judged; `known` has all threads that it may be compared with."""
    if read.fleet is not None:
        # packed by this program, in a worker process of its own
        judge_file(read.digest, pickle.loads(read.fleet), recall, known)  # noqa: S301
    return read.digest


def judge_file(digest: AuditDigest, fleet: Fleet, recall: Recall, known: Mapping[str, Thread]) -> None:
    """Complete a digest by the report of the file's threads."""
    inputs = inputs_of(digest, recall, known)
    parents = {parent.id: parent for parent in inputs.parents}
    recalled = [ObservationsRecalled(at=END_OF_TIME, memory=memory) for memory in inputs.memories]
    family = replace(fleet, threads={**parents, **fleet.threads})
    family = reduce(family, [*recalled, PathsSeen(at=END_OF_TIME, paths=inputs.kinds)])
    workers = build_snapshot(family, END_OF_TIME).workers
    own = [worker for worker in workers if worker.id in fleet.threads]  # parents may be shown as well
    digest.report = thread_report(own[0], "") if own else None
    if digest.report is not None:
        digest.report.problem = _problem(fleet) or digest.damage
    digest.inputs = inputs.fingerprint()


def _digest(fleet: Fleet) -> AuditDigest:
    """Return the digest of a file that is not judged yet."""
    threads = fleet.threads.values()
    parents = dict.fromkeys(thread.parent for thread in threads if thread.parent)
    denied = {thread.cwd: None for thread in threads if thread.denials and thread.cwd}
    return AuditDigest(
        report=None,
        inputs=b"",
        threads=tuple(map(Thread.as_parent, threads)),
        parents=tuple(parents),
        denied=tuple(denied_paths(threads, is_here=lambda _: True)),
        cwds=tuple(denied),
    )


def _end_of_time() -> list[LocksSeen | ProcessesCounted]:
    return [
        LocksSeen(at=END_OF_TIME, holders={}, readable=True),
        ProcessesCounted(at=END_OF_TIME),
    ]
