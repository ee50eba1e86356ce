"""Why a worker is in its state: all evidence, also what disagrees."""

from __future__ import annotations

from agentdash.tui.primitives.modal import Reading
from agentdash.tui.primitives.spans import Line, Span
from agentdash.tui.view import View
from agentdash.tui.worker.evidence import why


class WhyScreen(Reading):
    """The evidence of the picked worker's state and verdict."""

    def lines(self, view: View, cells: int, /) -> list[Line]:
        """Every piece of evidence."""
        return (
            why(view.worker, cells, view.look)
            if view.worker
            else [(Span("This worker is not listed any more.", "muted"),)]
        )
