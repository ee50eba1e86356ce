"""Full-text search over session logs: prompts, messages, reasoning, commands, patches, outputs, errors.

Most lines are skipped as bytes: one is decoded only if it contains all the words somewhere, and a hit
counts only if they are in one of these texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from agentdash.agents.codex.home import open_lines
from agentdash.agents.codex.rollout.lineage import line_time
from agentdash.agents.line_events import LineEvents
from agentdash.agents.session_logs import SessionLog, line_texts, log_of
from agentdash.model.events import CallEnded, CallStarted, MessageLogged, TurnEnded
from agentdash.model.sanitize import clean_line

HitKind = Literal["prompt", "message", "command", "output", "error", "patch", "reasoning", "search"]

_CONTEXT_CHARS: Final = 16
"""Characters of an excerpt before the first word."""
_MAX_EXCERPT_CHARS: Final = 400
"""More than a row shows, even on a wide screen."""
_MAX_HITS_PER_FILE: Final = 200
"""Further hits of a file are only counted, so that one file does not bury the others."""
_MAX_HITS: Final = 5_000
"""The search stops here: more hits than are ever scrolled through."""
_TERM: Final = re.compile(r'(?<!\S)"([^"]+)"(?!\S)|(\S+)')
"""A phrase in quotes, or a word. A quote within a word, or without another one, stands for itself."""
_ESCAPED_LETTER: Final = re.compile(rb"\\u(?!00[0-7])")
"""A letter beyond ASCII as some JSON encoders write it; control characters have escapes as well."""
_LITERAL: Final = re.compile(r"[!#-\[\]-~]+")
"""Text that JSON contains literally, in any encoding."""
_STEP_LINES: Final = 500
"""Lines after which the search can be stopped."""
_HEADER_LINES: Final = 2
"""First lines of a rollout: they determine which of the others are copied from a parent."""


class Hit(NamedTuple):
    """A text that contains all the words."""

    path: Path
    thread: str
    line: int
    """Line of the log, from 1."""
    at: float
    """Unix seconds."""
    what: HitKind
    text: str
    """An excerpt around the first word, on one line."""
    marks: tuple[tuple[int, int], ...]
    """Start and end of each word in `text`."""


class SearchTerms:
    """Words and "phrases in quotes" that must all be in one text, in any case and order."""

    def __init__(self, text: str) -> None:
        found = ((match[1] or match[2]).lower().split() for match in _TERM.finditer(text))
        terms = dict.fromkeys(tuple(words) for words in found if words)
        self._parts = [part.encode() for words in terms for word in words for part in _LITERAL.findall(word)]
        self._patterns = [re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE) for words in terms]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def may_match(self, raw: bytes) -> bool:
        """Return whether a text within this JSON may match; false is certain, true is not."""
        lowered = raw.lower()
        return all(part in lowered for part in self._parts) or _ESCAPED_LETTER.search(raw) is not None

    def matches(self, text: str) -> bool:
        """Return whether a text contains all terms."""
        return all(pattern.search(text) for pattern in self._patterns)

    def excerpt(self, text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """Return the text around the first term on one line, and the terms' positions in it."""
        start = max(0, min((begin for begin, _ in self._spans(text)), default=0) - _CONTEXT_CHARS)
        shown = clean_line(("…" if start else "") + text[start : start + _MAX_EXCERPT_CHARS])
        return shown, tuple(self._spans(shown))

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the terms are in a text, without overlaps."""
        spans: list[tuple[int, int]] = []
        for span in sorted(match.span() for pattern in self._patterns for match in pattern.finditer(text)):
            if not spans or span[0] >= spans[-1][1]:
                spans.append(span)
        return spans


class TextSearch:
    """A search for words and "phrases" in session logs, in the given order. `steps` runs it, in any thread;
    all else may be read meanwhile."""

    def __init__(self, words: str, paths: Sequence[Path]) -> None:
        self.words = words
        self._terms = SearchTerms(words)
        self._paths = paths if self._terms else ()
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
        """Search; yield after each hit, and from time to time."""
        for path in self._paths:
            if (log := log_of(path)) is None:
                continue
            self.files += 1
            in_file = 0
            try:
                for hit in self._hits(log):
                    in_file += hit is not None
                    if hit is not None and in_file <= _MAX_HITS_PER_FILE:
                        self.hits.append(hit)
                    yield
                    if len(self.hits) >= _MAX_HITS:
                        return
            except OSError:
                self.problems += 1
            self.left_out += max(0, in_file - _MAX_HITS_PER_FILE)

    def _hits(self, log: SessionLog) -> Iterator[Hit | None]:
        """Yield the hits in a log, and None from time to time."""
        reader = log.reader()
        for number, line in enumerate(open_lines(log.path), 1):
            if self._terms.may_match(line):
                if (hit := self._hit(log, reader, line, number)) is not None:
                    yield hit
            elif number <= _HEADER_LINES:
                reader.read((line,), number)
            if number % _STEP_LINES == 0:
                yield None

    def _hit(self, log: SessionLog, reader: LineEvents, line: bytes, number: int) -> Hit | None:
        """Return the hit in a line: the parts of a patch, or of arguments, are one."""
        matching = ((w, text) for w, text in _texts(log, reader, line, number) if self._terms.matches(text))
        for what, text in matching:
            shown, marks = self._terms.excerpt(text)
            return Hit(log.path, log.thread, number, line_time(line) or reader.at, what, shown, marks)
        return None


def _texts(log: SessionLog, reader: LineEvents, line: bytes, number: int) -> Iterator[tuple[HitKind, str]]:
    """Yield kind and text of what was said, run and printed in a line, unless it was copied from a parent.

    The events of calls shorten what the items of the model's response have whole; those of chats do not.
    """
    for event in reader.read((line,), number):
        match event:
            case MessageLogged(role="user", text=text):
                yield "prompt", text
            case MessageLogged(text=text):
                yield "message", text
            case TurnEnded(error=str(error)):
                yield "error", error
            case CallStarted() if log.is_chat:
                yield "command", f"{event.tool} {event.script or event.text}"
            case CallEnded() if log.is_chat:
                yield "output", event.output
    if not reader.is_copying:
        yield from line_texts(line)
