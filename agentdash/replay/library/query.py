"""The filter language of the library: words in any column, and `state:failed verdict:mismatch dir:api
since:2026-11-01`. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from agentdash.replay.library.families import SessionFamily
from agentdash.replay.library.library import Entry

_AGO: Final = re.compile(r"(\d{1,6})([mhdw])")
_UNITS_S: Final = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAY_S: Final = 86_400
_DATE_FORMATS: Final = (
    ("%Y-%m-%d", _DAY_S),
    ("%Y-%m", 31 * _DAY_S),
    ("%Y", 366 * _DAY_S),
    ("%Y-%m-%dT%H:%M", 60),
)
"""Accepted formats of a date, and the longest period in seconds that each denotes."""

Predicate = Callable[[Entry], bool]


class Query(NamedTuple):
    """A parsed filter. An entry matches if all terms do."""

    text: str = ""
    predicates: tuple[Predicate, ...] = ()
    problem: str | None = None
    """Message for an invalid term; such a term is ignored."""

    @classmethod
    def parse(cls, text: str, now: float) -> Query:
        """Parse a filter.

        Args:
            now: reference of `today` and `7d` (unix seconds).
        """
        predicates: list[Predicate] = []
        problem = None
        for term in text.casefold().split():
            try:
                predicate = _predicate(term.removeprefix("!"), now)
            except ValueError as error:
                problem = str(error)
                continue
            if predicate is not None:
                predicates.append(_negate(predicate) if term.startswith("!") else predicate)
        return cls(text, tuple(predicates), problem)

    def matches(self, entry: Entry) -> bool:
        """Return whether an entry matches."""
        return all(predicate(entry) for predicate in self.predicates)

    def matches_family(self, family: SessionFamily) -> bool:
        """Return whether any member of a family matches."""
        return not self.predicates or any(self.matches(member.entry) for member in family.members)


def searchable_text(entry: Entry) -> str:
    """Return everything that a row can show, as one case-folded text."""
    state = entry.state.value if entry.state else ""
    parts = (
        entry.id,
        format_start(entry.begun),
        state,
        state.replace("-", " "),
        entry.verdict or "",
        *entry.findings,
        entry.title,
        entry.cwd or "",
        f"codex {entry.version or ''}",
        entry.model or "",
        entry.problem or "",
        "archived" if entry.archived else "",
        "fork" if entry.fork else "",
    )
    return "\n".join(parts).casefold()


def format_start(at: float | None) -> str:
    """Return the local date and time, `2026-11-20 19:59`; empty if unknown."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at is not None else ""


def parse_period(text: str, now: float) -> tuple[float, float]:
    """Return start and end (unix seconds) of the period of `today`, `7d` (ago), `2026-11-01`, `2026-11`.

    Raises:
        ValueError: the date is invalid; the message has the accepted formats.
    """
    midnight = time.mktime((*time.localtime(now)[:3], 0, 0, 0, 0, 0, -1))
    if text in ("today", "yesterday"):
        start = midnight if text == "today" else midnight - _DAY_S
        return start, start + _DAY_S
    if ago := _AGO.fullmatch(text):
        at = now - int(ago[1]) * _UNITS_S[ago[2]]
        return at, at
    for form, longest in _DATE_FORMATS:
        try:
            start = time.mktime(time.strptime(text.upper(), form))
        except (ValueError, OverflowError):
            continue
        end = start + longest
        if form in (
            "%Y-%m",
            "%Y",
        ):  # months and years differ in length: truncate to the start of the next one
            after = time.localtime(end)
            month = after.tm_mon if form == "%Y-%m" else 1
            end = time.mktime((after.tm_year, month, 1, 0, 0, 0, 0, 0, -1))
        return start, end
    raise ValueError(f"invalid date {text!r}: use 2026-11-01, 2026-11, today or 7d")


def _predicate(term: str, now: float) -> Predicate | None:
    name, colon, value = term.partition(":")
    if colon and name in ("since", "until"):
        return _date_predicate(name, value, now) if value else None
    if colon and name in _COLUMNS:
        column = _COLUMNS[name]
        return (lambda entry: column(entry, value)) if value else None
    return (lambda entry: term in searchable_text(entry)) if term else None


def _negate(predicate: Predicate) -> Predicate:
    return lambda entry: not predicate(entry)


def _date_predicate(name: str, value: str, now: float) -> Predicate:
    start, end = parse_period(value, now)
    if name == "since":
        return lambda entry: entry.begun is not None and entry.begun >= start
    return lambda entry: entry.begun is not None and entry.begun < end


_FLAGS: Final = ("archived", "compressed", "denied", "fork", "helper")
"""Values of `is:`; each is a field of `Entry`."""
_COLUMNS: Final[dict[str, Callable[[Entry, str], bool]]] = {
    "state": lambda entry, value: entry.state is not None and value in entry.state.value,
    "verdict": lambda entry, value: entry.verdict is not None and entry.verdict.startswith(value),
    "finding": lambda entry, value: any(value in kind for kind in entry.findings),
    "dir": lambda entry, value: value in (entry.cwd or "").casefold(),
    "version": lambda entry, value: (entry.version or "").startswith(value),
    "model": lambda entry, value: value in (entry.model or "").casefold(),
    "is": lambda entry, value: value in _FLAGS and getattr(entry, value) is True,
}
"""What may precede a colon, and how the value is compared. Any other colon is part of a word."""
