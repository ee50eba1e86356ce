"""A full-text search while it runs, and its hits so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from agentdash.replay.library.entry import Entry
from agentdash.replay.library.search import Hit, SearchProgress, search

_REPORT_INTERVAL_S: Final = 0.1
"""Often enough for a list that grows smoothly, seldom enough not to slow the search down."""
_MAX_HITS: Final = 5_000
"""The search stops here: more hits than are ever scrolled through."""


class SearchJob:
    """A search for words in sessions. `steps` runs it, in any thread; all else may be read meanwhile."""

    def __init__(self, words: str, entries: Sequence[Entry]) -> None:
        self.words = words
        self.total = len(entries)
        """Number of sessions to search."""
        self._paths = [entry.path for entry in entries]
        self.hits: list[Hit] = []
        self.left_out = 0
        """Number of hits that were only counted."""
        self.files = 0
        """Number of sessions opened so far."""
        self.bytes = 0
        self.problems = 0
        """Number of files that could not be searched to their end."""
        self.seconds = 0.0
        self.over = False

    def steps(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Search, and yield whenever the hits so far should be drawn.

        Args:
            cancelled: polled after each hit and each file; True ends the search.
        """
        began = reported = time.monotonic()
        current = None
        for found in search(self._paths, self.words):
            if found.path != current:
                current = found.path
                self.files += 1
            if isinstance(found, SearchProgress):
                self.bytes += found.size
                self.left_out += found.omitted
                self.problems += found.problem is not None
            elif len(self.hits) < _MAX_HITS:
                self.hits.append(found)
            self.seconds = time.monotonic() - began
            if cancelled() or len(self.hits) >= _MAX_HITS:
                break
            if time.monotonic() - reported > _REPORT_INTERVAL_S:
                reported = time.monotonic()
                yield
        self.over = True
        yield

    @property
    def rate(self) -> float:
        """Megabytes per second."""
        return self.bytes / 1e6 / self.seconds if self.seconds else 0.0
