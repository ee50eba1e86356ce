"""Audit session logs from their files, for `agentdash check`.

No live source is read: a turn without an end counts as abandoned. What an earlier agentdash saw of its
commands and processes is recalled. `check.py` has the document and its
rendering, `file_audit.py` the audit of one file.
"""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome
from agentdash.agents.session_logs import log_of, logs_of_thread, thread_of_log, unsorted_logs
from agentdash.agents.session_rows import DATABASES, is_row, sessions_in
from agentdash.collect.sources.denied_paths import path_kinds
from agentdash.files import file_size
from agentdash.model.command_rules import CommandRules
from agentdash.model.denials import PathKind
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import Masked, mask_fields
from agentdash.model.thread import Thread
from agentdash.report.check import CheckReport, ThreadReport, check_report
from agentdash.report.elements import UnreadableReport, unreadable
from agentdash.store.digests import DigestStore, FileState, file_states

if TYPE_CHECKING:
    from agentdash.agents.adapter import RequestReader
    from agentdash.report.file_audit import FileRead

_MIN_PARALLEL_BYTES: Final = 32 << 20
"""Total size above which several processes are faster than one: below, starting them takes longer than
reading."""
_MAX_PROCESSES: Final = 8
"""More do not help: the main process judges what they read."""
_LOG_SUFFIXES: Final = (".jsonl", ".jsonl.zst")
_COMPANIONS: Final = ("session_index.jsonl", "history.jsonl")
"""Files that Codex and Claude Code keep beside session logs."""


def find_logs(
    home: CodexHome, claude: ClaudeHome, targets: Iterable[str]
) -> tuple[list[Path], list[UnreadableReport]]:
    """Return the files of targets: paths, directories, thread ids or prefixes of these; without any, all
    rollouts of Codex, transcripts of Claude Code, and chats of other CLIs. And the directories that cannot be
    listed.

    Args:
        home: of Codex.
        claude: the configuration directory of Claude Code.
        targets: as the user wrote them.

    Raises:
        LookupError: a target matches nothing, and could be looked for everywhere; the message names it.
    """
    errors: list[OSError] = []
    wanted = list(targets)
    found = [] if wanted else [*home.rollouts(errors.append), *unsorted_logs(claude, errors.append)]
    for target in wanted:
        matches = _at_path(Path(target), errors.append) or logs_of_thread(home, claude, target, errors.append)
        if not matches and not errors:
            kinds = "a rollout, a directory with rollouts, or a thread"
            raise LookupError(f"{clean_line(target)!r} is not {kinds} in {clean_line(str(home.root))}")
        found += matches
    problems = {report.path: report for report in map(unreadable, errors)}
    return list(dict.fromkeys(found)), list(problems.values())


def _at_path(path: Path, on_error: Callable[[OSError], None]) -> list[Path]:
    if path.is_dir():
        folders = os.walk(path, onerror=on_error)
        files = sorted(Path(folder, name) for folder, _, names in folders for name in names)
        named = (file for file in files if file.name not in _COMPANIONS)
        logs = [file for file in named if thread_of_log(file) or file.name.endswith(_LOG_SUFFIXES)]
        return logs + [log for file in files if file.name in DATABASES for log in _at_path(file, on_error)]
    if path.name in DATABASES and path.is_file():
        try:
            return [log for _, log in sessions_in(path)]
        except OSError as error:
            on_error(error)
            return []
    return [path] if path.exists() or is_row(path) else []


def audit(
    paths: Iterable[Path],
    on_read: Callable[[Path], None] = lambda _: None,
    unreadable: Sequence[UnreadableReport] = (),
    recall: Recall = ThreadMemory,
    digests: DigestStore | None = None,
) -> CheckReport:
    """Audit rollouts in the given order; children are compared with their parents among them.

    Helper threads of Codex are left out.

    Args:
        on_read: called with each file when it has been read.
        unreadable: directories that may contain more, but cannot be listed.
        recall: returns what an earlier agentdash saw of a thread.
        digests: of earlier audits; None: every file is read.
    """
    files = tuple(paths)
    states = file_states(files) if digests is not None else {}
    stored = _stored(digests, states) if digests is not None else {}
    known = {thread.id: thread for digest in stored.values() for thread in digest.threads}
    read: dict[Path, FileRead] = {}

    def read_files(wanted: Sequence[Path]) -> None:
        memories = [(path, recall(thread_name(path))) for path in wanted]
        for path, found in zip(wanted, _read_all(memories), strict=True):
            on_read(path)
            known.update({thread.id: thread for thread in found.digest.threads})
            read[path] = found

    read_files([path for path in files if path not in stored])
    valid = {
        path: digest
        for path, digest in stored.items()
        if inputs_of(digest, recall, known).fingerprint() == digest.inputs
    }
    for path in valid:
        on_read(path)
    read_files([path for path in stored if path not in valid])
    judged = _judged(read, recall, known)
    if digests is not None:
        kept = [path for path, found in read.items() if found.is_kept and path in states]
        safe = [path for path in kept if not _has_secrets(path, judged[path])]
        digests.save([(path, states[path], _encode(judged[path])) for path in safe])
    complete = judged | valid
    reports = [(path, complete[path].report) for path in files]
    return check_report(
        [replace(report, file=clean_line(str(path))) for path, report in reports if report is not None],
        unreadable,
    )


def _stored(digests: DigestStore, states: Mapping[Path, FileState]) -> dict[Path, AuditDigest]:
    """Return the digests of files that have not changed."""
    found: dict[Path, AuditDigest] = {}
    gc.disable()
    for path, body in digests.load(states).items():
        with suppress(msgspec.MsgspecError, ValueError, TypeError):
            found[path] = _decode(body)
    gc.freeze()  # they are kept to the end: looking for garbage takes longer than decoding them
    gc.enable()
    return found


def _judged(
    read: Mapping[Path, FileRead], recall: Recall, known: Mapping[str, Thread]
) -> dict[Path, AuditDigest]:
    """Return the digests of files, judged; `known` has all threads that they may be compared with."""
    if not read:
        return {}
    from agentdash.report.file_audit import judge_packed  # noqa: PLC0415 - see `_read_all`

    return {path: judge_packed(found, recall, known) for path, found in read.items()}


def _has_secrets(path: Path, digest: AuditDigest) -> bool:
    """Return whether the digest of a file has text that must not be written, or its path has."""
    parts = (str(path), digest.report, digest.threads, digest.denied, digest.cwds)
    return any(mask_fields(part) != part for part in parts)


def _read_all(wanted: Sequence[tuple[Path, ThreadMemory]]) -> Iterator[FileRead]:
    """Yield the files, in order; read by as many processes as processors if there is much.

    What these do not read is read here: where there can be none, and after one was killed.
    """
    if not wanted:
        return
    # the engine takes longer to import than digests to read
    from agentdash.report.file_audit import import_late, read_file  # noqa: PLC0415

    processors = min(os.cpu_count() or 1, _MAX_PROCESSES)
    is_much = sum(file_size(path) for path, _ in wanted) >= _MIN_PARALLEL_BYTES
    count = 0
    if processors > 1 and is_much:
        import_late()
        for read in _read_by_workers(wanted, processors):
            count += 1
            yield read
    yield from (read_file(path, memory) for path, memory in wanted[count:])


def _read_by_workers(wanted: Sequence[tuple[Path, ThreadMemory]], processors: int) -> Iterator[FileRead]:
    """Yield the files that worker processes read; none or fewer where they cannot be had, or are killed."""
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - few homes are large
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    from agentdash.report.file_audit import read_file  # noqa: PLC0415 - see `_read_all`

    gc.freeze()  # what exists already is not looked through in each process
    try:
        workers = ProcessPoolExecutor(processors, initializer=_leave_interrupts)
    except OSError:  # such as without a writable `/dev/shm`
        return
    try:
        with _interrupts_held():  # half-started workers cannot be shut down
            reads = [workers.submit(read_file, *each) for each in wanted]
        for read in reads:
            yield read.result()
    except BrokenProcessPool:  # as by the kernel, when memory is short
        return
    finally:
        _kill_worker_processes()
        workers.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let ctrl-c wait to the end."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _leave_interrupts() -> None:
    """Leave ctrl-c to the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _kill_worker_processes() -> None:
    """Kill the worker processes: they only read, and one that waits for work notices no other signal."""
    import multiprocessing  # noqa: PLC0415 - few homes are large

    for process in multiprocessing.active_children():
        process.kill()


# ------------------------------------------------------------
# What an audit keeps of a session file: its report, and what that depends on besides the file
# A later audit finds out by it, without reading the file, whether the report still holds. Little is imported
# here: an audit of files that have not changed needs no more.


END_OF_TIME: Final = 4e9
"""Unix seconds after every rollout: a time at which no process holds the files."""

Recall = Callable[[str], ThreadMemory]
"""Returns what an earlier agentdash saw of a thread: its live commands, and what was asked of them."""


class _StoredReport(ThreadReport, Masked):
    """A report that was stored, which those with secrets are not."""


class AuditDigest(msgspec.Struct, array_like=True):
    """What an audit keeps of a file: its report, and what that depends on besides the file."""

    report: ThreadReport | None
    """None: its threads are helpers of Codex."""
    inputs: bytes
    """Identifies parents, memories and places on the disk that the report was made with."""
    threads: tuple[Thread, ...]
    """The threads of the file, as far as other threads are compared with them, and requests are read."""
    parents: tuple[str, ...] = ()
    """Threads that those of the file are compared with."""
    denied: tuple[str, ...] = ()
    """Paths that were denied."""
    cwds: tuple[str, ...] = ()
    """Working directories of the threads with denied paths: where none exists, the paths mean nothing."""
    damage: str | None = None
    """Which lines of the file were lost."""


class _StoredDigest(AuditDigest, array_like=True):
    report: _StoredReport | None


class Inputs(NamedTuple):
    """What a report depends on besides the file."""

    parents: tuple[Thread, ...]
    memories: tuple[ThreadMemory, ...]
    """Of its threads and their parents."""
    kinds: tuple[tuple[str, PathKind], ...]
    rules: tuple[CommandRules, ...] = ()
    """Which commands may run outside the sandbox."""

    def fingerprint(self) -> bytes:
        """Return what identifies the inputs; not by when files were read that have not changed."""
        undated = (self.parents, tuple(map(_undated, self.memories)), self.kinds, self.rules)
        return hashlib.blake2b(_encode(undated), digest_size=16).digest()


def _undated(memory: ThreadMemory) -> ThreadMemory:
    if not memory.requests:
        return memory
    return replace(memory, requests=tuple(replace(request, read_at=None) for request in memory.requests))


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_StoredDigest).decode


def thread_name(path: Path) -> str:
    """Return the thread that a file is the log of: the id in its name, or in its first lines; else its
    name."""
    log = log_of(path)
    return log.thread if log is not None else clean_line(path.name)


def inputs_of(digest: AuditDigest, recall: Recall, known: Mapping[str, Thread]) -> Inputs:
    """Return what the report of a file depends on now, besides the file."""
    parents = tuple(known[parent] for parent in digest.parents if parent in known)
    is_here = any(Path(cwd).is_dir() for cwd in digest.cwds)
    return Inputs(
        parents=parents,
        memories=(
            *(recall(parent.id) for parent in parents),
            *(_memory_of(thread, recall) for thread in digest.threads),
        ),
        kinds=tuple(path_kinds(digest.denied).items()) if is_here else (),
        rules=tuple(filter(None, map(_rules_of, digest.threads))),
    )


def _rules_of(thread: Thread) -> CommandRules | None:
    if thread.agent != "codex" or thread.file is None:
        return None
    from agentdash.agents.codex.command_rules import rules_beside  # noqa: PLC0415 - as below

    rules = rules_beside(Path(thread.file.path))
    return rules(thread.cwd or "") if rules is not None else None


def _memory_of(thread: Thread, recall: Recall) -> ThreadMemory:
    """Return what was seen of a thread; where no request of it was, what its files ask for now."""
    memory = recall(thread.id)
    if memory.requests:
        return memory
    reader = _request_reader(thread.agent)
    found = reader.read_past(thread, time.time()) if reader is not None else None
    return memory if found is None else replace(memory, requests=(found,))


@cache
def _request_reader(agent: str) -> RequestReader | None:
    if agent == "codex":  # most threads are: the tables of all worker CLIs take longer to read than digests
        from agentdash.agents.codex.config.reader import CodexRequests  # noqa: PLC0415

        return CodexRequests()
    from agentdash.agents.registry import adapters  # noqa: PLC0415

    adapter = adapters().get(agent)
    return adapter.request_reader if adapter is not None else None
