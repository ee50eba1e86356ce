"""By what the families of the library can be sorted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agentdash.prices import priced_usd
from agentdash.replay.library.families import SessionFamily

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
