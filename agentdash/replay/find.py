"""Find texts in one replay: where they were written, in the order of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from agentdash.replay.library.search import Hit, SearchProgress, search

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
