"""A position in a merged stream: the fleet as known there, and the steps that follow."""

from __future__ import annotations

import pickle
from typing import Final

from msgspec.structs import replace

from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model.fleet import Fleet, RecordingEnded
from agentdash.model.worker import Snapshot
from agentdash.replay.streams import OVERHANG_S, MergedStream, Step, past_requests

SETTLE_S: Final = 5.0
"""Seconds after the last step by which every state has settled."""


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
        self.closed = False
        """Whether the stream is known to have ended: no step will follow."""
        self.is_active = True
        """Whether lines of logs are still to come, or a process works for a thread."""
        self._active_at = 0.0
        """Time of the newest step with that (unix seconds)."""

    @property
    def due(self) -> float | None:
        """Time of the next step (unix seconds); None at the current end.

        A recording ends with the family's workers: nothing that is in it later concerns them.
        """
        due = self.stream.due
        if due is None or self.stream.logs_pending or due <= self._active_at + OVERHANG_S:
            return due
        return None

    def advance(self) -> Step | None:
        """Consume one step and return it; None at the current end."""
        if self.due is None:
            return None
        had_logs = self.stream.logs_pending
        step = self.stream.next()
        if step is not None:
            self.fleet = reduce(self.fleet, step.events)
            self.position += 1
            self.at = step.at
            self.is_active = had_logs or _is_active(self.fleet)
            if self.is_active:
                self._active_at = step.at
        return step

    def close(self) -> None:
        """Mark the stream as ended: no process holds its files, so an open turn counts as abandoned."""
        known = [event for stream in self.stream.streams for event in stream.dated]
        requests = [
            request
            for thread in self.fleet.threads.values()
            if thread.id not in self.fleet.requests
            for request in past_requests(thread, self.at)
        ]
        ended = RecordingEnded(at=self.at, threads_ended=True)
        self.fleet = reduce(self.fleet, [*known, *requests, ended])
        self.closed = True

    def snapshot(self, cache: WorkerCache | None = None, *, settled: bool = False) -> Snapshot:
        """Return the snapshot of all members of the family; of a recording alone, of all workers.

        Args:
            settled: whether time has passed since the newest step, so that every state has settled.
        """
        snapshot = build_snapshot(self.fleet, self.at + SETTLE_S if settled else self.at, cache)
        return members_only(snapshot) if self.stream.has_logs else snapshot

    def checkpoint(self) -> bytes:
        """Return this cursor in compressed form, for `restore`."""
        from zstandard import ZstdCompressor  # noqa: PLC0415 - keeps the start of other commands fast

        packed = ZstdCompressor(level=1).compress(pickle.dumps(self, pickle.HIGHEST_PROTOCOL))
        return bytes(memoryview(packed))  # a copy: the original over-allocates its buffer


def _is_active(fleet: Fleet) -> bool:
    """Return whether a turn is open that a process works for."""
    links = fleet.links
    return any(
        thread.lines and thread.is_in_turn and (thread.id in links.owners or thread.id in links.commands)
        for thread in fleet.threads.values()
    )


def members_only(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of a family without what a recording has of others.

    Members are the threads, each with its pane in its own row, and the worker CLIs that their commands
    started. A pane without one of the threads runs something else, or nothing yet.
    """
    threads = {worker.id for worker in snapshot.workers if worker.is_thread}
    workers = tuple(each for each in snapshot.workers if each.id in threads or each.parent in threads)
    past = tuple(
        pane for pane in snapshot.past if pane.worker in threads or (pane.shown and pane.shown.is_thread)
    )
    return replace(snapshot, workers=workers, past=past, idle_panes=())


def restore(checkpoint: bytes) -> Cursor:
    """Return the cursor of a checkpoint made by this process. Unpickles: never pass bytes from elsewhere."""
    from zstandard import ZstdDecompressor  # noqa: PLC0415 - see above

    cursor: Cursor = pickle.loads(ZstdDecompressor().decompress(checkpoint))  # noqa: S301 - see above
    return cursor
