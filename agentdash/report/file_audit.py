"""Audit one session file: read it, and judge its threads. Runs in worker processes too."""

from __future__ import annotations

import importlib
import os
import pickle
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.agents.codex.rollout.records import RECORD_START
from agentdash.agents.session_logs import SessionLog, log_of
from agentdash.collect.sources.denied_paths import denied_paths
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.files import file_size, is_record, open_stream
from agentdash.model.events import FileSeen, LocksSeen, ObservationsRecalled, PathsSeen, ProcessesCounted
from agentdash.model.fleet import Fleet
from agentdash.model.memory import ThreadMemory
from agentdash.model.patterns import Pattern
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import Thread, without_record
from agentdash.replay.whole_log import read_whole
from agentdash.report.audit import END_OF_TIME, AuditDigest, Recall, inputs_of, thread_name
from agentdash.report.check import thread_report, unreadable_report
from agentdash.report.elements import quantity
from agentdash.sandbox.denials.lines import suspects

_IMPORTED_LATE: Final = (
    "agentdash.agents.codex.config.reader",
    "agentdash.sandbox.denials.detector",
    "agentdash.sandbox.denials.network",
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
    suspects("")


# ---------------------------------------------------------------- reading


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


def read_file(path: Path, memory: ThreadMemory) -> FileRead:
    """Read a file, and judge it unless its threads are to be compared with others. Never raises.

    Args:
        memory: what an earlier agentdash saw of its thread.
    """
    log = log_of(path) or SessionLog(path, clean_line(path.name), "codex")
    place = clean_line(str(path.absolute()))  # its configuration lies beside it
    fleet, trouble = read_whole(log, FileSeen(at=0.0, thread=log.thread, path=place, size=0, modified=0.0))
    ended = [LocksSeen(at=END_OF_TIME, holders={}), ProcessesCounted(at=END_OF_TIME)]
    fleet = reduce(fleet, ended)
    threads = fleet.threads.values()
    if not any(thread.lines for thread in threads):
        problem = _problem(fleet) or without_record(file_size(path))
        report = unreadable_report(thread_name(path), clean_line(str(path)), problem)
        return FileRead(AuditDigest(report, inputs=b"", threads=()), is_kept=False)
    digest = AuditDigest(
        report=None,
        inputs=b"",
        threads=tuple(map(Thread.as_parent, threads)),
        parents=tuple(dict.fromkeys(thread.parent for thread in threads if thread.parent)),
        denied=tuple(denied_paths(threads, is_here=lambda _: True)),
        cwds=tuple(dict.fromkeys(thread.cwd for thread in threads if thread.denials and thread.cwd)),
        damage=_damage(path, fleet),
    )
    if digest.parents:
        return FileRead(digest, pickle.dumps(fleet), is_kept=trouble is None)
    _judge(digest, fleet, lambda _: memory, {})
    return FileRead(digest, is_kept=trouble is None)


def _problem(fleet: Fleet) -> str | None:
    """Return why the file cannot be read, or not to its end."""
    files = (thread.file for thread in fleet.threads.values())
    return next((file.unreadable for file in files if file is not None and file.unreadable), None)


def judge_packed(read: FileRead, recall: Recall, known: Mapping[str, Thread]) -> AuditDigest:
    """Return the digest of a file, judged; `known` has all threads that it may be compared with."""
    if read.fleet is not None:
        # packed by this program, in a worker process of its own
        _judge(read.digest, pickle.loads(read.fleet), recall, known)  # noqa: S301
    return read.digest


def _judge(digest: AuditDigest, fleet: Fleet, recall: Recall, known: Mapping[str, Thread]) -> None:
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
