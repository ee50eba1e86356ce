"""How much a worker did in each of the last ten minutes: counted from events, in constant time and space."""

from __future__ import annotations

from typing import Final

import msgspec

MINUTES: Final = 10
"""As many as the cells of a row."""
MAX_LEVEL: Final = 8
_MINUTE_S: Final = 60.0


class Activity(msgspec.Struct, frozen=True):
    """Events by minute, up to the last minute that had any."""

    minute: int
    """The last minute that has events (unix seconds / 60)."""
    counts: tuple[int, ...]
    """Events in each of `MINUTES` minutes, the last one last."""

    def levels(self, now: float) -> tuple[int, ...]:
        """Return a height of 0 to `MAX_LEVEL` for each of the minutes up to `now` (unix seconds).

        The scale is that of powers of two, the same for all workers.
        """
        passed = int(now // _MINUTE_S) - self.minute
        if passed < 0:
            return (0,) * MINUTES
        shown = (*self.counts, *(0,) * min(passed, MINUTES))[-MINUTES:]
        return tuple(min(MAX_LEVEL, count.bit_length()) for count in shown)


def count_event(before: Activity | None, at: float) -> Activity:
    """Return the activity with one more event at a time (unix seconds); an old one changes nothing."""
    minute = int(at // _MINUTE_S)
    if before is None:
        return Activity(minute, (*(0,) * (MINUTES - 1), 1))
    passed = minute - before.minute
    if passed <= -MINUTES:
        return before
    if passed > 0:
        counts = (*before.counts, *(0,) * min(passed, MINUTES))[-MINUTES:]
        return Activity(minute, (*counts[:-1], counts[-1] + 1))
    index = MINUTES - 1 + passed
    counts = before.counts
    return Activity(before.minute, (*counts[:index], counts[index] + 1, *counts[index + 1 :]))
