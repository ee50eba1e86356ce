"""The filter language of the library: words and "phrases" in any fact of a session, and terms such as
`state:failed dir:"my project" since:7d`. Pure.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple, get_args

from agentdash.model.findings import FindingKind, Verdict
from agentdash.model.states import State
from agentdash.model.suggestions import did_you_mean, suggest
from agentdash.replay.library.entry import Entry, SessionFamily

_TERM: Final = re.compile(r'(!?)(?:([a-z][a-z_-]*):(?![/:\\]))?(?:"([^"]*)(?:"|$)|(\S+))?')
"""Negation, key, phrase in quotes (the end of the text closes one that is still typed), word. `20:15`,
`https://`, `std::` and `c:\\` are words."""

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
            try:
                predicate = _predicate(match[2] or "", match[3] or match[4] or "", now)
            except ValueError as error:
                problem = problem or str(error)
                continue
            if predicate is not None:
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
        *_flags(entry),
    )
    return "\n".join(parts).casefold()


# ---------------------------------------------------------------- terms


def _predicate(key: str, value: str, now: float) -> Predicate | None:
    """Return what a term tests, or None for one whose value is still missing.

    Args:
        key: what is before the colon; empty without a colon.
        value: the word or phrase.
        now: reference of dates (unix seconds).

    Raises:
        ValueError: the key or the value is unknown; the message lists the known ones.
    """
    if key and key not in KEYS:
        others = f': choose from {", ".join(KEYS)}, or search for "{key}:{value}" in quotes'
        raise ValueError(f"unknown key {key!r}{did_you_mean(key, KEYS) or others}")
    if not value:
        return None
    if key in _DATES:
        return _date_predicate(key, value, now)
    if key in _CHOICES:
        return _choice_predicate(key, value)
    if key in _TEXTS:
        return lambda entry: value in (_TEXTS[key](entry) or "").casefold()
    return lambda entry: value in searchable_text(entry)


def _negate(predicate: Predicate) -> Predicate:
    return lambda entry: not predicate(entry)


def _date_predicate(name: str, value: str, now: float) -> Predicate:
    start, end = parse_period(value, now)
    if name == "since":
        return lambda entry: entry.begun is not None and entry.begun >= start
    return lambda entry: entry.begun is not None and entry.begun < end


def _choice_predicate(key: str, value: str) -> Predicate:
    value = value.replace(" ", "-")
    matches = str.startswith if key in _BY_PREFIX else str.__contains__
    accepted = frozenset(choice for choice in _CHOICES[key] if matches(choice, value))
    if not accepted:
        raise ValueError(f"{key} has no {value!r}{suggest(value, _CHOICES[key])}")
    return lambda entry: not accepted.isdisjoint(_chosen(key, entry))


def _chosen(key: str, entry: Entry) -> Iterable[str]:
    """Return the values that an entry has for a key with fixed values."""
    match key:
        case "state":
            return () if entry.state is None else (entry.state.value,)
        case "verdict":
            return () if entry.verdict is None else (entry.verdict,)
        case "finding":
            return entry.findings
    return _flags(entry)


def _flags(entry: Entry) -> Iterable[str]:
    return (flag for flag in _FLAGS if getattr(entry, flag))


_FLAGS: Final = ("archived", "compressed", "denied", "fork", "helper", "recording")
"""Values of `is:`; each is a field of `Entry`."""
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "state": tuple(state.value for state in State),
    "verdict": get_args(Verdict),
    "finding": tuple(kind.value for kind in FindingKind),
    "is": _FLAGS,
}
"""Keys with fixed values. Any part of a value selects it."""
_BY_PREFIX: Final = ("verdict", "is")
"""Keys whose values are selected by their beginning: `match` is a part of `mismatch`."""
_DATES: Final = ("since", "until")
_TEXTS: Final[Mapping[str, Callable[[Entry], str | None]]] = {
    "dir": lambda entry: entry.cwd,
    "version": lambda entry: entry.version,
    "model": lambda entry: entry.model,
    "source": lambda entry: entry.source,
    "agent": lambda entry: entry.agent,
}
"""Keys with any values: any part matches."""
KEYS: Final = tuple(sorted((*_CHOICES, *_DATES, *_TEXTS)))
"""What may stand before a colon."""


# ------------------------------------------------------------
# Dates and times in a filter: `today`, `7d`, `2026-11-20`, as periods of local time. Pure
# Dates are naive on purpose: Python then takes the rules of the local time zone for each of them.


_AGO: Final = re.compile(r"(\d{1,6})([mhdw])")
_UNITS_S: Final = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(t\d\d:\d\d)?")


def parse_period(text: str, now: float) -> tuple[float, float]:
    """Return start and end (unix seconds) of a period of local time.

    It is `7d` (ago), `today`, `yesterday`, `2026-11-01` or `2026-11-01t20:15`. Days end where the next one
    begins: one on which the clock is changed has 23 or 25 hours.

    Raises:
        ValueError: the date is invalid; the message has the accepted formats.
    """
    if ago := _AGO.fullmatch(text):
        at = now - int(ago[1]) * _UNITS_S[ago[2]]
        return at, at
    try:
        today = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)  # noqa: DTZ006
        if text in ("today", "yesterday"):
            start, length = today - timedelta(days=text == "yesterday"), timedelta(days=1)
        elif date := _DATE.fullmatch(text):
            start = datetime.fromisoformat(text.upper())
            length = timedelta(minutes=1) if date[1] else timedelta(days=1)
        else:
            raise ValueError(text)
        return start.timestamp(), (start + length).timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"invalid date {text!r}: use 2026-11-01, 2026-11-01T20:15, today, yesterday or 7d"
        ) from error
