"""What the screens draw: one snapshot and the selected worker."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentdash.model.changes import DirectoryDiff
from agentdash.model.conversation import Conversation
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.primitives.spans import Line, Span
from agentdash.tui.theme import Look


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
    diff: DirectoryDiff | None = None
    """Of its working tree, likewise."""

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
