"""The rows of the list in their order, or, while the user reads, at the places that they have."""

from __future__ import annotations

from agentdash.model.worker import Snapshot
from agentdash.tui.fleet.filter import Filter
from agentdash.tui.fleet.rows import Order, Row, arrange, kept_in_place, same_places
from agentdash.tui.theme import Glyphs


class HeldRows:
    """The rows, and what their order was computed from: it is computed again only when that has changed."""

    def __init__(self, glyphs: Glyphs) -> None:
        self._tree = glyphs.tree
        self.rows: tuple[Row, ...] = ()
        self.is_kept = False
        """Whether rows are at places that are not those of their order."""
        self.moving: set[str] = set()
        """Workers that the user has put into another group: their rows go there at once."""
        self._made_from: tuple[Snapshot, Filter, Order] | None = None

    def update(
        self,
        snapshot: Snapshot,
        chosen: Filter,
        order: Order,
        *,
        selected_id: str | None = None,
        is_held: bool = False,
    ) -> None:
        """Filter and arrange the workers of a snapshot.

        Args:
            chosen: the filter in force.
            is_held: rows that are shown keep their places, unless filter or order are others.
        """
        if self._is_outdated(snapshot, chosen, order) or (self.is_kept and not is_held):
            workers = snapshot.workers
            shown = [worker for worker in workers if chosen.accepts(worker)] if chosen.active else workers
            rows = arrange(shown, workers, order, self._tree)
            self.is_kept = is_held and self._made_from is not None and self._made_from[1:] == (chosen, order)
            if self.is_kept:
                by_id = {worker.id: worker for worker in workers}
                rows = kept_in_place(self.rows, rows, by_id, selected_id, self.moving)
            else:
                self.moving.clear()
            self.rows = rows
        self._made_from = (snapshot, chosen, order)

    def _is_outdated(self, snapshot: Snapshot, chosen: Filter, order: Order) -> bool:
        if self._made_from is None or self._made_from[1:] != (chosen, order):
            return True
        before = self._made_from[0]
        return before is not snapshot and (
            chosen.active or not same_places(before.workers, snapshot.workers, order.sort)
        )
