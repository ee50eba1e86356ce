"""Full-text search over rollouts: prompts, messages, commands and their outputs, newest session first.

Most of a file is passed over as bytes: only lines that hold all the words somewhere are decoded, and only what was really said or printed
there counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agentdash.agents.codex.home import blocks, thread_id
from agentdash.agents.codex.rollout.kinds import LINE_LIMIT
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.model.events import CallEnded, CallStarted, Event, MessageLogged, TurnEnded
from agentdash.model.sanitize import clean_line

What = Literal["prompt", "message", "command", "output", "error"]

_AROUND: Final = 24
"""Characters shown before the first word."""
_SHOWN: Final = 400
_PER_FILE: Final = 200
"""Hits told of one file; the others are counted."""
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]+')
"""What JSON writes as it is."""
_HEADER: Final = 2
"""Lines at the beginning that tell which of the others are copied from a parent."""


class Hit(NamedTuple):
    """A place where all the words are."""

    path: Path
    thread: str
    line: int
    """Line of the rollout, from 1."""
    at: float
    what: What
    text: str
    """The words and what stands around them, on one line."""
    marks: tuple[tuple[int, int], ...]
    """Where the words are in `text`: from and to."""


class Searched(NamedTuple):
    """How far the search has come."""

    path: Path
    size: int
    """Bytes of this file that were searched, uncompressed."""
    left_out: int = 0
    """Further hits in it."""
    problem: str | None = None
    """Why it could not be searched to its end."""


class Words:
    """What is searched for: words that must all be in one text, in any case and order."""

    def __init__(self, text: str) -> None:
        self.words = tuple(dict.fromkeys(text.casefold().split()))
        parts = [part for word in self.words for part in _PLAIN.findall(word)]
        self._plain = [part.encode() for part in parts if part.isascii()]
        self._others = [part for part in parts if not part.isascii()]
        self._pattern = re.compile(
            "|".join(re.escape(word) for word in sorted(self.words, key=len, reverse=True)), re.IGNORECASE
        )

    def may_be_in(self, raw: bytes) -> bool:
        """Whether this JSON may hold them. False is certain, true is not."""
        reduced = raw.lower()
        if not all(part in reduced for part in self._plain):
            return False
        if not self._others or b"\\u" in raw:  # some write these letters escaped
            return True
        text = raw.decode("utf-8", "replace").casefold()
        return all(part in text for part in self._others)

    def are_in(self, text: str) -> bool:
        """Whether this text holds them."""
        reduced = text.casefold()
        return all(word in reduced for word in self.words)

    def excerpt(self, text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """The text around the first of them on one line, and where they are in it."""
        first = self._pattern.search(text)
        start = max(0, (first.start() if first else 0) - _AROUND)
        shown = clean_line(("…" if start else "") + text[start : start + _SHOWN])
        return shown, tuple(match.span() for match in self._pattern.finditer(shown))


def search(paths: Iterable[Path], text: str) -> Iterator[Hit | Searched]:
    """Looks for words in these rollouts, in their order; after the hits of each, and after each MiB without any, a `Searched`."""
    words = Words(text)
    if not words.words:
        return
    for path in paths:
        thread = thread_id(path)
        if thread is None:
            continue
        found = 0
        try:
            for step in _file(path, thread, words):
                found += isinstance(step, Hit)
                if isinstance(step, Searched) or found <= _PER_FILE:
                    yield step
        except OSError as error:
            yield Searched(path, 0, problem=clean_line(error.strerror or str(error)))
        if found > _PER_FILE:
            yield Searched(path, 0, found - _PER_FILE)


def _file(path: Path, thread: str, words: Words) -> Iterator[Hit | Searched]:
    reader = RolloutReader(thread)
    header: list[bytes] = []
    for number, chunk in _chunks(path):
        if len(header) < _HEADER:
            header += chunk.split(b"\n", _HEADER)[: _HEADER - len(header)]
            reader.read(header)
        if words.may_be_in(chunk):
            lines = ((number + i, line) for i, line in enumerate(chunk.split(b"\n")))
            for at, line in lines:
                if words.may_be_in(line):
                    yield from _hits(path, reader.read((line,), at), words)
        yield Searched(path, len(chunk))


def _chunks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about a MiB at a time, with the number of the first. What a line has beyond the limit of all reading is left out."""
    number, held = 1, b""
    for block in chain(blocks(path), (b"",)):
        whole, newline, rest = block.rpartition(b"\n")
        if newline or not block:
            chunk = held + whole if newline else held
            if chunk:
                yield number, chunk
            number += chunk.count(b"\n") + 1
            held = rest
        else:
            held = (held + block)[: LINE_LIMIT + 1]


def _hits(path: Path, events: Iterable[Event], words: Words) -> Iterator[Hit]:
    for event in events:
        for what, text in _texts(event):
            if words.are_in(text):
                shown, marks = words.excerpt(text)
                yield Hit(
                    path,
                    getattr(event, "thread", ""),
                    getattr(event, "line", 0),
                    event.at,
                    what,
                    shown,
                    marks,
                )


def _texts(event: Event) -> Iterator[tuple[What, str]]:
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
