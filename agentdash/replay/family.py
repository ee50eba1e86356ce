"""Which rollouts belong together: a thread, its parents and children, its forks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from agentdash.agents.codex.home import CodexHome, begun_at, thread_id
from agentdash.model.sanitize import clean_line

_HEAD: Final = 1 << 14
"""Bytes of a `session_meta` that are looked at: ids come before its long texts."""
_LINK: Final = re.compile(rb'"(?:parent_thread_id|forked_from_id)":"([0-9a-f-]{36})"')
"""A key inside of a text would have its quotes escaped."""
_SHORTEST: Final = 4
"""Characters that the beginning of an id must have at least."""
_SKEW: Final = 60.0
"""Seconds by which the names of a parent's and a child's file may disagree about which came first."""


class Family(NamedTuple):
    """Threads that came from one another."""

    thread: str
    """The one that was asked for."""
    paths: tuple[Path, ...]
    """The rollouts of all of them, oldest first."""
    home: CodexHome | None = None
    """Where they live; None where they were found outside of a Codex home."""


def find_family(home: CodexHome, target: str) -> Family:
    """The family of a thread.

    Args:
        home: where to look for threads.
        target: a rollout file, or a thread's id or its beginning. The relatives of a file outside of the home are looked for beside it.

    Raises:
        LookupError: there is no such thread, or more than one; says so in one line.
    """
    path = Path(target).absolute()
    if path.is_file():
        if (thread := thread_id(path)) is None:
            raise LookupError(
                f"{clean_line(target)!r} is not the name of a rollout (rollout-TIME-UUID.jsonl or .jsonl.zst)"
            )
        at_home = any(path.is_relative_to(root.absolute()) for root in home.roots)
        near = (
            home.rollouts()
            if at_home
            else (p for p in sorted(path.parent.iterdir(), reverse=True) if thread_id(p))
        )
        return Family(thread, _relatives(path, near), home if at_home else None)
    found = [
        p for p in home.rollouts() if len(target) >= _SHORTEST and (thread_id(p) or "").startswith(target)
    ]
    if not found:
        raise LookupError(
            f"{clean_line(target)!r} is no rollout, and no thread of {clean_line(str(home.root))}"
        )
    if len(found) > 1:
        raise LookupError(f"{clean_line(target)!r} is the beginning of {len(found)} threads")
    return Family(thread_id(found[0]) or "", _relatives(found[0], home.rollouts()), home)


def _relatives(path: Path, near: Iterable[Path]) -> tuple[Path, ...]:
    """Up to the oldest ancestor, and down to everybody who comes from it: who names it, and who names one of those."""
    begun = {p: begun_at(p) or 0.0 for p in (*near, path)}
    known = {thread_id(p) or "": p for p in begun} | {thread_id(path) or "": path}
    root, seen = path, {path}
    while (
        above := next((known[t] for t in _links(root) if t in known), None)
    ) is not None and above not in seen:
        root = above
        seen.add(root)
    newest_first = sorted(known.values(), key=lambda p: begun[p], reverse=True)
    younger = list(takewhile(lambda p: begun[p] >= begun[root] - _SKEW, newest_first))
    links = {p: set(_links(p)) for p in younger if p != root}
    family, ids = {root}, {thread_id(root) or ""}
    while new := {p for p, named in links.items() if p not in family and named & ids}:
        family |= new
        ids |= {thread_id(p) or "" for p in new}
    return tuple(sorted(family | {path}, key=lambda p: (begun[p], p.name)))


def _links(path: Path) -> Iterator[str]:
    """The threads that a rollout says it comes from: its parent, or what it was forked from."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            if path.suffix == ".zst":
                from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415 - few files are compressed

                try:
                    head = ZstdDecompressor().decompressobj().decompress(head)
                except ZstdError:
                    head = b""
    except OSError:
        return
    for match in _LINK.finditer(head[: head.find(b"\n")] if b"\n" in head else head):
        yield match[1].decode()
