"""Which entries of the library belong together: parents, their children, and forks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentdash.model.findings import Verdict
from agentdash.replay.library.library import Entry


class Member(NamedTuple):
    """An entry's place in its family."""

    entry: Entry
    depth: int
    """0 for the head of the family."""
    last: bool
    """Whether no sibling stands below it."""


class SessionFamily(NamedTuple):
    """A thread that nobody spawned, and everything that came of it."""

    members: tuple[Member, ...]
    """Parents before their children, siblings in the order in which they began."""

    @property
    def head(self) -> Entry:
        """The one that the others come from, as far as it is there."""
        return self.members[0].entry

    @property
    def verdict(self) -> Verdict | None:
        """The worst of all verdicts."""
        known = {member.entry.verdict for member in self.members}
        ranks: tuple[Verdict, ...] = ("mismatch", "match", "unverified")
        return next((verdict for verdict in ranks if verdict in known), None)


def gather(entries: Sequence[Entry]) -> list[SessionFamily]:
    """The entries as families, the one with the newest member first."""
    by_id = {entry.id: entry for entry in reversed(entries)}
    spawned = {child: entry.id for entry in entries for child in entry.children if child != entry.id}
    below: dict[str, list[Entry]] = {}
    heads: list[Entry] = []
    for entry in entries:
        parent = entry.parent if entry.parent in by_id else spawned.get(entry.id)
        if parent is None or parent == entry.id or by_id[entry.id] is not entry:
            heads.append(entry)
        else:
            below.setdefault(parent, []).append(entry)
    seen: set[str] = set()
    found = [SessionFamily(tuple(_members(head, below, seen))) for head in heads]
    # files that name each other as parents have no head: each stands for itself
    found += [SessionFamily((Member(entry, 0, True),)) for entry in entries if entry.key not in seen]
    return sorted(found, key=_newest, reverse=True)


def _members(head: Entry, below: dict[str, list[Entry]], seen: set[str]) -> Iterator[Member]:
    waiting = [Member(head, 0, True)]
    while waiting:
        member = waiting.pop()
        if member.entry.key in seen:
            continue
        seen.add(member.entry.key)
        yield member
        own = sorted(below.get(member.entry.id, ()), key=lambda child: child.begun or 0.0)
        waiting += [Member(child, member.depth + 1, child is own[-1]) for child in reversed(own)]


def _newest(links: SessionFamily) -> float:
    return max(member.entry.begun or 0.0 for member in links.members)
