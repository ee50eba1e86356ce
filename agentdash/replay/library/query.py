"""What is typed to find sessions: words in any column, and `state:failed verdict:mismatch dir:api since:2026-11-01`. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from agentdash.replay.library.families import SessionFamily
from agentdash.replay.library.library import Entry

_AGO: Final = re.compile(r"(\d{1,6})([mhdw])")
_UNITS: Final = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAY: Final = 86_400
_FORMATS: Final = (("%Y-%m-%d", _DAY), ("%Y-%m", 31 * _DAY), ("%Y", 366 * _DAY), ("%Y-%m-%dT%H:%M", 60))
"""How a date may be written, and the seconds that it lasts at most."""

Test = Callable[[Entry], bool]


class Query(NamedTuple):
    """What is looked for: every term has to hold."""

    text: str = ""
    tests: tuple[Test, ...] = ()
    problem: str | None = None
    """A term that cannot be understood; it holds nothing back."""

    @classmethod
    def parse(cls, text: str, now: float) -> Query:
        """The query that was typed so far.

        Args:
            now: what `today` and `7d` are counted from (unix seconds).
        """
        tests: list[Test] = []
        problem = None
        for term in text.casefold().split():
            bare = term.removeprefix("!")
            try:
                test = _test(bare, now)
            except ValueError as error:
                problem = str(error)
                continue
            if test is not None:
                tests.append(_not(test) if term.startswith("!") else test)
        return cls(text, tuple(tests), problem)

    def lets(self, entry: Entry) -> bool:
        """Whether this entry is wanted."""
        return all(test(entry) for test in self.tests)

    def lets_family(self, family: SessionFamily) -> bool:
        """Whether any of them is."""
        return not self.tests or any(self.lets(member.entry) for member in family.members)


def haystack(entry: Entry) -> str:
    """Everything that a row can show, as one case-folded text."""
    state = entry.state.value if entry.state else ""
    parts = (
        entry.id,
        day(entry.begun),
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


def day(at: float | None) -> str:
    """Local date and time, `2026-11-20 19:59`; empty where it is not known."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at is not None else ""


def _test(term: str, now: float) -> Test | None:
    name, colon, value = term.partition(":")
    if colon and name in ("since", "until"):
        return _dated(name, value, now) if value else None
    if colon and name in _COLUMNS:
        column = _COLUMNS[name]
        return (lambda entry: column(entry, value)) if value else None
    return (lambda entry: term in haystack(entry)) if term else None


def _not(test: Test) -> Test:
    return lambda entry: not test(entry)


def _dated(name: str, value: str, now: float) -> Test:
    start, end = period(value, now)
    if name == "since":
        return lambda entry: entry.begun is not None and entry.begun >= start
    return lambda entry: entry.begun is not None and entry.begun < end


def period(text: str, now: float) -> tuple[float, float]:
    """The time that `today`, `7d` (ago), `2026-11-01`, `2026-11` mean: from and to, unix seconds.

    Raises:
        ValueError: it is no date; says which are.
    """
    midnight = time.mktime((*time.localtime(now)[:3], 0, 0, 0, 0, 0, -1))
    if text in ("today", "yesterday"):
        start = midnight if text == "today" else midnight - _DAY
        return start, start + _DAY
    if ago := _AGO.fullmatch(text):
        at = now - int(ago[1]) * _UNITS[ago[2]]
        return at, at
    for form, lasts in _FORMATS:
        try:
            start = time.mktime(time.strptime(text.upper(), form))
        except (ValueError, OverflowError):
            continue
        end = start + lasts
        if form in ("%Y-%m", "%Y"):  # the first moment of the month or year that follows
            then = time.localtime(end)
            end = time.mktime((then.tm_year, then.tm_mon if form == "%Y-%m" else 1, 1, 0, 0, 0, 0, 0, -1))
        return start, end
    raise ValueError(f"{text} is no date: 2026-11-01, 2026-11, today, 7d")


_COLUMNS: Final[dict[str, Callable[[Entry, str], bool]]] = {
    "state": lambda entry, value: entry.state is not None and value in entry.state.value,
    "verdict": lambda entry, value: entry.verdict is not None and entry.verdict.startswith(value),
    "finding": lambda entry, value: any(value in kind for kind in entry.findings),
    "dir": lambda entry, value: value in (entry.cwd or "").casefold(),
    "version": lambda entry, value: (entry.version or "").startswith(value),
    "model": lambda entry, value: value in (entry.model or "").casefold(),
    "is": lambda entry, value: (
        getattr(entry, value, False) is True
        if value in ("archived", "compressed", "fork", "helper")
        else False
    ),
}
"""What may stand before a colon, and what holds then. Any other colon is part of a word."""
