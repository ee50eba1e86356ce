"""Find the rollouts of one family: a thread, its parents and children, and its forks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.agents.claude.home import ClaudeHome
from agentdash.agents.codex.home import CodexHome, begun_at, read_names, thread_id
from agentdash.agents.session_logs import (
    SessionLog,
    agent_of_log,
    log_begun_at,
    log_of,
    logs_of_thread,
    thread_of_log,
)
from agentdash.agents.session_rows import is_row
from agentdash.files import file_size, open_stream, unpacked
from agentdash.model.memory import ThreadMemory
from agentdash.model.sanitize import clean_line
from agentdash.model.thread import without_record

_HEAD_BYTES: Final = 1 << 14
"""Bytes of a file searched for links: in `session_meta` the ids come before its long texts."""
_LINK: Final = re.compile(rb'"(?:parent_thread_id|forked_from_id)":"([0-9a-f-]{36})"')
"""A link to another thread. Within a quoted text the quotes of the key would be escaped."""
_LOG_SUFFIXES: Final = (".jsonl", ".jsonl.zst")
_MAX_SIBLINGS: Final = 200
"""Neighbours that are opened in search of relatives: those were attached or downloaded together."""
_CLOCK_SKEW_S: Final = 60.0
"""Seconds by which the times in the file names of a parent and its child may be in the wrong order."""


class Family(NamedTuple):
    """Threads that were spawned or forked from one another."""

    thread: str
    """Id of the requested thread."""
    paths: tuple[Path, ...]
    """Rollouts of all members, oldest first."""
    home: CodexHome | None = None
    """Home of the rollouts; None if they were found outside a Codex home."""
    unreadable: tuple[str, ...] = ()
    """Directories and files that may belong to further members or name them, and why they cannot be read;
    clean lines."""
    memories: tuple[ThreadMemory, ...] = ()
    """What was seen of its threads while they ran."""


def find_family(home: CodexHome, target: str) -> Family:
    """Return the family of a thread.

    Args:
        home: searched for threads.
        target: path of a session log, or a thread id or a prefix of one. For a file outside the home,
            relatives are searched in its directory.

    Raises:
        LookupError: no thread or more than one matches; the message is one line.
    """
    path = Path(target).absolute()
    path = path if path.is_file() or is_row(path) else _path_of_thread(home, target)
    if agent_of_log(path) == "claude":
        return _family_of_transcript(path)
    log = _readable_log(path, target)
    if log.agent != "codex":
        return Family(log.thread, (path,))
    errors: list[OSError] = []
    is_at_home = any(path.is_relative_to(root.absolute()) for root in home.roots)
    candidates = home.rollouts(errors.append) if is_at_home else _siblings(path, errors)
    relatives = _relatives(path, candidates, errors)
    unreadable = [*map(unreadable_line, errors), read_names(home).problem if is_at_home else None]
    problems = tuple(dict.fromkeys(filter(None, unreadable)))
    return Family(log.thread, relatives, home if is_at_home else None, problems)


def _path_of_thread(home: CodexHome, prefix: str) -> Path:
    """Return the log of the only thread whose id begins so."""
    errors: list[OSError] = []
    claude = ClaudeHome()
    found = logs_of_thread(home, claude, prefix, errors.append)
    if not found:
        where = "; ".join([f"searched {home.root} and {claude.root}", *map(unreadable_line, errors)])
        told = f"is neither a session log nor the id of a session ({clean_line(where)})"
        raise LookupError(f"{clean_line(prefix)!r} {told}")
    if len(found) > 1:
        raise LookupError(f"{clean_line(prefix)!r} is ambiguous: {len(found)} thread ids begin with it")
    return found[0].absolute()


def _readable_log(path: Path, target: str) -> SessionLog:
    """Return the log that a file is, by its name or its content."""
    if (log := log_of(path)) is not None:
        return log
    try:
        with open_stream(path):
            reason = without_record(file_size(path))
    except OSError as error:
        reason = error.strerror or str(error)
    raise LookupError(f"{clean_line(target)} cannot be read: {reason}")


def _siblings(path: Path, errors: list[OSError]) -> list[Path]:
    """Return the logs beside a file; of those with any name the first ones: they were attached with it."""
    try:
        beside = [each for each in sorted(path.parent.iterdir()) if each.name.endswith(_LOG_SUFFIXES)]
    except OSError as error:
        errors.append(error)
        return []
    named = [each for each in beside if thread_id(each)]
    unnamed = [each for each in beside if not thread_id(each)] if thread_id(path) is None else []
    return named + [each for each in unnamed[:_MAX_SIBLINGS] if each.is_file() and log_of(each) is not None]


def _family_of_transcript(path: Path) -> Family:
    """Return a session of Claude Code with its sub-agents, whose transcripts lie below it."""
    session = path
    if path.parent.name == "subagents":
        above = path.parent.parent
        session = above.with_name(f"{above.name}.jsonl")
    members = [each for each in (session, path) if each.is_file()]
    with suppress(OSError):
        members += sorted((session.with_suffix("") / "subagents").glob("*.jsonl"))
    transcripts = (member for member in dict.fromkeys(members) if agent_of_log(member) == "claude")
    return Family(thread_of_log(path) or "", tuple(transcripts))


def unreadable_line(error: OSError) -> str:
    """Return what could not be read, and why, in one line."""
    where = "?" if error.filename is None else os.fsdecode(error.filename)
    return clean_line(f"{where} cannot be read: {error.strerror or error}")


def _relatives(path: Path, candidates: Iterable[Path], errors: list[OSError]) -> tuple[Path, ...]:
    """Return the descendants of the oldest ancestor of `path`, with that ancestor, oldest first."""
    begun = {each: _begun(each) for each in (*candidates, path)}
    threads = {each: log.thread for each in begun if (log := log_of(each)) is not None}
    by_thread = {thread: each for each, thread in threads.items()} | {threads[path]: path}
    root, visited = path, {path}
    while (parent := next(filter(None, map(by_thread.get, _links(root, errors))), path)) not in visited:
        root = parent
        visited.add(root)
    # a descendant is younger than the root: only those files need to be opened
    younger = [each for each in by_thread.values() if begun[each] >= begun[root] - _CLOCK_SKEW_S]
    linked: dict[str, list[Path]] = {}
    """Rollouts by the threads that they name."""
    for each in younger:
        for thread in _links(each, errors) if each != root else ():
            linked.setdefault(thread, []).append(each)
    family, pending = {root}, [root]
    while pending:
        new = [each for each in linked.get(threads[pending.pop()], ()) if each not in family]
        family.update(new)
        pending += new
    return tuple(sorted(family | {path}, key=lambda each: (begun[each], each.name)))


def _begun(path: Path) -> float:
    return (begun_at(path) if thread_id(path) else log_begun_at(path)) or 0.0


def _links(path: Path, errors: list[OSError]) -> list[str]:
    """Return the thread ids that a rollout names as its parent or as the thread it was forked from."""
    head = b""
    try:
        with open_stream(path) as file:
            if path.suffix == ".zst":
                with suppress(ValueError):  # damaged: its reader states it
                    head = next(unpacked(file, _HEAD_BYTES))[:_HEAD_BYTES]
            else:
                head = file.read(_HEAD_BYTES)
    except OSError as error:
        errors.append(error)
    return [found.decode() for found in _LINK.findall(head.partition(b"\n")[0])]
