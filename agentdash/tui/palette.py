"""The workers in the command palette, which has every action of the key table too."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import Hit, Hits, Provider
from textual.content import Content

from agentdash.tui.theme import state_name

if TYPE_CHECKING:
    from agentdash.tui.snapshot_app import SnapshotApp


class WorkerProvider(Provider):
    """The workers; running one selects it."""

    async def search(self, query: str) -> Hits:
        """Yield the workers with a matching name or id."""
        app: SnapshotApp = self.app  # type: ignore[assignment]
        matcher = self.matcher(query)
        for worker in app.snapshot.workers if app.snapshot else ():
            if (score := max(matcher.match(worker.name), matcher.match(worker.id) / 2)) > 0:
                name = Content(
                    f"{worker.name}  {worker.agent.name}"
                )  # foreign text: `Content` is not parsed as markup
                yield Hit(
                    score,
                    name,
                    partial(app.select_worker, worker.id),
                    text=worker.name,
                    help=f"go to it: {state_name(worker.state)}",
                )
