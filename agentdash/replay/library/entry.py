"""A past thread as the library lists it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agentdash.model.findings import Verdict
from agentdash.model.states import State
from agentdash.model.tokens import ModelUsage, merged_usage
from agentdash.prices import priced_usd

RECORDING: Final = "recording"
"""The agent of an entry that is a recording by agentdash."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A past thread, as far as its file has been read. None and empty: not known yet, or not stated."""

    id: str
    path: Path
    begun: float | None
    """Start (unix seconds)."""
    agent: str = "codex"
    """The worker CLI: `codex`, `claude`, `gemini`, `qwen`, `copilot`; `recording`."""
    listed_at: float = 0.0
    """What it was listed by: its start, or when its file was changed (unix seconds)."""
    archived: bool = False
    compressed: bool = False
    is_read: bool = False
    """Whether its file has been read; it is listed before."""
    size: int = 0
    """Bytes on disk."""
    parent: str | None = None
    """Id of the thread that it was spawned by or forked from."""
    fork: bool = False
    helper: bool = False
    """Whether Codex runs it for itself (review, guardian, titles): helpers are not judged."""
    title: str = ""
    """Its name, or its first prompt."""
    cwd: str | None = None
    version: str | None = None
    model: str | None = None
    source: str | None = None
    """What started it: `cli`, `exec`, `vscode`, `subagent` ... (`source` of `session_meta`, since 0.36)."""
    prompt: str = ""
    """The first message of the user."""
    last_prompt: str = ""
    """The last message of the user that was read."""
    took: float | None = None
    """Seconds from its first line to its last."""
    state: State | None = None
    why: str = ""
    verdict: Verdict | None = None
    findings: tuple[str, ...] = ()
    """Kinds of its findings."""
    denied: bool = False
    """Whether its sandbox refused anything, resolved or not."""
    reason: str = ""
    """Why it deserves a look, in few words: what was denied, how its sandbox differed, or how it ended."""
    children: tuple[str, ...] = ()
    tokens: int | None = None
    """Those that it used itself."""
    by_model: tuple[ModelUsage, ...] = ()
    """The same by model."""
    problem: str | None = None
    """Why it cannot be read, or not to its end."""

    @property
    def recording(self) -> bool:
        """Whether it is a recording by agentdash of panes and processes, not the log of a thread."""
        return self.agent == RECORDING

    @property
    def is_unreadable(self) -> bool:
        """Whether nothing of it could be judged."""
        return self.problem is not None and self.state in (None, State.UNREACHABLE)

    @property
    def needs_a_look(self) -> bool:
        """Whether its sandbox refused something, or was another than configured."""
        return self.denied or self.verdict == "mismatch"

    @property
    def key(self) -> str:
        """The unique key: its path, since two files may have the same thread id."""
        return str(self.path)


# ------------------------------------------------------------
# Group library entries into families (parents, their children, and forks), and sort these. Pure


class FamilyMember(NamedTuple):
    """An entry's place in its family."""

    entry: Entry
    depth: int
    """0 for the head of the family."""
    last: bool
    """Whether it is the last among its siblings."""


class SessionFamily(NamedTuple):
    """A thread without a parent, and all its descendants."""

    members: tuple[FamilyMember, ...]
    """Parents before their children, siblings in the order of their start."""

    @property
    def head(self) -> Entry:
        """The common ancestor, as far as its file exists."""
        return self.members[0].entry

    @property
    def by_model(self) -> tuple[ModelUsage, ...]:
        """The tokens of all members by model."""
        return merged_usage(usage for member in self.members for usage in member.entry.by_model)

    @property
    def newest(self) -> float:
        """When its newest member began (unix seconds)."""
        return max(member.entry.begun or member.entry.listed_at for member in self.members)

    @property
    def worst(self) -> Entry:
        """The member to look at: the first with a denial or a mismatch, else the head."""
        entries = [member.entry for member in self.members]
        return next((entry for entry in entries if entry.needs_a_look), self.head)


def group_families(entries: Sequence[Entry]) -> list[SessionFamily]:
    """Return the families of these entries, the one with the newest member first."""
    by_id = {entry.id: entry for entry in reversed(entries)}
    spawned_by = {child: entry.id for entry in entries for child in entry.children if child != entry.id}
    children: dict[str, list[Entry]] = {}
    heads: list[Entry] = []
    for entry in entries:
        parent = entry.parent if entry.parent in by_id else spawned_by.get(entry.id)
        if parent is None or parent == entry.id or by_id[entry.id] is not entry:
            heads.append(entry)
        else:
            children.setdefault(parent, []).append(entry)
    seen: set[str] = set()
    families = [SessionFamily(tuple(_members(head, children, seen))) for head in heads]
    # files that name each other as parents have no head: each becomes a family
    families += [
        SessionFamily((FamilyMember(entry, 0, last=True),)) for entry in entries if entry.key not in seen
    ]
    return sorted(families, key=lambda family: family.newest, reverse=True)


def _members(head: Entry, children: dict[str, list[Entry]], seen: set[str]) -> Iterator[FamilyMember]:
    """Yield the members of a family depth first; without recursion, since a chain of forks may be long."""
    stack = [FamilyMember(head, 0, last=True)]
    while stack:
        member = stack.pop()
        if member.entry.key in seen:
            continue
        seen.add(member.entry.key)
        yield member
        siblings = sorted(children.get(member.entry.id, ()), key=lambda child: child.begun or 0.0)
        stack += [
            FamilyMember(child, member.depth + 1, last=child is siblings[-1]) for child in reversed(siblings)
        ]


NEWEST: Final = "newest"
SORTS: Final[Mapping[str, Callable[[SessionFamily], float]]] = {
    NEWEST: lambda _: 0.0,
    "tokens": lambda family: -float(sum(each.usage.total for each in family.by_model)),
    "cost": lambda family: -(priced_usd(family.by_model) or 0.0),
    "duration": lambda family: -(family.head.took or 0.0),
}
"""The smallest comes first. Tokens without a price cost nothing here."""


def next_sort(sort: str) -> str:
    """Return the order after this one."""
    names = tuple(SORTS)
    return names[(names.index(sort) + 1) % len(names)]
