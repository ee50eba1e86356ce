"""The findings of the whole fleet, one cause a line, below the fleet list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from textual.message import Message

from agentdash.model.findings import Finding
from agentdash.model.worker import Snapshot, Worker
from agentdash.tui.format import pad, stamp
from agentdash.tui.keys import bindings
from agentdash.tui.primitives.choices import Choices
from agentdash.tui.primitives.spans import Line, Span, justify
from agentdash.tui.theme import SEVERITY_TONES, Look


class FindingGroup(NamedTuple):
    """Equal findings of several workers."""

    finding: Finding
    """The newest of them."""
    workers: tuple[Worker, ...]
    times: int
    """How often it was observed in all workers together."""


def group_findings(workers: Iterable[Worker]) -> list[FindingGroup]:
    """Return the findings of a fleet grouped by kind and message, the newest first."""
    members: dict[tuple[str, str], list[tuple[Finding, Worker]]] = {}
    for worker in workers:
        for finding in worker.sandbox.findings:
            members.setdefault((finding.kind, finding.message), []).append((finding, worker))
    groups = [
        FindingGroup(
            finding=max((finding for finding, _ in group), key=lambda finding: finding.last),
            workers=tuple(worker for _, worker in group),
            times=sum(finding.count for finding, _ in group),
        )
        for group in members.values()
    ]
    return sorted(groups, key=lambda group: -group.finding.last)


def one_line(group: FindingGroup, cells: int, look: Look) -> Line:
    """Return a group on one line: last time, direction, workers, kind, message, count."""
    finding, glyphs = group.finding, look.glyphs
    tone = SEVERITY_TONES[finding.severity]
    names = ", ".join(worker.name for worker in group.workers)
    name_cells, kind_cells = (14, 20) if cells < 100 else (22, 24)
    direction = pad(glyphs.directions[finding.direction], len(glyphs.verdicts["mismatch"]))
    left = (
        Span(stamp(finding.last, look.now), "muted"),
        Span(f" {direction} ", tone),
        Span(pad(names, name_cells, glyphs.ellipsis) + "  ", "strong"),
        Span(pad(finding.kind, kind_cells, glyphs.ellipsis) + "  ", tone),
        Span(finding.message),
    )
    return justify(left, (Span(f"{group.times}x", "muted"),), cells, glyphs.ellipsis)


class FindingsStrip(Choices):
    """The findings of all workers. Opening one selects a worker that has it."""

    BINDINGS = bindings("open")

    class Opened(Message):
        """A finding was opened."""

        def __init__(self, worker: str) -> None:
            self.worker = worker
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="findings")
        self._snapshot: Snapshot | None = None
        self._groups: list[FindingGroup] = []

    def show_fleet(self, snapshot: Snapshot | None, look: Look) -> None:
        """Show the findings of all workers; hide the strip where there are none."""
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._groups = group_findings(snapshot.workers) if snapshot else []
        if (title := f"Findings {len(self._groups)}") != str(self.border_title):
            self.border_title = title
        self.set_class(not self._groups, "-none")
        self.show([(Span(" "), *one_line(group, self.room - 2, look)) for group in self._groups])
        if self.cursor >= len(self._groups):
            self.set_cursor(max(0, len(self._groups) - 1))

    def cursor_visible(self) -> bool:
        """Return whether the strip has the focus."""
        return self.has_focus

    def item_opened(self) -> None:
        """Post the first worker of the selected group."""
        if self._groups:
            self.post_message(self.Opened(self._groups[self.cursor].workers[0].id))

    def action_open(self) -> None:
        """Select the first worker that has the selected finding."""
        self.item_opened()
