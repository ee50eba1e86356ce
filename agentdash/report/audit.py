"""Audit rollouts from their files, for `agentdash check`.

No live source is read: a turn without an end counts as abandoned. What the processes were asked for is
recalled where an earlier agentdash saw them. `check.py` has the document and its
rendering.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.claude.home import default_home as default_claude_home
from agentdash.agents.codex.home import CodexHome, open_lines
from agentdash.agents.registry import adapters
from agentdash.agents.session_logs import is_transcript, reader_of_log, thread_of_log
from agentdash.collect.sources.denied_paths import denied_paths, path_kinds
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.events import FileSeen, LocksSeen, PathsSeen, PolicyRequested, ProcessesCounted
from agentdash.model.fleet import Fleet, Thread
from agentdash.model.requested import Requested
from agentdash.model.sanitize import clean_line
from agentdash.report.check import (
    CheckReport,
    ThreadReport,
    check_report,
    thread_report,
    unreadable_report,
)
from agentdash.report.elements import UnreadableReport, unreadable

_BATCH_LINES: Final = 2_000
"""Lines held in memory at a time."""
_MIN_PARALLEL_BYTES: Final = 32 << 20
"""Total size above which several processes are faster than one: below, starting them takes longer than
reading."""
_MAX_PROCESSES: Final = 8
"""More do not help: the main process judges what they read."""
_MIN_PREFIX_CHARS: Final = 4
"""Shortest accepted prefix of a thread id: a shorter one matches by accident."""
_NOT_A_ROLLOUT: Final = "no rollout: not a line of it is understood"
_END_OF_TIME: Final = 4e9
"""Unix seconds after every rollout: a time at which no process holds the files."""


Recall = Callable[[str], Sequence[Requested]]


class FoundRollouts(NamedTuple):
    """The files to audit, and the directories that may contain more."""

    paths: list[Path]
    unreadable: list[UnreadableReport]
    """Directories that cannot be listed."""


def find_rollouts(home: CodexHome, targets: Iterable[str]) -> FoundRollouts:
    """Return the files of targets: paths, directories, thread ids or prefixes of these; without any, all of
    the home.

    Raises:
        LookupError: a target matches nothing, and could be looked for everywhere; the message names it.
    """
    errors: list[OSError] = []
    found: list[Path] = []
    wanted = list(targets)
    if not wanted:
        found += home.rollouts(errors.append)
    for target in wanted:
        matches = _matching(home, target, errors.append)
        if not matches and not errors:
            raise LookupError(
                f"{clean_line(target)!r} is neither a rollout, nor a directory with rollouts, "
                f"nor a thread in {clean_line(str(home.root))}"
            )
        found += matches
    problems = {report.path: report for report in map(unreadable, errors)}
    return FoundRollouts(list(dict.fromkeys(found)), list(problems.values()))


def _matching(home: CodexHome, target: str, on_error: Callable[[OSError], None]) -> list[Path]:
    path = Path(target)
    if path.is_dir():
        folders = os.walk(path, onerror=on_error)
        files = (Path(folder, name) for folder, _, names in folders for name in names)
        return sorted(file for file in files if thread_of_log(file))
    if path.exists():
        return [path]
    if len(target) < _MIN_PREFIX_CHARS:
        return []
    rollouts = [file for file in home.rollouts(on_error) if (thread_of_log(file) or "").startswith(target)]
    transcripts = ClaudeHome(default_claude_home()).transcripts(on_error)
    return rollouts or [file for file in transcripts if (thread_of_log(file) or "").startswith(target)]


def audit(
    paths: Iterable[Path],
    on_read: Callable[[Path], None] = lambda _: None,
    unreadable: Sequence[UnreadableReport] = (),
    recall: Recall = lambda _: (),
) -> CheckReport:
    """Audit rollouts in the given order; children are compared with their parents among them.

    Helper threads of Codex are left out.

    Args:
        paths: the files.
        on_read: called with each file when it has been read.
        unreadable: directories that may contain more, but cannot be listed.
        recall: returns what a thread's processes were asked for, where an earlier agentdash saw them start.
    """
    return check_report(_audit_threads(tuple(paths), on_read, recall), unreadable)


def file_size(path: Path) -> int:
    """Return the bytes of a file; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def read_rollout(path: Path) -> Fleet:
    """Return the fleet of one file, read in bounded memory. Its thread id is that in the file name, or the
    file name.

    Raises:
        OSError: the file cannot be read.
    """
    reader = reader_of_log(path, _thread_name(path))
    fleet = Fleet()
    if is_transcript(path):  # settings lie beside it
        place = clean_line(str(path.absolute()))
        seen = FileSeen(at=0.0, thread=_thread_name(path), path=place, size=0, modified=0.0)
        fleet = reduce(fleet, [seen])
    number = 1
    lines = iter(open_lines(path))
    while batch := list(islice(lines, _BATCH_LINES)):
        fleet = reduce(fleet, reader.read(batch, number))
        number += len(batch)
    return fleet


def _audit_threads(
    paths: Sequence[Path], on_read: Callable[[Path], None], recall: Recall
) -> list[ThreadReport]:
    reports: dict[Path, ThreadReport | None] = {}
    known: dict[str, Thread] = {}
    orphans: dict[Path, Fleet] = {}
    """Children read before their parents: judged last."""
    for path, fleet in zip(paths, _read_all(paths), strict=True):
        on_read(path)
        if isinstance(fleet, ThreadReport):
            reports[path] = fleet
            continue
        reports[path] = None  # keeps the order
        for thread in fleet.threads.values():
            # only what children are compared with: whole threads would fill the memory
            known[thread.id] = Thread(
                thread.id, cwd=thread.cwd, policies=thread.policies, observations=thread.observations
            )
            if thread.parent and thread.parent not in known:
                orphans[path] = fleet
        if path not in orphans:
            reports[path] = _judge(_with_requests(fleet, recall), path, known)
    for path, fleet in orphans.items():
        reports[path] = _judge(_with_requests(fleet, recall), path, known)
    return [report for report in reports.values() if report is not None]


def _read_all(paths: Sequence[Path]) -> Iterator[Fleet | ThreadReport]:
    """Yield the result of `_read` for each file, in order; with as many processes as processors if there is
    much."""
    processors = min(os.cpu_count() or 1, _MAX_PROCESSES)
    if processors == 1 or sum(map(file_size, paths)) < _MIN_PARALLEL_BYTES:
        yield from map(_read, paths)
        return
    from multiprocessing import Pool  # noqa: PLC0415 - few homes are large

    # the children inherit the mask: ctrl-c interrupts this process alone, which terminates them
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pool = Pool(processors)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with pool:
        yield from pool.imap(_read, paths, chunksize=4)


def _read(path: Path) -> Fleet | ThreadReport:
    """Return the fleet of a file at the end of time; a report of the problem if it cannot be read."""
    try:
        fleet = read_rollout(path)
    except OSError as error:
        problem = clean_line(error.strerror or str(error))
        return unreadable_report(_thread_name(path), clean_line(str(path)), problem)
    ended = [
        LocksSeen(at=_END_OF_TIME, holders={}, readable=True),
        ProcessesCounted(at=_END_OF_TIME),
    ]
    seen = path_kinds(denied_paths(fleet.threads.values()))
    return reduce(fleet, [*ended, PathsSeen(at=_END_OF_TIME, paths=tuple(seen.items()))])


def _with_requests(fleet: Fleet, recall: Recall) -> Fleet:
    """Return the fleet with what the processes of its threads were asked for."""
    events = [
        PolicyRequested(at=_END_OF_TIME, worker=thread.id, requested=request)
        for thread in fleet.threads.values()
        for request in recall(thread.id) or _read_past(thread)
    ]
    return reduce(fleet, events) if events else fleet


def _read_past(thread: Thread) -> Sequence[Requested]:
    """Return what the configuration files of a thread ask for, as they are now."""
    adapter = adapters().get(thread.agent)
    reader = adapter.request_reader if adapter is not None else None
    found = reader.read_past(thread, _END_OF_TIME) if reader is not None else None
    return () if found is None else (found,)


def _judge(fleet: Fleet, path: Path, known: dict[str, Thread]) -> ThreadReport | None:
    """Return the report of a file's thread; None for a helper thread."""
    if not any(thread.lines for thread in fleet.threads.values()):
        return unreadable_report(_thread_name(path), clean_line(str(path)), _NOT_A_ROLLOUT)
    parents = {
        thread.parent: known[thread.parent] for thread in fleet.threads.values() if thread.parent in known
    }
    workers = build_snapshot(replace(fleet, threads={**parents, **fleet.threads}), _END_OF_TIME).workers
    return thread_report(workers[0], clean_line(str(path))) if workers else None


def _thread_name(path: Path) -> str:
    return thread_of_log(path) or clean_line(path.name)
