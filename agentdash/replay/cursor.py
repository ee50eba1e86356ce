"""A position in a merged stream: the fleet as known there, and the steps that follow."""

from __future__ import annotations

import pickle
from typing import Final

from agentdash.engine.reduce.fleet import reduce
from agentdash.model.events import LocksSeen, ProcessesCounted
from agentdash.model.fleet import Fleet
from agentdash.replay.streams import MergedStream, Step

_CLOSE_DELAY_S: Final = 5.0
"""Seconds between the last step and the closing check for owners: past the grace period after which a turn
without an owner counts as abandoned."""


class Cursor:
    """Advances through a stream and reduces its events. A pickled cursor is a checkpoint: all later state
    follows from it.

    Args:
        stream: positioned at its beginning.
    """

    def __init__(self, stream: MergedStream) -> None:
        self.stream = stream
        self.fleet = Fleet()
        """The fleet after all steps so far."""
        self.position = 0
        """Number of steps consumed."""
        self.at = 0.0
        """Time of the newest consumed step (unix seconds)."""
        self.exact = True
        """Whether every earlier step was consumed; false after `skim` skipped some."""
        self.closed = False
        """Whether the stream is known to have ended: no step will follow."""

    def advance(self) -> Step | None:
        """Consume one step and return it; None at the current end of the files."""
        step = self.stream.next()
        if step is not None:
            self.fleet = reduce(self.fleet, step.events)
            self.position += 1
            self.at = step.at
        return step

    def close(self) -> None:
        """Mark the stream as ended: no process holds its files, so an open turn counts as abandoned."""
        self.at += _CLOSE_DELAY_S
        self.fleet = reduce(
            self.fleet, [LocksSeen(at=self.at, holders={}, readable=True), ProcessesCounted(at=self.at)]
        )
        self.closed = True

    def checkpoint(self) -> bytes:
        """Return this cursor in compressed form, for `restore`."""
        from zstandard import ZstdCompressor  # noqa: PLC0415 - keeps the start of other commands fast

        packed = ZstdCompressor(level=1).compress(pickle.dumps(self, pickle.HIGHEST_PROTOCOL))
        return bytes(memoryview(packed))  # a copy: the original over-allocates its buffer


def restore(checkpoint: bytes) -> Cursor:
    """Return the cursor of a checkpoint made by this process. Unpickles: never pass bytes from elsewhere."""
    from zstandard import ZstdDecompressor  # noqa: PLC0415 - see above

    cursor: Cursor = pickle.loads(ZstdDecompressor().decompress(checkpoint))  # noqa: S301 - see above
    return cursor
