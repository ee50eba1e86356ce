"""Full-text search over session logs: prompts, messages, reasoning, commands, patches, outputs, errors.

Most of a file is skipped as bytes: a line is decoded only if it contains all the words somewhere, and a hit
counts only if they are in one of these texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agentdash.agents.codex.home import blocks
from agentdash.agents.codex.rollout.lineage import line_time
from agentdash.agents.log_texts import line_texts
from agentdash.agents.session_logs import LogReader, SessionLog, log_of
from agentdash.model.events import CallEnded, CallStarted, Event, MessageLogged, TurnEnded
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.sanitize import clean_line

HitKind = Literal["prompt", "message", "command", "output", "error", "patch", "reasoning", "search"]

_CONTEXT_CHARS: Final = 16
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
        if len(self._ascii) == len(self._parts) and raw.isascii():
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


def search(paths: Iterable[Path], text: str) -> Iterator[Hit | SearchProgress]:
    """Search session logs in the given order.

    Yields a `SearchProgress` after the hits of each block of about 1 MiB, and for errors.
    """
    terms = SearchTerms(text)
    if not terms.terms:
        return
    for path in paths:
        if (log := log_of(path)) is not None:
            yield from _search_file(log, terms)


def _search_file(log: SessionLog, terms: SearchTerms) -> Iterator[Hit | SearchProgress]:
    hits = 0
    try:
        for found in _search_blocks(log, terms):
            hits += isinstance(found, Hit)
            if isinstance(found, SearchProgress) or hits <= _MAX_HITS_PER_FILE:
                yield found
    except OSError as error:
        yield SearchProgress(log.path, problem=clean_line(error.strerror or str(error)))
    if hits > _MAX_HITS_PER_FILE:
        yield SearchProgress(log.path, omitted=hits - _MAX_HITS_PER_FILE)


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
        yield SearchProgress(log.path)


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
    matching = ((what, text) for what, text in line_texts(line) if terms.matches(text))
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
# A search while it runs: of the library, or of one replay


_MAX_HITS: Final = 5_000
"""The search stops here: more hits than are ever scrolled through."""


class TextSearch:
    """A search for words and "phrases" in session logs. `steps` runs it, in any thread; all else may be read
    meanwhile."""

    def __init__(self, words: str, paths: Sequence[Path]) -> None:
        self.words = words
        self._paths = paths
        self.total = len(paths)
        """Number of sessions to search."""
        self.hits: list[Hit] = []
        self.left_out = 0
        """Number of hits that were only counted."""
        self.files = 0
        """Number of sessions opened so far."""
        self.problems = 0
        """Number of files that could not be searched to their end."""
        self.over = False

    def steps(self) -> Iterator[None]:
        """Search; yield after each hit and each block."""
        current = None
        for found in search(self._paths, self.words):
            if found.path != current:
                current = found.path
                self.files += 1
            if isinstance(found, SearchProgress):
                self.left_out += found.omitted
                self.problems += found.problem is not None
            else:
                self.hits.append(found)
            if len(self.hits) >= _MAX_HITS:
                return
            yield
