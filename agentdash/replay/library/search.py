"""Full-text search over rollouts: prompts, messages, commands and their outputs, newest session first.

Most of a file is skipped as bytes: a line is decoded only if it contains all the words somewhere, and a hit
counts only if they are in a prompt, message, command, output or error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agentdash.agents.codex.home import blocks
from agentdash.agents.session_logs import reader_of_log, thread_of_log
from agentdash.model.events import CallEnded, CallStarted, Event, MessageLogged, TurnEnded
from agentdash.model.limits import MAX_LINE_BYTES
from agentdash.model.sanitize import clean_line

HitKind = Literal["prompt", "message", "command", "output", "error"]

_CONTEXT_CHARS: Final = 24
"""Characters of an excerpt before the first word."""
_MAX_EXCERPT_CHARS: Final = 400
"""More than a row shows, even on a wide screen."""
_MAX_HITS_PER_FILE: Final = 200
"""Further hits of a file are only counted, so that one file does not bury the others."""
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
    """Words that must all be in one text, in any case and order."""

    def __init__(self, text: str) -> None:
        self.words = tuple(dict.fromkeys(text.casefold().split()))
        parts = [part for word in self.words for part in _UNESCAPED.findall(word)]
        self._ascii = [part.encode() for part in parts if part.isascii()]
        self._non_ascii = [part for part in parts if not part.isascii()]
        longest_first = sorted(self.words, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)

    def may_match(self, raw: bytes) -> bool:
        """Return whether a text within this JSON may match; false is certain, true is not."""
        lowered = raw.lower()
        if not all(part in lowered for part in self._ascii):
            return False
        if not self._non_ascii or b"\\u" in raw:  # some JSON encoders escape non-ASCII letters
            return True
        text = raw.decode("utf-8", "replace").casefold()
        return all(part in text for part in self._non_ascii)

    def matches(self, text: str) -> bool:
        """Return whether a text contains all words."""
        folded = text.casefold()
        return all(word in folded for word in self.words)

    def excerpt(self, text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """Return the text around the first word on one line, and the words' positions in it."""
        first = self._pattern.search(text)
        start = max(0, (first.start() if first else 0) - _CONTEXT_CHARS)
        shown = clean_line(("…" if start else "") + text[start : start + _MAX_EXCERPT_CHARS])
        return shown, tuple(match.span() for match in self._pattern.finditer(shown))


def search(paths: Iterable[Path], text: str) -> Iterator[Hit | SearchProgress]:
    """Search rollouts in the given order.

    Yields a `SearchProgress` after the hits of each block of about 1 MiB, and for errors.
    """
    terms = SearchTerms(text)
    if not terms.words:
        return
    for path in paths:
        if (thread := thread_of_log(path)) is not None:
            yield from _search_file(path, thread, terms)


def _search_file(path: Path, thread: str, terms: SearchTerms) -> Iterator[Hit | SearchProgress]:
    hits = 0
    try:
        for found in _search_blocks(path, thread, terms):
            hits += isinstance(found, Hit)
            if isinstance(found, SearchProgress) or hits <= _MAX_HITS_PER_FILE:
                yield found
    except OSError as error:
        yield SearchProgress(path, 0, problem=clean_line(error.strerror or str(error)))
    if hits > _MAX_HITS_PER_FILE:
        yield SearchProgress(path, 0, omitted=hits - _MAX_HITS_PER_FILE)


def _search_blocks(path: Path, thread: str, terms: SearchTerms) -> Iterator[Hit | SearchProgress]:
    reader = reader_of_log(path, thread)
    header: list[bytes] = []
    for first, block in _line_blocks(path):
        if len(header) < _HEADER_LINES:
            header += block.split(b"\n", _HEADER_LINES)[: _HEADER_LINES - len(header)]
            reader.read(header)
        if terms.may_match(block):
            for number, line in enumerate(block.split(b"\n"), first):
                if terms.may_match(line):
                    yield from _hits(path, reader.read((line,), number), terms)
        yield SearchProgress(path, len(block))


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


def _hits(path: Path, events: Iterable[Event], terms: SearchTerms) -> Iterator[Hit]:
    for event in events:
        for what, text in _texts(event):
            if terms.matches(text):
                shown, marks = terms.excerpt(text)
                yield Hit(
                    path=path,
                    thread=getattr(event, "thread", ""),
                    line=getattr(event, "line", 0),
                    at=event.at,
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
