"""The past of a family as data: what every export renders."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from agentdash.model.conversation import CallRecord, Conversation
from agentdash.model.findings import Finding
from agentdash.model.states import State
from agentdash.model.tokens import merged_usage
from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text, price_list


class TimelineRow(msgspec.Struct, frozen=True):
    """An entry of the timeline."""

    at: float
    """Unix seconds."""
    worker: str
    """Name of the worker."""
    kind: str
    """`prompt`, `message`, `command`, `call`, `output`, `policy`, `turn`, `state`, `finding`."""
    text: str
    note: str = ""
    """Result, tool name or finding kind, depending on `kind`."""
    highlighted: bool = False
    """Whether it deserves attention: a failure, an escalation, a state that needs the user."""


class StateChange(msgspec.Struct, frozen=True):
    """The start of a state."""

    since: float
    """Unix seconds."""
    state: State
    why: str


class DatedFinding(NamedTuple):
    """A finding and when it first showed."""

    at: float
    """Unix seconds."""
    worker: Worker
    finding: Finding


class WorkerTimeline(msgspec.Struct):
    """One worker of the family over time."""

    worker: Worker
    """As of the end."""
    states: list[StateChange] = msgspec.field(default_factory=list)
    """Oldest first."""
    findings: dict[tuple[str, str], tuple[float, Finding]] = msgspec.field(default_factory=dict)
    """By kind and message: when the finding first showed (unix seconds), and its newest form."""
    conversation: Conversation | None = None
    """Its commands and changes; None: it has no session file."""

    @property
    def cost(self) -> str:
        """Its own tokens, and what they cost."""
        usage = self.worker.tokens.by_model
        total = sum(each.usage.total for each in usage)
        return f"{total:,} tokens, {cost_text(cost(usage))}" if usage else ""


class DatedCall(NamedTuple):
    """A call and its worker."""

    worker: Worker
    turn: int
    call: CallRecord


class TimelineReport(msgspec.Struct):
    """The past of a family."""

    thread: str
    """Id of the requested thread."""
    begun: float
    """Unix seconds."""
    ended: float
    """Unix seconds."""
    workers: list[WorkerTimeline]
    rows: list[TimelineRow]
    omitted: int
    """Rows left out in the middle."""
    redacted: bool
    notes: list[str]
    """What could not be read or was skipped."""
    sources: str
    """What it was made of, as a sentence goes on after "from"."""

    @property
    def title(self) -> str:
        """The name of the requested thread, or its id."""
        return next((w.worker.name for w in self.workers if w.worker.id == self.thread), self.thread)

    @property
    def findings(self) -> list[DatedFinding]:
        """Findings of all workers, in the order in which they first showed."""
        found = [
            DatedFinding(at, timeline.worker, finding)
            for timeline in self.workers
            for at, finding in timeline.findings.values()
        ]
        return sorted(found, key=lambda dated: dated.at)

    @property
    def commands(self) -> list[DatedCall]:
        """The commands of all workers, in the order of their beginnings."""
        return [dated for dated in self._calls() if dated.call.kind == "command"]

    @property
    def changes(self) -> list[DatedCall]:
        """The calls that change files, or were to."""
        return [dated for dated in self._calls() if dated.call.changes]

    def _calls(self) -> list[DatedCall]:
        found = (
            DatedCall(timeline.worker, turn.number, call)
            for timeline in self.workers
            if timeline.conversation
            for turn in timeline.conversation.turns
            for call in turn.calls
        )
        return sorted(found, key=lambda dated: dated.call.at)

    @property
    def cost(self) -> str:
        """The tokens of all workers, and what they cost; empty where there are none."""
        usage = merged_usage(each for timeline in self.workers for each in timeline.worker.tokens.by_model)
        total = sum(each.usage.total for each in usage)
        found = cost(usage)
        priced = f" at list prices of {price_list().read}" if found and found.priced_usd else ""
        return f"{total:,} tokens, {cost_text(found)}{priced}" if usage else ""
