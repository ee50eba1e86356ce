"""Audit one session file: read it, and judge its threads. Runs in worker processes too.

Its digest has the report, and what that depends on besides the file, so that a later audit knows without
reading whether the report still holds.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.agents.codex.home import open_lines
from agentdash.agents.registry import adapters
from agentdash.agents.session_logs import SessionLog, log_of, thread_of_log
from agentdash.collect.sources.denied_paths import denied_paths, path_kinds
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model.events import FileSeen, LocksSeen, PathsSeen, PolicyRequested, ProcessesCounted
from agentdash.model.fleet import Fleet, Thread
from agentdash.model.remedies import PathKind
from agentdash.model.requested import Requested
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_fields
from agentdash.report.check import ThreadReport, thread_report, unreadable_report

_BATCH_LINES: Final = 2_000
"""Lines held in memory at a time."""
_NOT_A_ROLLOUT: Final = "no rollout: not a line of it is understood"
_END_OF_TIME: Final = 4e9
"""Unix seconds after every rollout: a time at which no process holds the files."""

Recall = Callable[[str], Sequence[Requested]]
"""Returns what the processes of a thread were asked for."""


class AuditDigest(msgspec.Struct, array_like=True):
    """What an audit keeps of a file: its report, and what that depends on besides the file."""

    report: ThreadReport | None
    """None: its threads are helpers of Codex."""
    inputs: bytes
    """Identifies parents, requests and places on the disk that the report was made with."""
    threads: msgspec.Raw
    """The threads of the file, as far as other threads are compared with them, and requests are read."""
    parents: tuple[str, ...] = ()
    """Threads that those of the file are compared with."""
    denied: tuple[str, ...] = ()
    """Paths that were denied."""
    cwds: tuple[str, ...] = ()
    """Working directories of the threads with denied paths: where none exists, the paths mean nothing."""


class FileRead(NamedTuple):
    """A file as it was read."""

    digest: AuditDigest
    fleet: bytes | None = None
    """What is to be judged when all parents are known, packed; None where the report is complete."""
    is_kept: bool = True
    """Whether the digest may be kept: not of a file that could not be read."""


class Inputs(NamedTuple):
    """What a report depends on besides the file."""

    parents: tuple[Thread, ...]
    requests: tuple[tuple[str, Requested], ...]
    kinds: tuple[tuple[str, PathKind], ...]

    def fingerprint(self) -> bytes:
        """Return what identifies the inputs."""
        return hashlib.blake2b(_encode(self), digest_size=16).digest()


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_digest: Final = msgspec.msgpack.Decoder(AuditDigest).decode
_decode_threads: Final = msgspec.msgpack.Decoder(tuple[Thread, ...]).decode


def encode_digest(digest: AuditDigest) -> bytes:
    """Return a digest as it is stored."""
    return _encode(digest)


def decode_digest(body: bytes) -> AuditDigest | None:
    """Return a stored digest; None where it cannot be decoded."""
    try:
        digest = _decode_digest(body)
        _decode_threads(digest.threads)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None
    return digest


def threads_of(digest: AuditDigest) -> tuple[Thread, ...]:
    """Return the threads of a digest: what children are compared with."""
    return _decode_threads(digest.threads)


def thread_name(path: Path) -> str:
    """Return the thread that a file is the log of: the id in its name, or its name."""
    return thread_of_log(path) or clean_line(path.name)


# ---------------------------------------------------------------- reading


def read_rollout(path: Path) -> Fleet:
    """Return the fleet of one file, read in bounded memory. Its thread id is that in the file name, or the
    file name.

    Raises:
        OSError: the file cannot be read.
    """
    fleet, error = _read_as_far(path)
    if error is not None:
        raise error
    return fleet


def _read_as_far(path: Path) -> tuple[Fleet, OSError | None]:
    """Return the fleet of one file as far as it can be read, and why it ends there."""
    log = log_of(path) or SessionLog(path, clean_line(path.name), "codex")
    reader = log.reader()
    fleet = Fleet()
    if log.agent == "claude":  # settings lie beside it
        fleet = reduce(fleet, [_file_seen(log)])
    number = 1
    failures: list[OSError] = []
    lines = _lines(path, failures)
    while batch := list(islice(lines, _BATCH_LINES)):
        fleet = reduce(fleet, reader.read(batch, number))
        number += len(batch)
    if not failures:
        return fleet, None
    problem = clean_line(failures[0].strerror or str(failures[0]))
    return reduce(fleet, [_file_seen(log, problem, reader.at)]), failures[0]


def _lines(path: Path, failures: list[OSError]) -> Iterator[bytes]:
    """Yield the lines of a file as far as it can be read; then add why it ends there."""
    try:
        yield from open_lines(path)
    except OSError as error:
        failures.append(error)


def _file_seen(log: SessionLog, unreadable: str | None = None, at: float = 0.0) -> FileSeen:
    place = clean_line(str(log.path.absolute()))
    return FileSeen(at=at, thread=log.thread, path=place, size=0, modified=at, unreadable=unreadable)


def read_file(path: Path, recalled: Sequence[Requested] = ()) -> FileRead:
    """Read a file, and judge it unless its threads are to be compared with others. Never raises.

    Args:
        path: the file.
        recalled: what the processes of its thread were asked for.
    """
    fleet, error = _read_as_far(path)
    fleet = reduce(fleet, _end_of_time())
    if not any(thread.lines for thread in fleet.threads.values()):
        problem = _problem(fleet) or _NOT_A_ROLLOUT
        report = unreadable_report(thread_name(path), clean_line(str(path)), problem)
        return FileRead(AuditDigest(report, b"", msgspec.Raw(_encode(()))), is_kept=False)
    digest = _digest(fleet)
    if digest.parents:
        return FileRead(digest, pickle.dumps(fleet), is_kept=error is None)
    judge_file(digest, fleet, lambda _: recalled, {})
    return FileRead(digest, is_kept=error is None)


def _problem(fleet: Fleet) -> str | None:
    """Return why the file cannot be read, or not to its end."""
    files = (thread.file for thread in fleet.threads.values())
    return next((file.unreadable for file in files if file is not None and file.unreadable), None)


def has_secrets(digest: AuditDigest) -> bool:
    """Return whether a digest has text that must not be written."""
    parts = (digest.report, threads_of(digest), digest.denied, digest.cwds)
    return any(mask_fields(part) != part for part in parts)


def judge_packed(read: FileRead, recall: Recall, known: Mapping[str, Thread]) -> AuditDigest:
    """Return the digest of a file, judged; `known` has all threads that it may be compared with."""
    if read.fleet is not None:
        # packed by this program, in a worker process of its own
        judge_file(read.digest, pickle.loads(read.fleet), recall, known)  # noqa: S301
    return read.digest


def judge_file(digest: AuditDigest, fleet: Fleet, recall: Recall, known: Mapping[str, Thread]) -> None:
    """Complete a digest by the report of the file's threads."""
    inputs = inputs_of(digest, recall, known)
    requested = [
        PolicyRequested(at=_END_OF_TIME, worker=thread, requested=request)
        for thread, request in inputs.requests
    ]
    fleet = reduce(fleet, [*requested, PathsSeen(at=_END_OF_TIME, paths=inputs.kinds)])
    parents = {parent.id: parent for parent in inputs.parents}
    workers = build_snapshot(replace(fleet, threads={**parents, **fleet.threads}), _END_OF_TIME).workers
    own = [worker for worker in workers if worker.id in fleet.threads]  # parents may be shown as well
    digest.report = thread_report(own[0], "") if own else None
    if digest.report is not None:
        digest.report.problem = _problem(fleet)
    digest.inputs = inputs.fingerprint()


def inputs_of(digest: AuditDigest, recall: Recall, known: Mapping[str, Thread]) -> Inputs:
    """Return what the report of a file depends on now, besides the file."""
    return Inputs(
        parents=tuple(known[parent] for parent in digest.parents if parent in known),
        requests=tuple(
            (thread.id, request)
            for thread in threads_of(digest)
            for request in recall(thread.id) or _read_past(thread)
        ),
        kinds=tuple(path_kinds(digest.denied).items()) if _is_any_here(digest.cwds) else (),
    )


def _is_any_here(cwds: Sequence[str]) -> bool:
    return any(Path(cwd).is_dir() for cwd in cwds)


def _digest(fleet: Fleet) -> AuditDigest:
    """Return the digest of a file that is not judged yet."""
    threads = fleet.threads.values()
    parents = dict.fromkeys(thread.parent for thread in threads if thread.parent)
    denied = {thread.cwd: None for thread in threads if thread.denials and thread.cwd}
    return AuditDigest(
        report=None,
        inputs=b"",
        threads=msgspec.Raw(_encode(tuple(map(Thread.as_parent, threads)))),
        parents=tuple(parents),
        denied=tuple(denied_paths(threads, is_here=lambda _: True)),
        cwds=tuple(denied),
    )


def _end_of_time() -> list[LocksSeen | ProcessesCounted]:
    return [
        LocksSeen(at=_END_OF_TIME, holders={}, readable=True),
        ProcessesCounted(at=_END_OF_TIME),
    ]


def _read_past(thread: Thread) -> Sequence[Requested]:
    """Return what the configuration files of a thread ask for, as they are now."""
    adapter = adapters().get(thread.agent)
    reader = adapter.request_reader if adapter is not None else None
    found = reader.read_past(thread, _END_OF_TIME) if reader is not None else None
    return () if found is None else (found,)
