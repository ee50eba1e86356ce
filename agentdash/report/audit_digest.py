"""What an audit keeps of a session file: its report, and what that depends on besides the file.

A later audit finds out by it, without reading the file, whether the report still holds. Little is imported
here: an audit of files that have not changed needs no more.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from agentdash.agents.session_logs import log_of
from agentdash.collect.sources.denied_paths import path_kinds
from agentdash.model.command_rules import CommandRules
from agentdash.model.denials import PathKind
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import Masked, mask_fields
from agentdash.model.thread import Thread
from agentdash.report.check import ThreadReport

if TYPE_CHECKING:
    from agentdash.agents.adapter import RequestReader

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
    """Which commands may run outside of the sandbox."""

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


def encode_digest(digest: AuditDigest) -> bytes:
    """Return a digest as it is stored."""
    return _encode(digest)


def decode_digest(body: bytes) -> AuditDigest | None:
    """Return a stored digest; None where it cannot be decoded."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None


def thread_name(path: Path) -> str:
    """Return the thread that a file is the log of: the id in its name, or in its first lines; else its
    name."""
    log = log_of(path)
    return log.thread if log is not None else clean_line(path.name)


def has_secrets(path: Path, digest: AuditDigest) -> bool:
    """Return whether the digest of a file has text that must not be written, or its path has."""
    parts = (str(path), digest.report, digest.threads, digest.denied, digest.cwds)
    return any(mask_fields(part) != part for part in parts)


def inputs_of(digest: AuditDigest, recall: Recall, known: Mapping[str, Thread]) -> Inputs:
    """Return what the report of a file depends on now, besides the file."""
    parents = tuple(known[parent] for parent in digest.parents if parent in known)
    return Inputs(
        parents=parents,
        memories=(
            *(recall(parent.id) for parent in parents),
            *(_memory_of(thread, recall) for thread in digest.threads),
        ),
        kinds=tuple(path_kinds(digest.denied).items()) if _is_any_here(digest.cwds) else (),
        rules=tuple(filter(None, map(_rules_of, digest.threads))),
    )


def _rules_of(thread: Thread) -> CommandRules | None:
    if thread.agent != "codex" or thread.file is None:
        return None
    from agentdash.agents.codex.command_rules import rules_beside  # noqa: PLC0415 - as below

    rules = rules_beside(Path(thread.file.path))
    return rules(thread.cwd or "") if rules is not None else None


def _is_any_here(cwds: Sequence[str]) -> bool:
    return any(Path(cwd).is_dir() for cwd in cwds)


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
