"""What a dashboard keeps of its user, in the file and in the hub at once: looks, acknowledgements, known
findings, labels and pins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from agentdash.engine.hub import Hub
from agentdash.engine.judge.attention import NO_SESSION, bookmark_of, known_findings, known_kinds
from agentdash.model.events import AttentionRecalled
from agentdash.model.sanitize import clean_line
from agentdash.model.source import Clock
from agentdash.model.states import Acknowledgement, Attention, fact_digest
from agentdash.model.worker import Worker

Change: TypeAlias = Callable[[Attention], Attention]
_SLACK_S: Final = 1.0
"""Added to the time of an acknowledgement: a state may begin by a clock that is a little ahead."""


class UserAttention:
    """Keeps looks, acknowledgements, known findings, labels and pins of the user of one dashboard.

    Each method returns an error message where that fails.

    Args:
        hub: the hub that judges by them.
        keep: makes a change in the file, and returns what the file has then; None: there is none (the demo).
    """

    def __init__(self, hub: Hub, clock: Clock, keep: Callable[[Change], Attention] | None = None) -> None:
        self._hub = hub
        self._clock = clock
        self._keep_in_file = keep

    def acknowledge(self, worker: Worker, *, undo: bool = False) -> str | None:
        """Acknowledge the present state of a worker, or withdraw that."""
        new = Acknowledgement(
            worker=worker.id,
            state=worker.state,
            at=self._clock.now() + _SLACK_S,
            fact=fact_digest(worker.fact) if worker.assessment.fact else "",
        )
        return self._keep(lambda known: known.remove(worker.id) if undo else known.add(new))

    def know(self, worker: Worker, kinds: Sequence[str]) -> str | None:
        """Mark kinds of findings as known in the directory of a worker; none: withdraw what is known."""
        new = known_findings(worker, kinds, self._clock.now())

        def changed(before: Attention) -> Attention:
            left = [each for each in before.known if kinds or not known_kinds(worker, [each])]
            return replace(before, known=(*left, *new))

        return self._keep(changed)

    def mark(self, worker: Worker, label: str, *, pinned: bool) -> str | None:
        """Label and pin the session of a worker."""
        new = bookmark_of(worker, label, pinned=pinned)
        return NO_SESSION if new is None else self._keep(lambda known: known.mark(new))

    def look(self, at: float) -> str | None:
        """Keep when the user last looked (unix seconds)."""
        return self._keep(lambda known: replace(known, looked_at=max(at, known.looked_at or 0.0)))

    def _keep(self, change: Change) -> str | None:
        problem = None
        known = change(self._hub.fleet.attention or Attention())
        if self._keep_in_file is not None:
            try:
                known = self._keep_in_file(change)
            except OSError as error:
                problem = f"It is not kept after this dashboard ends: {clean_line(str(error))}"
        self._hub.emit([AttentionRecalled(at=self._clock.now(), attention=known)])
        return problem
