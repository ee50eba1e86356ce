"""Snapshots after the steps of a replay, of the workers alone that a step may have changed.

Of a family of ten thousand threads a step changes one. A whole snapshot for each step would take as long as
the square of the family.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from msgspec.structs import replace

from agentdash.engine.judge.findings.inheritance import ParentPolicy, parent_policy
from agentdash.engine.snapshot import WorkerCache, build_snapshot
from agentdash.model.events import Event, ThreadEvent
from agentdash.model.worker import Snapshot
from agentdash.replay.cursor import Cursor
from agentdash.replay.index import members_only


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
        self._positions: dict[str, int] = {}
        """Threads in the order of their first events, as in the fleet."""
        self._children: dict[str, set[str]] = {}
        """The children of each thread, by their own statements and by its."""
        self._parents: dict[str, set[str]] = {}
        """The parents of each thread, by the same statements."""
        self._stated: dict[str, tuple[str | None, tuple[str, ...]]] = {}
        """The parent and the children that each thread stated last."""
        self._policies: dict[str, ParentPolicy | None] = {}
        """What the children of each thread were compared with last."""
        self._dues: list[tuple[float, tuple[str, ...]]] = []
        """A heap of the times at which threads change without an event (unix seconds)."""

    def whole(self) -> Snapshot:
        """Return the snapshot of all members of the family; of a recording alone, of all workers."""
        snapshot = build_snapshot(self._cursor.fleet, self._cursor.judged_at, self._cache)
        return members_only(snapshot) if self._cursor.stream.has_logs else snapshot

    def touch(self, events: Sequence[Event]) -> None:
        """Note the events of a step that the cursor has consumed."""
        for event in events:
            if isinstance(event, ThreadEvent):
                self._touched.add(event.thread)
                self._positions.setdefault(event.thread, len(self._positions))

    def changed(self) -> Snapshot:
        """Return a snapshot with at least the workers that differ from those of the snapshots before: by
        events of their own, by the policy of their parents, or because it is time.

        With processes and panes any event may concern any worker: then it is the whole snapshot.
        """
        fleet, now = self._cursor.fleet, self._cursor.judged_at
        affected = self._take_affected(now)
        if fleet.processes_at is not None or fleet.panes:
            return self.whole()
        around = affected.union(*(self._parents.get(thread, ()) for thread in affected))
        present = sorted(around & fleet.threads.keys(), key=self._positions.__getitem__)
        part = replace(fleet, threads={thread: fleet.threads[thread] for thread in present})
        snapshot = build_snapshot(part, now, self._cache)
        if snapshot.due is not None:
            heapq.heappush(self._dues, (snapshot.due, tuple(affected)))
        # a parent stands without its own parents here
        return replace(snapshot, workers=tuple(each for each in snapshot.workers if each.id in affected))

    def _take_affected(self, now: float) -> set[str]:
        affected = set(self._touched)
        for thread in self._touched:
            affected |= self._affected_children(thread)
        self._touched.clear()
        while self._dues and self._dues[0][0] <= now:
            affected.update(heapq.heappop(self._dues)[1])
        return affected

    def _affected_children(self, ident: str) -> set[str]:
        """Return the children that a changed thread concerns: new ones; all after a change of its policy."""
        if (thread := self._cursor.fleet.threads.get(ident)) is None:
            return set()
        new: set[str] = set()
        stated = (thread.parent, thread.children)
        if stated != self._stated.get(ident):
            self._stated[ident] = stated
            if thread.parent:
                self._join(thread.parent, ident)
            new = set(thread.children) - self._children.get(ident, set())
            for child in new:
                self._join(ident, child)
        policy = parent_policy(thread)
        if policy != self._policies.get(ident):
            self._policies[ident] = policy
            return self._children.get(ident, set())
        return new

    def _join(self, parent: str, child: str) -> None:
        self._children.setdefault(parent, set()).add(child)
        self._parents.setdefault(child, set()).add(parent)
