"""Full-text search over session logs: prompts, messages, reasoning, commands, patches, outputs, errors.

Most of a file is skipped as bytes: a line is decoded only if it contains all the words somewhere, and a hit
counts only if they are in one of these texts.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agentdash.agents.claude.transcript.texts import line_texts as transcript_texts
from agentdash.agents.codex.home import blocks
from agentdash.agents.codex.rollout.lineage import line_time
from agentdash.agents.codex.rollout.texts import line_texts as rollout_texts
from agentdash.agents.session_logs import LogReader, SessionLog, log_of
from agentdash.model.events import CallEnded, CallStarted, Event, MessageLogged, TurnEnded
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.sanitize import clean_line

HitKind = Literal["prompt", "message", "command", "output", "error", "patch", "reasoning", "search"]

_CONTEXT_CHARS: Final = 24
"""Characters of an excerpt before the first word."""
_MAX_EXCERPT_CHARS: Final = 400
"""More than a row shows, even on a wide screen."""
_MAX_HITS_PER_FILE: Final = 200
"""Further hits of a file are only counted, so that one file does not bury the others."""
_TERM: Final = re.compile(r'(?<!\S)"([^"]+)"(?!\S)|(\S+)')
"""A phrase in quotes, or a word. A quote within a word, or without another one, stands for itself."""
_ESCAPED_LETTER: Final = re.compile(rb"\\u(?!00[0-7])")
"""A letter beyond ASCII as some JSON encoders write it; control characters have escapes as well."""
_CALL_ID: Final = re.compile(rb'"call_id":"([^"]{1,200})"')
_SURROGATES: Final = (0xD800, 0xE000, 0x10000)
"""First surrogate, first code point behind them, and the end of those that fold to ASCII
(Unicode 15)."""
_ASCII: Final = bytes(range(0x80))
_UNESCAPED: Final = re.compile(r'[^"\\\x00-\x1f]+')
"""Text that JSON contains literally."""
_HEADER_LINES: Final = 2
"""First lines of a rollout: they determine which of the others are copied from a parent."""


class Hit(NamedTuple):
    """A text that contains all the words."""

    path: Path
    thread: str
    line: int
    """Line of the rollout, from 1."""
    at: float
    """Unix seconds."""
    what: HitKind
    text: str
    """An excerpt around the first word, on one line."""
    marks: tuple[tuple[int, int], ...]
    """Start and end of each word in `text`."""


class SearchProgress(NamedTuple):
    """A part of a file was searched."""

    path: Path
    size: int
    """Bytes searched since the previous progress, uncompressed."""
    omitted: int = 0
    """Further hits in the file."""
    problem: str | None = None
    """Why it could not be searched to its end."""


class SearchTerms:
    """Words and "phrases in quotes" that must all be in one text, in any case and order."""

    def __init__(self, text: str) -> None:
        found = ((match[1] or match[2]).casefold().split() for match in _TERM.finditer(text))
        terms = dict.fromkeys(tuple(words) for words in found if words)
        self.terms = tuple(" ".join(words) for words in terms)
        parts = [part for words in terms for word in words for part in _UNESCAPED.findall(word)]
        self._ascii = [part.encode() for part in parts if part.isascii()]
        self._parts = parts
        self._patterns = [re.compile(r"\s+".join(map(re.escape, words))) for words in terms]

    def may_match(self, raw: bytes) -> bool:
        """Return whether a text within this JSON may match; false is certain, true is not."""
        if b"\\u" in raw and _ESCAPED_LETTER.search(raw):  # some JSON encoders escape non-ASCII letters
            return True
        if len(self._ascii) == len(self._parts) and not _has_folding_letters(raw):
            lowered = raw.lower()
            return all(part in lowered for part in self._ascii)
        folded = raw.decode("utf-8", "replace").casefold()
        return all(part in folded for part in self._parts)

    def matches(self, text: str) -> bool:
        """Return whether a text contains all terms."""
        folded = text.casefold()
        return all(pattern.search(folded) for pattern in self._patterns)

    def excerpt(self, text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """Return the text around the first term on one line, and the terms' positions in it."""
        found = self._spans(text)
        start = max(0, (found[0][0] if found else 0) - _CONTEXT_CHARS)
        shown = clean_line(("…" if start else "") + text[start : start + _MAX_EXCERPT_CHARS])
        return shown, tuple(self._spans(shown))

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the terms are in a text, without overlaps."""
        folded = text.casefold()
        at: Sequence[int] = range(len(text) + 1)
        if len(folded) != len(text):  # `ß` becomes two letters
            at = [number for number, letter in enumerate(text) for _ in letter.casefold()] + [len(text)]
        found = sorted(match.span() for pattern in self._patterns for match in pattern.finditer(folded))
        spans: list[tuple[int, int]] = []
        for begin, end in found:
            span = (at[begin], at[end - 1] + 1)
            if not spans or span[0] >= spans[-1][1]:
                spans.append(span)
        return spans


def _has_folding_letters(raw: bytes) -> bool:
    """Return whether there are letters beyond ASCII that stand for ASCII letters in any case: `ß`, `ﬁ`."""
    if raw.isascii():
        return False
    beyond = raw.translate(None, _ASCII)  # most of the text is gone: the letters are looked for in the rest
    return any(letter in beyond for letter in _folding_letters())


@cache
def _folding_letters() -> tuple[bytes, ...]:
    letters = map(chr, (*range(0x80, _SURROGATES[0]), *range(*_SURROGATES[1:])))
    return tuple(letter.encode() for letter in letters if any(part.isascii() for part in letter.casefold()))


def search(
    paths: Iterable[Path], text: str, *, max_hits: int = _MAX_HITS_PER_FILE
) -> Iterator[Hit | SearchProgress]:
    """Search session logs in the given order; of each file further hits than `max_hits` are only counted.

    Yields a `SearchProgress` after the hits of each block of about 1 MiB, and for errors.
    """
    terms = SearchTerms(text)
    if not terms.terms:
        return
    for path in paths:
        if (log := log_of(path)) is not None:
            yield from _search_file(log, terms, max_hits)


def _search_file(log: SessionLog, terms: SearchTerms, max_hits: int) -> Iterator[Hit | SearchProgress]:
    hits = 0
    try:
        for found in _search_blocks(log, terms):
            hits += isinstance(found, Hit)
            if isinstance(found, SearchProgress) or hits <= max_hits:
                yield found
    except OSError as error:
        yield SearchProgress(log.path, 0, problem=clean_line(error.strerror or str(error)))
    if hits > max_hits:
        yield SearchProgress(log.path, 0, omitted=hits - max_hits)


def _search_blocks(log: SessionLog, terms: SearchTerms) -> Iterator[Hit | SearchProgress]:
    reader = log.reader()
    found_calls: set[tuple[str, str]] = set()
    header: list[bytes] = []
    for first, block in _line_blocks(log.path):
        if len(header) < _HEADER_LINES:
            header += block.split(b"\n", _HEADER_LINES)[: _HEADER_LINES - len(header)]
            reader.read(header)
        if terms.may_match(block):
            for number, line in enumerate(block.split(b"\n"), first):
                if terms.may_match(line):
                    yield from _hits_in_line(log, reader, terms, found_calls, (number, line))
        yield SearchProgress(log.path, len(block))


def _hits_in_line(
    log: SessionLog,
    reader: LogReader,
    terms: SearchTerms,
    found_calls: set[tuple[str, str]],
    numbered: tuple[int, bytes],
) -> Iterator[Hit]:
    """Yield the hits in the events of a line; without any, those in what the events shorten or leave out.

    Args:
        reader: of its lines.
        terms: what is searched.
        found_calls: kind and call of the hits in events: other lines repeat the texts of these.
        numbered: the line, and its number.
    """
    number, line = numbered
    events = reader.read((line,), number)
    at = line_time(line) or reader.at  # of the line: that of a nested command began earlier
    found = list(_hits(log.path, events, terms, at))
    yield from found
    found_calls |= {
        (hit.what, event.call)
        for hit in found
        for event in events
        if isinstance(event, CallStarted | CallEnded)
    }
    call = _CALL_ID.search(line)
    if found or reader.is_copied(line):
        return
    texts = transcript_texts if log.agent == "claude" else rollout_texts
    matching = ((what, text) for what, text in texts(line) if terms.matches(text))
    if call is not None:
        repeated = clean_line(call[1].decode("utf-8", "replace"))
        matching = ((what, text) for what, text in matching if (what, repeated) not in found_calls)
    for what, text in islice(matching, 1):  # the parts of a patch, or of arguments, are one hit
        shown, marks = terms.excerpt(text)
        yield Hit(
            path=log.path,
            thread=log.thread,
            line=number,
            at=at,
            what=what,
            text=shown,
            marks=marks,
        )


def _line_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield complete lines, about 1 MiB at a time, with the number of the first. Lines are cut at
    `MAX_LINE_BYTES`."""
    number, partial = 1, b""
    for data in chain(blocks(path), (b"",)):
        whole, newline, rest = data.rpartition(b"\n")
        if newline or not data:
            lines = partial + whole if newline else partial
            if lines:
                yield number, lines
            number += lines.count(b"\n") + 1
            partial = rest
        else:
            partial = (partial + data)[: MAX_LINE_BYTES + 1]


def _hits(path: Path, events: Iterable[Event], terms: SearchTerms, at: float) -> Iterator[Hit]:
    for event in events:
        for what, text in _texts(event):
            if terms.matches(text):
                shown, marks = terms.excerpt(text)
                yield Hit(
                    path=path,
                    thread=getattr(event, "thread", ""),
                    line=getattr(event, "line", 0),
                    at=at,
                    what=what,
                    text=shown,
                    marks=marks,
                )


def _texts(event: Event) -> Iterator[tuple[HitKind, str]]:
    match event:
        case MessageLogged(role="user", text=text):
            yield "prompt", text
        case MessageLogged(text=text):
            yield "message", text
        case CallStarted(text=text):
            yield "command", text
        case CallEnded(output=output):
            yield "output", output
        case TurnEnded(error=str(error)):
            yield "error", error


# ------------------------------------------------------------
# Find texts in one replay: where they were written, in the order of time


_MAX_HITS: Final = 20_000
"""More are not stepped through; the search stops there."""


class FoundTexts:
    """The hits of a search in the logs of a family, and the one that is shown.

    Args:
        words: what was searched: words and "phrases".
        hits: in the order of time.
        problems: files that could not be searched to their ends.
    """

    def __init__(self, words: str, hits: list[Hit], problems: int = 0) -> None:
        self.words = words
        self.hits = hits
        self.problems = problems
        self.current: int | None = None
        """Index of the hit that was gone to last."""

    def step(self, direction: int, at: float) -> Hit | None:
        """Go to the next (1) or previous (-1) hit and return it; None without hits.

        Behind the last one follows the first. The first step is from a time on (unix seconds).
        """
        if not self.hits:
            return None
        times = [hit.at for hit in self.hits]
        if self.current is not None:
            index = self.current + direction
        elif direction > 0:
            index = bisect_left(times, at)
        else:
            index = bisect_right(times, at) - 1
        self.current = index % len(self.hits)
        return self.hits[self.current]


def find_texts(
    paths: Iterable[Path], words: str, is_cancelled: Callable[[], bool] = lambda: False
) -> FoundTexts:
    """Search the logs of a family.

    Args:
        paths: of the logs.
        words: words and "phrases" that must all be in one text.
        is_cancelled: polled after each hit and each block; True ends the search.
    """
    hits: list[Hit] = []
    problems = 0
    for found in search(paths, words, max_hits=_MAX_HITS):
        if isinstance(found, SearchProgress):
            problems += found.problem is not None
        else:
            hits.append(found)
        if is_cancelled() or len(hits) >= _MAX_HITS:
            break
    return FoundTexts(words, sorted(hits, key=lambda hit: (hit.at, hit.thread, hit.line)), problems)
