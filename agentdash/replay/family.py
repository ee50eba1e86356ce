"""Find the rollouts of one family: a thread, its parents and children, and its forks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.claude.home import default_home as default_claude_home
from agentdash.agents.codex.home import CodexHome, begun_at, read_names, thread_id
from agentdash.agents.session_logs import is_transcript, log_begun_at, log_of, thread_of_log
from agentdash.files import file_size, open_stream, unpacked
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import without_record

_HEAD_BYTES: Final = 1 << 14
"""Bytes of a file searched for links: in `session_meta` the ids come before its long texts."""
_LINK: Final = re.compile(rb'"(?:parent_thread_id|forked_from_id)":"([0-9a-f-]{36})"')
"""A link to another thread. Within a quoted text the quotes of the key would be escaped."""
_MIN_PREFIX_CHARS: Final = 4
"""Shortest accepted prefix of a thread id: a shorter one matches by accident."""
_LOG_SUFFIXES: Final = (".jsonl", ".jsonl.zst")
_MAX_SIBLINGS: Final = 200
"""Files beside one with any name that are looked at: relatives were attached or downloaded with it."""
_CLOCK_SKEW_S: Final = 60.0
"""Seconds by which the times in the file names of a parent and its child may be in the wrong order."""


class Family(NamedTuple):
    """Threads that were spawned or forked from one another."""

    thread: str
    """Id of the requested thread."""
    paths: tuple[Path, ...]
    """Rollouts of all members, oldest first."""
    home: CodexHome | None = None
    """Home of the rollouts; None if they were found outside of a Codex home."""
    unreadable: tuple[str, ...] = ()
    """Directories and files that may belong to further members or name them, and why they cannot be read;
    clean lines."""
    memories: tuple[ThreadMemory, ...] = ()
    """What was seen of its threads while they ran."""


def find_family(home: CodexHome, target: str) -> Family:
    """Return the family of a thread.

    Args:
        home: searched for threads.
        target: path of a rollout, or a thread id or a prefix of one. For a file outside of the home,
            relatives are searched in its directory.

    Raises:
        LookupError: no thread or more than one matches; the message is one line.
    """
    path = Path(target).absolute()
    if path.is_file():
        if is_transcript(path):
            return _family_of_transcript(path)
        return _family_of_file(home, path, target) if thread_id(path) else _family_by_content(path, target)
    problems: dict[str, None] = {}
    rollouts = list(home.rollouts(lambda error: _note(error, problems)))
    found = [path for path in rollouts if _matches(path, target)]
    if not found and (transcript := _transcript(target)) is not None:
        return _family_of_transcript(transcript)
    if not found:
        where = "; ".join([clean_line(str(home.root)), *problems])
        raise LookupError(f"{clean_line(target)!r} is neither a rollout file nor a thread in {where}")
    if len(found) > 1:
        raise LookupError(f"{clean_line(target)!r} is ambiguous: {len(found)} thread ids begin with it")
    relatives = _relatives(found[0], rollouts, problems)
    return Family(thread_id(found[0]) or "", relatives, home, (*problems, *_index_problem(home)))


def _family_of_file(home: CodexHome, path: Path, target: str) -> Family:
    thread = thread_id(path) or clean_line(target)
    problems: dict[str, None] = {}
    if any(path.is_relative_to(root.absolute()) for root in home.roots):
        rollouts = home.rollouts(lambda error: _note(error, problems))
        relatives = _relatives(path, rollouts, problems)
        return Family(thread, relatives, home, (*problems, *_index_problem(home)))
    siblings: list[Path] = []
    try:
        siblings = [sibling for sibling in sorted(path.parent.iterdir(), reverse=True) if thread_id(sibling)]
    except OSError as error:
        _note(error, problems)
    return Family(thread, _relatives(path, siblings, problems), None, tuple(problems))


def _family_by_content(path: Path, target: str) -> Family:
    """Return the family of a file with any name, with relatives beside it."""
    problems: dict[str, None] = {}
    try:
        with open_stream(path):
            pass
    except OSError as error:
        raise LookupError(f"{clean_line(target)} cannot be read: {error.strerror or error}") from error
    if (log := log_of(path)) is None:
        raise LookupError(f"{clean_line(target)} cannot be read: {without_record(file_size(path))}")
    if log.agent == "claude":
        return Family(log.thread, (path,))
    siblings: list[Path] = []
    try:
        siblings = [each for each in sorted(path.parent.iterdir()) if each.name.endswith(_LOG_SUFFIXES)]
    except OSError as error:
        _note(error, problems)
    logs = [each for each in siblings[:_MAX_SIBLINGS] if each.is_file() and log_of(each) is not None]
    return Family(log.thread, _relatives(path, logs, problems), None, tuple(problems))


def _transcript(target: str) -> Path | None:
    """Return the only transcript of Claude Code whose thread id begins so."""
    transcripts = ClaudeHome(default_claude_home()).transcripts()
    found = [path for path in transcripts if _matches(path, target)]
    return found[0] if len(found) == 1 else None


def _family_of_transcript(path: Path) -> Family:
    """Return a session of Claude Code with its sub-agents, whose transcripts lie below it."""
    session = path
    if path.parent.name == "subagents":
        above = path.parent.parent
        session = above.with_name(f"{above.name}.jsonl")
    members = [each for each in (session, path) if each.is_file()]
    with suppress(OSError):
        members += sorted((session.with_suffix("") / "subagents").glob("*.jsonl"))
    transcripts = (member for member in dict.fromkeys(members) if is_transcript(member))
    return Family(thread_of_log(path) or "", tuple(transcripts))


def unreadable_line(error: OSError) -> str:
    """Return what could not be read, and why, in one line."""
    where = "?" if error.filename is None else os.fsdecode(error.filename)
    return clean_line(f"{where} cannot be read: {error.strerror or error}")


def _note(error: OSError, problems: dict[str, None]) -> None:
    problems[unreadable_line(error)] = None


def _index_problem(home: CodexHome) -> Iterator[str]:
    if (problem := read_names(home).problem) is not None:
        yield problem


def _matches(path: Path, prefix: str) -> bool:
    return len(prefix) >= _MIN_PREFIX_CHARS and (thread_of_log(path) or "").startswith(prefix)


def _relatives(path: Path, candidates: Iterable[Path], problems: dict[str, None]) -> tuple[Path, ...]:
    """Return the descendants of the oldest ancestor of `path`, with that ancestor, oldest first."""
    begun = {p: _begun(p) for p in (*candidates, path)}
    by_thread = {_thread(p): p for p in begun} | {_thread(path): path}
    root = _oldest_ancestor(path, by_thread, problems)
    newest_first = sorted(by_thread.values(), key=lambda p: begun[p], reverse=True)
    # a descendant is younger than the root: only those files need to be opened
    younger = list(takewhile(lambda p: begun[p] >= begun[root] - _CLOCK_SKEW_S, newest_first))
    linked: dict[str, list[Path]] = {}
    """Rollouts by the threads that they name."""
    for each in younger:
        for thread in _links(each, problems) if each != root else ():
            linked.setdefault(thread, []).append(each)
    family, pending = {root}, [root]
    while pending:
        new = {each for each in linked.get(_thread(pending.pop()), ()) if each not in family}
        family |= new
        pending += new
    return tuple(sorted(family | {path}, key=lambda p: (begun[p], p.name)))


def _thread(path: Path) -> str:
    """Return the thread of a log, by its name or its content; empty if it is not a log."""
    if (thread := thread_id(path)) is not None:
        return thread
    log = log_of(path)
    return log.thread if log is not None else ""


def _begun(path: Path) -> float:
    return (begun_at(path) if thread_id(path) else log_begun_at(path)) or 0.0


def _oldest_ancestor(path: Path, by_thread: dict[str, Path], problems: dict[str, None]) -> Path:
    root = path
    visited = {path}
    while True:
        linked = _links(root, problems)
        parent = next((by_thread[thread] for thread in linked if thread in by_thread), None)
        if parent is None or parent in visited:
            return root
        root = parent
        visited.add(root)


def _links(path: Path, problems: dict[str, None]) -> Iterator[str]:
    """Yield the thread ids that a rollout names as its parent or as the thread it was forked from."""
    head = b""
    try:
        with open_stream(path) as file:
            if path.suffix == ".zst":
                with suppress(ValueError):  # damaged: its reader states it
                    head = next(unpacked(file, _HEAD_BYTES))[:_HEAD_BYTES]
            else:
                head = file.read(_HEAD_BYTES)
    except OSError as error:
        _note(error, problems)
        return
    first_line = head[: head.find(b"\n")] if b"\n" in head else head
    for match in _LINK.finditer(first_line):
        yield match[1].decode()
