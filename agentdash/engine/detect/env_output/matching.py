"""Match an output with a pattern: what a script can print under one hypothesis.

Matching works on sets of positions, kept as intervals, so that its cost stays near the size of the output.
Where a part cannot be matched exactly it matches too much: no hypothesis is ruled out by mistake.
"""

from __future__ import annotations

import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from agentdash.engine.detect.env_output.dumps import FLAG_STEM, Dump, Interval
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Encoded,
    Excerpt,
    Hole,
    Kind,
    Names,
    Part,
    Parts,
    Trimmed,
    Words,
    is_excluded,
)
from agentdash.engine.detect.env_output.records import Record

_WORD: Final = re.compile(r"[^\s\"'`=]+")
_RANGE: Final = re.compile(r"\d+(?:,\d+)?[acd]\d+(?:,\d+)?$", re.MULTILINE)
_BLANKS: Final = re.compile(r"[ \t]+")
_NUMBER: Final = re.compile(r"[ \t]*\d+")
_BY_PLACE: Final = frozenset((Kind.OTHER, Kind.DIGITS, Kind.BLANKS, Kind.ENCODED))
"""Kinds of text whose ends depend on where exactly it begins."""
_MAX_PLACES: Final = 100
"""Positions of an interval that are looked at one by one."""
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=\n]*")
_MAX_CUTS: Final = 20
"""Places at which text behind `$(…)` can begin that are tried."""


class Text:
    """An output that patterns are matched against."""

    def __init__(self, text: str, *, is_prefix: bool) -> None:
        self.text = text
        self.end = len(text)
        self.is_prefix = is_prefix
        """The output stops somewhere: what follows is not known."""

    @cached_property
    def _line_starts(self) -> list[int]:
        """Offsets at which lines begin, and the end of the text."""
        starts = [match.end() for match in re.finditer("\n", self.text)]
        return starts if starts and starts[-1] == self.end else [*starts, self.end]

    def matches(self, parts: Parts) -> bool:
        """Return whether the whole text is an instance of a sequence."""
        positions, is_open = self._sequence(parts, [(0, 0)])
        return is_open or any(low <= self.end <= high for low, high in positions)

    def _sequence(self, parts: Parts, positions: list[Interval]) -> tuple[list[Interval], bool]:
        """Return where a sequence can end, and whether the text can stop within it."""
        is_open = False
        for number, part in enumerate(parts):
            is_open = is_open or (self.is_prefix and positions[-1][1] >= self.end)
            following = parts[number + 1] if number + 1 < len(parts) else "\n"
            if isinstance(part, Trimmed) and not (isinstance(following, str) and following.startswith("\n")):
                positions, stops = self._cut_off(part.parts, following, positions)
            else:
                positions, stops = self._part(part, positions)
            is_open = is_open or stops
            if not positions:
                break
        if positions and self.is_prefix and positions[-1][1] >= self.end:
            is_open = True
        return positions, is_open

    def _cut_off(
        self, parts: Parts, following: Part, positions: list[Interval]
    ) -> tuple[list[Interval], bool]:
        """Return where a sequence can end whose last line goes on with something else."""
        ends: list[int] | None = [] if isinstance(following, str) else None
        if isinstance(following, str) and not self.is_prefix:
            at = self.text.find(following, positions[0][0])
            while at >= 0 and ends is not None:
                ends = [*ends, at] if len(ends) < _MAX_CUTS else None
                at = self.text.find(following, at + 1)
        if ends is None or self.is_prefix:
            return self._hole(ANY, positions), False
        found: list[Interval] = []
        for end in ends:
            inner = [(low, min(high, end)) for low, high in positions if low <= end]
            cut = Text(self.text[:end] + "\n", is_prefix=False)
            reached, _ = cut._sequence(parts, inner)
            if any(low <= position <= high for low, high in reached for position in (end, end + 1)):
                found.append((end, end))
        return _merged(found), False

    def _part(self, part: Part, positions: list[Interval]) -> tuple[list[Interval], bool]:
        match part:
            case str():
                return self._literal(part, positions)
            case Hole():
                return self._hole(part, positions), False
            case Choice(options=options):
                ends: list[Interval] = []
                is_open = False
                for option in options:
                    found, stops = self._sequence(option, positions)
                    ends += found
                    is_open = is_open or stops
                return _merged(ends), is_open
            case Trimmed(parts=parts):
                ends, is_open = self._sequence(parts, positions)
                return _merged(self._without_breaks(low, high) for low, high in ends), is_open
            case Excerpt():
                return self._excerpt(part, positions), False
            case Encoded(parts=parts):
                return _merged(end for place in positions for end in self._decoded(*place, parts)), False
            case Names() | Words() | Dump(nul=True):
                return self._hole(ANY, positions), False
            case Dump() | Record():
                reached, is_open = part.ends(self.text, positions, self.is_prefix)
                return _merged(reached), is_open

    def _excerpt(self, excerpt: Excerpt, positions: list[Interval]) -> list[Interval]:
        """Return where an excerpt can end: behind the whole, or behind the last line that is kept."""
        low, high = positions[0]
        if self.is_prefix or len(positions) > 1 or low != high:
            return self._hole(ANY, positions)
        ends, _ = self._sequence(excerpt.parts, positions)
        stop = low
        for _ in range(excerpt.lines):
            if (stop := self.text.find("\n", stop) + 1) == 0:
                return ends
        whole = [(first, min(last, stop)) for first, last in ends if first <= stop]
        if not excerpt.is_start:
            return _merged([*whole, (stop, stop)])
        begun = Text(self.text[:stop], is_prefix=True)
        reached, is_open = begun._sequence(excerpt.parts, positions)
        is_cut = is_open or any(first <= stop <= last for first, last in reached)
        return _merged([*whole, *([(stop, stop)] if is_cut else [])])

    def _literal(self, literal: str, positions: list[Interval]) -> tuple[list[Interval], bool]:
        ends: list[Interval] = []
        is_open = False
        for low, high in positions:
            at = self.text.find(literal, low, high + len(literal))
            while at >= 0:
                ends.append((at + len(literal),) * 2)
                at = self.text.find(literal, at + 1, high + len(literal))
            if self.is_prefix and high > self.end - len(literal):
                starts = range(max(low, self.end - len(literal) + 1), high + 1)
                is_open = is_open or any(literal.startswith(self.text[start:]) for start in starts)
        return _merged(ends), is_open

    def _hole(self, hole: Hole, positions: list[Interval]) -> list[Interval]:
        if hole.kind in _BY_PLACE:
            positions = _places(positions)
        match hole.kind:
            case Kind.ANY:
                return [(positions[0][0], self.end)]
            case Kind.LINE:
                return _merged((low, self._break(high)) for low, high in positions)
            case Kind.QUIET:
                return _merged((*positions, *self._lines(positions)))
            case Kind.ERRORS:
                return _merged((*positions, *self._errors(positions, hole.key)))
            case Kind.TRACE | Kind.LONG_TRACE:
                return _merged((*positions, *self._traces(positions, hole)))
            case Kind.ENCODED:
                return _merged(end for low, high in positions for end in self._forms(low, high, hole.exclude))
            case Kind.MARKED:
                return _merged((*positions, *self._marked(positions, hole.exclude)))
            case Kind.SOURCE:
                return _merged((*positions, *self._sources(positions, hole.key)))
            case Kind.QUIET_TEXT:
                return _merged((low, self._named(high)) for low, high in positions)
            case Kind.QUIET_LINE:
                return _merged((low, min(self._break(high), self._named(high))) for low, high in positions)
            case Kind.BLANKS:
                return _merged(end for low, high in positions for end in self._blanks(low, high))
            case Kind.DIGITS:
                return _merged(end for low, high in positions for end in self._numbers(low, high))
            case Kind.OTHER:
                return _merged(
                    end
                    for low, high in positions
                    for end in self._others(low, high, (*hole.exclude, *hole.unlike))
                )

    def _break(self, start: int) -> int:
        at = self.text.find("\n", start)
        return self.end if at < 0 else at

    def _named(self, start: int) -> int:
        """Return where the next name of a flag begins: quiet text ends there at the latest."""
        at = self.text.find(FLAG_STEM, start)
        return self.end if at < 0 else at

    def _lines(self, positions: list[Interval]) -> Iterator[Interval]:
        """Yield where whole lines can end that begin at one of the positions."""
        for low, high in positions:
            stop = self._named(high)
            first, last = bisect_right(self._line_starts, low), bisect_right(self._line_starts, stop)
            for start in self._line_starts[first:last]:
                yield start, start

    def _traces(self, positions: list[Interval], hole: Hole) -> Iterator[Interval]:
        """Yield where lines of `set -x` can end that begin at one of the positions."""
        for low, high in positions:
            if low == high:
                yield from self._trace_from(low, hole)
            else:
                yield low, self.end

    def _trace_from(self, start: int, hole: Hole) -> Iterator[Interval]:
        at = start
        is_long = hole.kind is Kind.LONG_TRACE
        while (stop := self.text.find("\n", at)) >= 0:
            is_rest = is_long and start < at
            if not (is_rest or self.text[at] == "+" or (hole.key and self.text[at:stop] == hole.key)):
                return
            at = stop + 1
            yield at, at

    def _errors(self, positions: list[Interval], program: str) -> Iterator[Interval]:
        """Yield where lines can end that all name a program."""
        for low, high in positions:
            stop = self._named(high)
            at = self.text.find("\n", low) + 1
            start = low
            while start < at <= stop and program in self.text[start:at]:
                yield at, at
                start, at = at, self.text.find("\n", at) + 1

    def _marked(self, positions: list[Interval], marks: tuple[str, ...]) -> Iterator[Interval]:
        """Yield where lines can end that all begin with a mark, or say which lines of two files differ."""
        for low, high in positions:
            if low != high:
                yield low, self.end
                continue
            start, stop = low, self.text.find("\n", low)
            while stop >= 0 and (self.text.startswith(marks, start) or _RANGE.match(self.text, start)):
                yield stop + 1, stop + 1
                start, stop = stop + 1, self.text.find("\n", stop + 1)

    def _sources(self, positions: list[Interval], script: str) -> Iterator[Interval]:
        """Yield where lines of a script can end that begin at one of the positions."""
        lines = set(script.split("\n"))
        for low, high in positions:
            if low != high:
                yield low, self.end
                continue
            start, stop = low, self.text.find("\n", low)
            while stop >= 0 and self.text[start:stop] in lines:
                yield stop + 1, stop + 1
                start, stop = stop + 1, self.text.find("\n", stop + 1)

    def _forms(self, low: int, high: int, exclude: tuple[str, ...]) -> Iterator[Interval]:
        """Yield where a text can end that is not one of some: in its line, or at the end of some line."""
        if low != high:
            yield low, self.end
            return
        stop = self._break(low)
        ends = [*range(low + 1, stop + 1), *(at for at in self._line_starts if at > stop)]
        yield from ((at, at) for at in ends if self.text[low:at] not in exclude)

    def _decoded(self, low: int, high: int, parts: Parts) -> Iterator[Interval]:
        """Yield where a text in base64 can end that is an instance of a sequence."""
        form = _BASE64.match(self.text, low)
        if low != high or self.is_prefix or form is None or form[0].count("\n") > _MAX_CUTS:
            yield low, self.end
            return
        breaks = [low + at for at, char in enumerate(form[0]) if char == "\n"]
        for end in {low, form.end(), *breaks, *(at + 1 for at in breaks)}:
            try:
                text = b64decode(self.text[low:end].replace("\n", ""), validate=True).decode()
            except ValueError:
                continue
            if Text(text, is_prefix=False).matches(parts):
                yield end, end

    def _blanks(self, low: int, high: int) -> Iterator[Interval]:
        """Yield the ends of runs of blanks that begin at one of the positions."""
        for run in _BLANKS.finditer(self.text, low, self._break(high)):
            if run.start() > high:
                return
            yield run.end(), run.end()

    def _numbers(self, low: int, high: int) -> list[Interval]:
        if low != high:
            return [(low, self._break(high))]
        match = _NUMBER.match(self.text, low)
        return [(low + 1, match.end())] if match else []

    def _others(self, low: int, high: int, exclude: tuple[str, ...]) -> list[Interval]:
        match = _WORD.match(self.text, high)
        stop = match.end() if match else high
        if low != high:
            return [(low + 1, stop)] if stop > low else []
        word = self.text[low:stop]
        ends = [low + length for length in range(1, len(word) + 1) if not is_excluded(word[:length], exclude)]
        return [(end, end) for end in ends]

    def _without_breaks(self, low: int, high: int) -> Interval:
        while low > 0 and self.text[low - 1] == "\n":
            low -= 1
        return low, high


def _places(positions: list[Interval]) -> list[Interval]:
    """Return positions one by one, where they are not too many."""
    if sum(high - low for low, high in positions) > _MAX_PLACES:
        return positions
    return [(at, at) for low, high in positions for at in range(low, high + 1)]


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    result: list[Interval] = []
    for low, high in sorted(intervals):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return result
