"""A full-text search while it runs, and what it has found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from agentdash.replay.library.library import Entry
from agentdash.replay.library.search import Hit, SearchProgress, search

_MOMENT: Final = 0.1
"""Seconds of searching between two looks at what it has found."""
_MOST: Final = 5_000
"""Hits after which it stops: nobody reads on."""


class SearchJob:
    """Looks for words in sessions; `steps` does the work, in any thread, and everything else may be read meanwhile."""

    def __init__(self, words: str, entries: Sequence[Entry]) -> None:
        self.words, self.total = words, len(entries)
        self._paths = [entry.path for entry in entries]
        self.hits: list[Hit] = []
        self.left_out = 0
        """Hits that were counted only."""
        self.files = 0
        """Sessions begun with."""
        self.bytes = 0
        self.problems = 0
        """Files that could not be searched to their end."""
        self.seconds = 0.0
        self.over = False

    def steps(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """Searches, and stops for a moment whenever somebody should look."""
        began = shown = time.monotonic()
        current = None
        for found in search(self._paths, self.words):
            if found.path != current:
                current, self.files = found.path, self.files + 1
            if isinstance(found, SearchProgress):
                self.bytes += found.size
                self.left_out += found.omitted
                self.problems += found.problem is not None
            elif len(self.hits) < _MOST:
                self.hits.append(found)
            self.seconds = time.monotonic() - began
            if cancelled() or len(self.hits) >= _MOST:
                break
            if time.monotonic() - shown > _MOMENT:
                shown = time.monotonic()
                yield
        self.over = True
        yield

    @property
    def rate(self) -> float:
        """Megabytes in a second."""
        return self.bytes / 1e6 / self.seconds if self.seconds else 0.0
