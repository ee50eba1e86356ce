"""A place on a tape: what is known there, and what comes next."""

from __future__ import annotations

import pickle
from typing import Final

from agentdash.engine.reduce.fleet import reduce
from agentdash.model.events import LocksSeen, ProcessesCounted
from agentdash.model.fleet import Fleet
from agentdash.replay.streams import MergedStream, Step

_AFTER: Final = 5.0
"""Seconds after its last line at which a session that nobody holds is looked at once more: enough for its turn to count as left."""


class Cursor:
    """Goes along a tape and folds what it tells. A frozen one is a checkpoint: all that the rest of the way depends on.

    Args:
        tape: from its beginning.
    """

    def __init__(self, tape: MergedStream) -> None:
        self.tape = tape
        self.fleet = Fleet()
        """All that is known here."""
        self.number = 0
        """Beats behind it."""
        self.at = 0.0
        """When the newest of these was due (unix seconds)."""
        self.exact = True
        """Whether all beats before this place are known; else some were left out to be here soon."""
        self.closed = False
        """Whether it is known that nothing will come any more."""

    def advance(self) -> Step | None:
        """One beat further; None at the end of what has been written."""
        beat = self.tape.next()
        if beat is not None:
            self.fleet = reduce(self.fleet, beat.events)
            self.number += 1
            self.at = beat.at
        return beat

    def close(self) -> None:
        """One look after the end: nobody holds these files any more, and a turn without an end was left."""
        self.at += _AFTER
        self.fleet = reduce(
            self.fleet, [LocksSeen(at=self.at, holders={}, readable=True), ProcessesCounted(at=self.at)]
        )
        self.closed = True

    def freeze(self) -> bytes:
        """This place, as something small that `thaw` makes a cursor of."""
        from zstandard import ZstdCompressor  # noqa: PLC0415 - starting is to be fast

        packed = ZstdCompressor(level=1).compress(pickle.dumps(self, pickle.HIGHEST_PROTOCOL))
        return bytes(memoryview(packed))  # a copy: the original keeps room for what it might have become


def thaw(frozen: bytes) -> Cursor:
    """The cursor that this very process has frozen; bytes from elsewhere are not for it."""
    from zstandard import ZstdDecompressor  # noqa: PLC0415 - see above

    cursor: Cursor = pickle.loads(ZstdDecompressor().decompress(frozen))  # noqa: S301 - see above
    return cursor
