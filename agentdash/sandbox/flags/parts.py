"""What a script can print under one hypothesis about the flags, and whether an output is that.

Matching works on sets of places in the text, so its cost stays near the size of the text. Where a part cannot
be matched exactly it matches too much: no hypothesis is ruled out by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from agentdash.model.observation import NETWORK_FLAG, SANDBOX_FLAG

FLAGS: Final = (NETWORK_FLAG, SANDBOX_FLAG)
STEM: Final = SANDBOX_FLAG
"""Both flags begin with it."""
OWN: Final = {NETWORK_FLAG: "1", SANDBOX_FLAG: "seatbelt"}
"""The only values that Codex sets (codex-rs/core: spawn.rs, seatbelt.rs of 0.20 to 0.169)."""

_PLACEHOLDER: Final = (
    r"(?i:[<(\[{]?(?:none|null|nil|undefined|unset|not[ _-]?set|not defined|missing|empty|unknown|absent"
    r"|not present|n/a|no|off|false|undef|default|\(none\)|\(unset\))[>)\]}]?|[-?.]+|\(\)|<>|\[\])"
)
_NO_OTHER: Final = {n: re.compile(rf"(?:{own}|{_PLACEHOLDER})(?![\w.:/-])") for n, own in OWN.items()}
"""How no other value of a flag begins: with Codex's own, or with a word that scripts print for none."""


def can_be_other(name: str, text: str, at: int = 0) -> bool:
    """Return whether a value that Codex never sets can begin at a place of a text."""
    return _NO_OTHER[name].match(text, at) is None


class Hole(Enum):
    """Text that is not known."""

    ANY = "anything"
    LINE = "part of a line"
    QUIET = "text in which no line names a flag"


class Other(msgspec.Struct, frozen=True):
    """A value of a flag that Codex never sets."""

    name: str


class FlagLine(msgspec.Struct, frozen=True):
    """The line of a flag in a dump."""

    name: str
    value: str | None
    """None: a value that Codex never sets."""
    certain: bool = True
    """False: a filter may have dropped it."""


class Dump(msgspec.Struct, frozen=True):
    """Lines that list an environment, in any order."""

    lines: tuple[FlagLine, ...]
    """Those of flags that are there."""
    required: tuple[re.Pattern[str], ...] = ()
    """What is found in each other line."""
    needed: re.Pattern[str] | None = None
    """What another line begins with; None if there may be no other."""


class Errors(msgspec.Struct, frozen=True):
    """What went to standard error, which may arrive later than what was printed after it."""

    parts: Parts


Part = str | Hole | Other | Dump | Errors
Parts = tuple[Part, ...]

ANYTHING: Final[Parts] = (Hole.ANY,)


def literal(parts: Parts | None) -> str | None:
    """Return the text that parts are; None if some of it is not known."""
    if parts is None:
        return None
    found = ""
    for part in parts:
        if not isinstance(part, str):
            return None
        found += part
    return found


def are_equal(value: Parts, text: str) -> bool | None:
    """Return whether a value is a text; None if that is not known."""
    known = literal(value)
    if known is not None:
        return known == text
    if text == "" and any(isinstance(part, Other) or (isinstance(part, str) and part) for part in value):
        return False
    return False if len(value) == 1 and isinstance(value[0], Other) and text == OWN[value[0].name] else None


def joined(words: Iterable[Parts], separator: str = " ") -> Parts:
    """Return words with a separator between them."""
    found: list[Part] = []
    for number, word in enumerate(words):
        found += [separator, *word] if number and separator else word
    return tuple(found)


def arrivals(parts: Parts) -> tuple[Parts, ...]:
    """Return the orders in which both streams can arrive: as written, or standard error last.

    Codex reads them from two pipes.
    """
    printed = tuple([part for part in parts if not isinstance(part, Errors)])
    if len(printed) == len(parts):
        return (parts,)
    errors = joined((part.parts for part in parts if isinstance(part, Errors)), "")
    in_order = joined((part.parts if isinstance(part, Errors) else (part,) for part in parts), "")
    return in_order, (*printed, *errors)


# ---------------------------------------------------------------- matching

Span = tuple[int, int]
"""The first and last of some neighbouring places."""

_ENTRY: Final = re.compile(rf"(?P<name>{NETWORK_FLAG}|{SANDBOX_FLAG})=(?P<value>.*)", re.DOTALL)
"""The line of a flag in a dump."""
_BITS: Final = {NETWORK_FLAG: 1, SANDBOX_FLAG: 2}
_NEEDED: Final = 4
"""Bits of what was seen in a dump: each flag, and a line that is needed besides."""
MAX_SEARCHED: Final = 300
"""Characters of a line in which patterns of `grep` are searched for: the time grows with their square."""
_MAX_PLACES: Final = 12_000
"""Places that are looked at in one text, over all that is matched with it."""


class TooLongError(Exception):
    """The text can be matched in too many ways."""


class Line(NamedTuple):
    """A line of the text, with its newline, and the flag that it may list."""

    start: int
    end: int
    text: str
    flag: re.Match[str] | None


class Text:
    """An output that parts are matched with."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = len(text)
        self._lines = list(_lines_of(text))
        self._others: dict[Dump, list[int | None]] = {}
        self._places_left = _MAX_PLACES

    def matches(self, parts: Parts) -> bool:
        """Return whether parts can be the whole text."""
        return any(low <= self.end <= high for low, high in self._sequence(parts, [(0, 0)]))

    def _line_end(self, at: int) -> int:
        found = self.text.find("\n", at)
        return self.end if found < 0 else found

    def _sequence(self, parts: Parts, spans: list[Span]) -> list[Span]:
        """Return where a sequence can end that begins in one of some spans."""
        for part in parts:
            if not (spans := self._part(part, spans)):
                break
            self._places_left -= len(spans)
            if self._places_left < 0:
                raise TooLongError
        return spans

    def _part(self, part: Part, spans: list[Span]) -> list[Span]:
        match part:
            case str():
                return self._literal(part, spans)
            case Hole.ANY:
                return self._any(spans)
            case Hole.LINE:
                return _merged((low, self._line_end(high)) for low, high in spans)
            case Hole.QUIET:
                return _merged(span for low, high in spans for span in self._quiet(low, high))
            case Other():
                return _merged(span for low, high in spans for span in self._other(part, low, high))
            case Dump():
                return self._dump(part, spans)
            case Errors(parts=parts):
                return self._sequence(parts, spans)

    def _literal(self, literal: str, spans: list[Span]) -> list[Span]:
        found: list[Span] = []
        size = len(literal)
        for low, high in spans:
            at = self.text.find(literal, low, high + size)
            while at >= 0:
                found.append((at + size, at + size))
                at = self.text.find(literal, at + 1, high + size)
        return found

    def _any(self, spans: list[Span]) -> list[Span]:
        return [(spans[0][0], self.end)]

    def _quiet(self, low: int, high: int) -> Iterable[Span]:
        """Yield where text can end in which no line names a flag."""
        while low <= high:
            named = self.text.find(STEM, low)
            if named < 0:
                yield low, self.end
                return
            yield low, max(low, self.text.rfind("\n", low, named) + 1)
            yield low, min(named, high)
            low = named + 1

    def _other(self, other: Other, low: int, high: int) -> Iterable[Span]:
        self._places_left -= high - low
        if self._places_left < 0:
            raise TooLongError
        for at in range(low, high + 1):
            if at < (end := self._line_end(at)) and can_be_other(other.name, self.text, at):
                yield at + 1, end

    def _dump(self, dump: Dump, spans: list[Span]) -> list[Span]:
        """Return where the lines of an environment can end.

        The lines are passed once, with the sets of flags that can have been seen before each.
        """
        self._places_left -= len(self._lines)
        wanted = sum([_BITS[line.name] for line in dump.lines if line.certain])
        wanted += 0 if dump.needed is None else _NEEDED
        found = [] if wanted else list(spans)
        seen: set[int] = set()
        first, last = spans[0][0], spans[-1][1]
        for line, other in zip(self._lines, self._other_lines(dump), strict=True):
            if line.end <= first:
                continue
            if not seen and line.start > last:
                break
            if line.start <= last and _covers(spans, line.start, line.start):
                seen.add(0)
            if line.flag is not None:
                bit = _listed(dump, line.flag)
                after = {mask | bit for mask in seen if bit and not mask & bit}
            else:
                after = set() if other is None else {mask | other for mask in seen}
            if line.start <= last and _covers(spans, line.start + 1, line.end - 1):  # behind other text
                after |= {0, _NEEDED} | {_BITS[each.name] for each in dump.lines if each.name in line.text}
            seen = after
            for mask in seen:
                if mask & wanted == wanted:
                    found.append((line.end, line.end))
                    break
        return _merged(found)

    def _other_lines(self, dump: Dump) -> list[int | None]:
        """Return what each line adds to what was seen if it lists no flag; None if it cannot be there."""
        key = msgspec.structs.replace(dump, lines=())
        if key not in self._others:
            self._others[key] = [
                _NEEDED * bool(dump.needed and dump.needed.match(line.text))
                if len(line.text) > MAX_SEARCHED or all(each.search(line.text) for each in dump.required)
                else None
                for line in self._lines
            ]
        return self._others[key]


def _lines_of(text: str) -> Iterator[Line]:
    """Yield the lines that end with a newline."""
    start = 0
    for piece in text.split("\n")[:-1]:
        end = start + len(piece) + 1
        yield Line(start, end, piece, _ENTRY.fullmatch(piece) if STEM in piece else None)
        start = end


def _covers(spans: list[Span], low: int, high: int) -> bool:
    for start, end in spans:  # noqa: SIM110 - a generator takes three times as long
        if start <= high and low <= end:
            return True
    return False


def _merged(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def _listed(dump: Dump, flag: re.Match[str]) -> int:
    """Return the bit of a flag that a line of a dump lists, or 0 if it cannot be there."""
    name, value = flag["name"], flag["value"]
    line = next((line for line in dump.lines if line.name == name), None)
    if line is None:
        return 0
    is_shown = value == line.value if line.value is not None else value and can_be_other(name, value)
    return _BITS[name] if is_shown else 0
