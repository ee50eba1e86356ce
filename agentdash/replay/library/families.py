"""Group library entries into families (parents, their children, and forks), and sort these. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from agentdash.model.findings import Verdict
from agentdash.model.tokens import ModelUsage, merged_usage
from agentdash.prices import priced_usd
from agentdash.replay.library.entry import Entry

_WORST_FIRST: Final[tuple[Verdict, ...]] = ("mismatch", "match", "unverified")
"""Which verdict stands for a family: any observation is worth more than none."""


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
    def verdict(self) -> Verdict | None:
        """The worst of all verdicts."""
        known = {member.entry.verdict for member in self.members}
        return next((verdict for verdict in _WORST_FIRST if verdict in known), None)


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
    return sorted(families, key=_newest, reverse=True)


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


def _newest(family: SessionFamily) -> float:
    return max(member.entry.begun or 0.0 for member in family.members)


NEWEST: Final = "newest"
SORTS: Final[Mapping[str, Callable[[SessionFamily], tuple[float, str]]]] = {
    NEWEST: lambda _: (0.0, ""),
    "tokens": lambda family: (-float(sum(each.usage.total for each in family.by_model)), ""),
    "cost": lambda family: (-(priced_usd(family.by_model) or 0.0), ""),
    "duration": lambda family: (-(family.head.took or 0.0), ""),
    "size": lambda family: (-float(family.head.size), ""),
    "findings": lambda family: (-float(max(len(member.entry.findings) for member in family.members)), ""),
    "name": lambda family: (float(not family.head.title), family.head.title.casefold()),
}
"""The smallest comes first. Tokens and cost are those of the whole family, findings those of the member with
the most, other numbers those of the head. Tokens without a price cost nothing here."""


def sorted_families(families: Sequence[SessionFamily], sort: str) -> list[SessionFamily]:
    """Return families in an order of `SORTS`; equal ones keep theirs, the newest first."""
    return sorted(families, key=SORTS[sort])


def next_sort(sort: str) -> str:
    """Return the order after this one."""
    names = tuple(SORTS)
    return names[(names.index(sort) + 1) % len(names)]
