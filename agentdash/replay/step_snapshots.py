"""Snapshots after the steps of a replay, of the workers alone that a step may have changed.

Of a family of a hundred threads a step changes one. A whole snapshot for each step would take as long as the
square of the family: 15 s for one of 100 threads, in place of 3 s.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model.events import Event, ThreadEvent
from agentdash.model.worker import Snapshot, Worker
from agentdash.replay.cursor import Cursor


class StepSnapshots:
    """Builds snapshots at the position of a cursor, which is advanced by the caller.

    Args:
        cursor: at its beginning.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._cache = WorkerCache()
        self._touched: set[str] = set()
        """Threads that have changed since the last snapshot."""
        self._dues: list[tuple[float, set[str]]] = []
        """When threads change without an event (unix seconds)."""

    def whole(self) -> Snapshot:
        """Return the snapshot of all members of the family; of a recording alone, of all workers."""
        snapshot = build_snapshot(self._cursor.fleet, self._cursor.judged_at, self._cache)
        return members_only(snapshot) if self._cursor.stream.has_logs else snapshot

    def touch(self, events: Sequence[Event]) -> None:
        """Note the events of a step that the cursor has consumed."""
        self._touched.update(event.thread for event in events if isinstance(event, ThreadEvent))

    def changed(self) -> Snapshot:
        """Return a snapshot with at least the workers that differ from those of the snapshots before: by
        events of their own or of their parents, or because it is time.

        With processes and panes any event may concern any worker: then it is the whole snapshot.
        """
        fleet, now = self._cursor.fleet, self._cursor.judged_at
        touched, self._touched = self._touched, set()
        due = [threads for at, threads in self._dues if at <= now]
        self._dues = [(at, threads) for at, threads in self._dues if at > now]
        if fleet.processes_at is not None or fleet.panes:
            return self.whole()
        links = [(each.parent, each.id) for each in fleet.threads.values() if each.parent]
        links += [(each.id, child) for each in fleet.threads.values() for child in each.children]
        affected = touched.union(*due, (child for parent, child in links if parent in touched))
        around = affected.union(parent for parent, child in links if child in affected)
        part = {ident: thread for ident, thread in fleet.threads.items() if ident in around}
        snapshot = build_snapshot(replace(fleet, threads=part), now, self._cache)
        if snapshot.due is not None:
            self._dues.append((snapshot.due, affected))
        # a parent stands without its own parents here
        return replace(snapshot, workers=tuple(each for each in snapshot.workers if each.id in affected))


# ------------------------------------------------------------
# The workers of a family among those that were recorded at the same time


def members_only(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of a family without what a recording has of others.

    Members are the threads, each with its pane in its own row, and the worker CLIs that their commands
    started. A pane without one of the threads runs something else, or nothing yet.
    """
    threads = {worker.id for worker in snapshot.workers if _has_log(worker)}
    workers = tuple(each for each in snapshot.workers if each.id in threads or each.parent in threads)
    past = tuple(
        pane for pane in snapshot.past if pane.worker in threads or (pane.shown and _has_log(pane.shown))
    )
    return replace(snapshot, workers=workers, past=past, idle_panes=())


def _has_log(worker: Worker) -> bool:
    return worker.kind in ("codex-thread", "claude-session")
