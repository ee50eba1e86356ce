"""The filter language of the library: words and "phrases" in any fact of a session, `since:7d`,
`until:yesterday`; `!` inverts a term. Pure.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from agentdash.replay.clock import parse_period
from agentdash.replay.library.entry import Entry, SessionFamily

_TERM: Final = re.compile(r'(!?)(?:(since|until):)?(?:"([^"]*)(?:"|$)|(\S+))?')
"""Inversion, key, phrase in quotes (the end of the text closes one that is still typed), word."""
_FLAGS: Final = ("archived", "compressed", "denied", "fork", "helper", "recording")
"""Words that stand for a field of `Entry`."""

Predicate = Callable[[Entry], bool]


class Query(NamedTuple):
    """A parsed filter. An entry matches if all terms do."""

    text: str = ""
    predicates: tuple[Predicate, ...] = ()
    problem: str | None = None
    """Message for the first invalid term; such terms are ignored."""

    @classmethod
    def parse(cls, text: str, now: float) -> Query:
        """Parse a filter; `now` is the reference of `today` and `7d` (unix seconds)."""
        predicates: list[Predicate] = []
        problem = None
        for match in _TERM.finditer(text.casefold()):
            if not (value := match[3] or match[4]):
                continue  # it is still typed
            try:
                predicate = _date_predicate(match[2], value, now) if match[2] else _text_predicate(value)
            except ValueError as error:
                problem = problem or str(error)
            else:
                predicates.append(_negate(predicate) if match[1] else predicate)
        return cls(text, tuple(predicates), problem)

    def matches(self, entry: Entry) -> bool:
        """Return whether an entry matches."""
        return all(predicate(entry) for predicate in self.predicates)

    def matches_family(self, family: SessionFamily) -> bool:
        """Return whether any member of a family matches."""
        return not self.predicates or any(self.matches(member.entry) for member in family.members)


def searchable_text(entry: Entry) -> str:
    """Return the facts of an entry as one case-folded text, with its date in several forms."""
    begun = time.localtime(entry.begun) if entry.begun is not None else None
    state = entry.state.value if entry.state else ""
    parts = (
        entry.id,
        time.strftime("%Y-%m-%d %H:%M %A %d %b", begun) if begun else "",
        state,
        state.replace("-", " "),
        entry.verdict or "",
        *entry.findings,
        entry.reason,
        entry.title,
        entry.cwd or "",
        f"{entry.agent} {entry.version or ''}",
        entry.model or "",
        entry.source or "",
        entry.problem or "",
        "unreadable" if entry.is_unreadable else "",
        *(flag for flag in _FLAGS if getattr(entry, flag)),
    )
    return "\n".join(parts).casefold()


def _text_predicate(value: str) -> Predicate:
    return lambda entry: value in searchable_text(entry)


def _date_predicate(key: str, value: str, now: float) -> Predicate:
    if (period := parse_period(value, now)) is None:
        raise ValueError(f"invalid date {value!r}: use 2026-11-01, 2026-11-01T20:15, today, yesterday or 7d")
    start, end = period
    if key == "since":
        return lambda entry: entry.begun is not None and entry.begun >= start
    return lambda entry: entry.begun is not None and entry.begun < end


def _negate(predicate: Predicate) -> Predicate:
    return lambda entry: not predicate(entry)
