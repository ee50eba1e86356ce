"""What the screens draw: one snapshot, and what the person in front of it chose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.theme import Look


@dataclass(frozen=True)
class View:
    """Everything that a screen is a function of, its size aside."""

    look: Look
    snapshot: Snapshot | None = None
    """None until the first one arrives."""
    by_id: dict[str, Worker] = field(default_factory=dict)
    picked: str | None = None
    """Id of the worker that the cursor is on."""
    banner: str | None = None
    trouble: str | None = None
    """What is wrong with the feed."""

    @property
    def worker(self) -> Worker | None:
        """The worker that the cursor is on."""
        return self.by_id.get(self.picked or "")

    @property
    def parent(self) -> str | None:
        """The name of its parent."""
        if (worker := self.worker) is None or worker.parent is None:
            return None
        parent = self.by_id.get(worker.parent)
        return parent.name if parent else worker.parent

    @property
    def family(self) -> tuple[Worker, ...]:
        """The picked worker with all its ancestors, and all that descend from the eldest of these, in the order of the tree."""
        worker, seen = self.worker, set[str]()
        while worker and worker.parent in self.by_id and worker.id not in seen:
            seen.add(worker.id)
            worker = self.by_id[worker.parent]
        return tuple(self._below(worker, set())) if worker else ()

    def _below(self, worker: Worker, seen: set[str]) -> Iterator[Worker]:
        seen.add(worker.id)
        yield worker
        for child in worker.children:
            if child in self.by_id and child not in seen:
                yield from self._below(self.by_id[child], seen)


@runtime_checkable
class Drawn(Protocol):
    """A screen that is a function of a view."""

    def draw(self, view: View) -> None:
        """Shows what the view says."""


def find(snapshot: Snapshot, wanted: str) -> Worker | None:
    """The worker of this name, pane or id; else the first whose id begins so."""
    exact = (w for w in snapshot.workers if w.is_called(wanted))
    return next(exact, next((w for w in snapshot.workers if w.id.startswith(wanted)), None))
