"""What the screens draw: one snapshot and the selected worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from textual.message import Message

from agentdash.model.conversation import Conversation
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.primitives.spans import Line, Span
from agentdash.tui.theme import Look

_SHOWN_IN_SECONDS_S: Final = 60.0
"""Younger ages are shown in seconds (`tui.format.age`)."""
_SECOND_S: Final = 0.9
"""Less than the interval of the clock, whose ticks are not exact."""
_LONG_AGE_INTERVAL_S: Final = 10.0
"""Between two drawings of the clock, and of ages in minutes and hours: what they may be late by."""


@dataclass(frozen=True)
class View:
    """Everything that a screen is a function of, except its size."""

    look: Look
    snapshot: Snapshot | None = None
    """None until the first one arrives."""
    by_id: dict[str, Worker] = field(default_factory=dict)
    selected_id: str | None = None
    is_at_rest: bool = True
    """Whether the cursor rests: while it moves on, what shows the selected worker is not drawn again."""
    banner: str | None = None
    caption: str = ""
    feed_error: str | None = None
    """Why the snapshot may be out of date."""
    conversation: Conversation | None = None
    """Of the selected worker, once it has been read."""

    @property
    def flag(self) -> Line:
        """The banner, as every screen begins with it."""
        return (Span(f" {self.banner} ", "marked"),) if self.banner else ()

    @property
    def worker(self) -> Worker | None:
        """The selected worker."""
        return self.by_id.get(self.selected_id or "")

    @property
    def parent(self) -> str | None:
        """The name of the selected worker's parent; its id where the parent is not in the snapshot."""
        if (worker := self.worker) is None or worker.parent is None:
            return None
        parent = self.by_id.get(worker.parent)
        return parent.name if parent else worker.parent

    @property
    def due(self) -> float:
        """When what is shown changes with the time alone (unix seconds)."""
        now = self.look.now
        seconds = any(0 <= now - at < _SHOWN_IN_SECONDS_S for at in self._ages())
        return now + (_SECOND_S if seconds else _LONG_AGE_INTERVAL_S - now % _LONG_AGE_INTERVAL_S)

    def _ages(self) -> Iterator[float]:
        """Yield the times whose ages are shown: since when each worker is in its state, and of the selected
        one what its panel shows."""
        for each in self.snapshot.workers if self.snapshot else ():
            if each.assessment.since is not None:
                yield each.assessment.since
        if (worker := self.worker) is not None:
            times = worker.stalled, worker.pane.drawn_at if worker.pane else None
            yield from (at for at in times if at is not None)
            yield from (call.at for call in worker.calls if call.ended_at is None)


class WorkerPointed(Message):
    """The cursor of a screen is on another worker: keys that act on a worker act on this one."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        super().__init__()


def find_worker(snapshot: Snapshot, wanted: str) -> Worker | None:
    """Return the worker of this name, pane or id; else the first one with an id that begins so."""
    exact = (w for w in snapshot.workers if w.has_name(wanted))
    return next(exact, next((w for w in snapshot.workers if w.id.startswith(wanted)), None))
