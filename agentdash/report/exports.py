"""What exports render: the past of a family as a report, or its conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from agentdash.engine.snapshot import build_snapshot
from agentdash.model.changes import FileChange
from agentdash.model.conversation import CallRecord, Conversation
from agentdash.model.findings import Finding
from agentdash.model.secrets import mask_fields
from agentdash.model.states import State
from agentdash.model.tokens import merged_usage
from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text, price_list
from agentdash.replay.conversation import ConversationFile
from agentdash.replay.family import Family

_MAX_COMMANDS: Final = 1_000
"""Commands listed, the newest: browsers become slow with many rows."""
_MAX_DIFF_CHARS: Final = 1_000_000
"""Characters of all diffs; further changes are listed without them."""
ONLY_PATCHES: Final = "Files that commands wrote by themselves are not listed."


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


class DatedChange(NamedTuple):
    """The change of one file."""

    worker: Worker
    turn: int
    call: CallRecord
    change: FileChange
    diff: str
    """Empty if all diffs before it have filled an export."""


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

    def commands(self) -> tuple[list[DatedCall], int]:
        """Return the newest commands of all workers, oldest first, and how many earlier ones there are."""
        found = [dated for dated in self._calls() if dated.call.kind == "command"]
        return found[-_MAX_COMMANDS:], max(0, len(found) - _MAX_COMMANDS)

    def changes(self) -> list[DatedChange]:
        """Return the changes of files, done or not, oldest first."""
        found = []
        room = _MAX_DIFF_CHARS
        for worker, turn, call in self._calls():
            for change in call.changes:
                diff = change.diff if len(change.diff) <= room else ""
                room -= len(diff)
                found.append(DatedChange(worker, turn, call, change, diff))
        return found

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
        """The tokens of all workers and their cost, or an empty text."""
        usage = merged_usage(each for timeline in self.workers for each in timeline.worker.tokens.by_model)
        total = sum(each.usage.total for each in usage)
        found = cost(usage)
        priced = f" at list prices of {price_list().read}" if found and found.priced_usd else ""
        return f"{total:,} tokens, {cost_text(found)}{priced}" if usage else ""


# ------------------------------------------------------------
# The conversations of a family: the exports `talk.md` and `talk.html`


class ThreadTalk(msgspec.Struct):
    """The conversation of one thread."""

    worker: Worker | None
    """As of the end, or None if its file cannot be read."""
    conversation: Conversation

    @property
    def name(self) -> str:
        """The name of the thread, or its id."""
        return self.worker.name if self.worker else self.conversation.thread


class TalkReport(msgspec.Struct):
    """The conversations of a family."""

    threads: list[ThreadTalk]
    """The requested one first."""

    @property
    def problems(self) -> list[str]:
        """What could not be read."""
        return [
            f"{talk.name}: {talk.conversation.problem}" for talk in self.threads if talk.conversation.problem
        ]


def read_talk(family: Family) -> TalkReport:
    """Return the conversations of a family, read from its files."""
    files = [ConversationFile(path, is_whole=True) for path in family.paths]
    files.sort(key=lambda file: file.thread != family.thread)
    masked: TalkReport = mask_fields(TalkReport([_read(file) for file in files]))
    return masked


def _read(file: ConversationFile) -> ThreadTalk:
    conversation = file.read()
    snapshot = build_snapshot(file.fleet, file.at)
    worker = next((worker for worker in snapshot.workers if worker.id == file.thread), None)
    return ThreadTalk(worker=worker, conversation=conversation)


def heading_facts(talk: ThreadTalk) -> Sequence[str]:
    """Return what is stated of a thread above its conversation: agent, version, model, directory."""
    worker = talk.worker
    if worker is None:
        return ()
    agent = " ".join(filter(None, (worker.agent.name, worker.agent.version)))
    return tuple(filter(None, (agent, worker.model, worker.cwd)))


def gap_words(conversation: Conversation) -> str:
    """Return what is missing at the beginning of a conversation, or an empty text."""
    if conversation.dropped:
        return f"{conversation.dropped:,} earlier entries are left out."
    return "" if conversation.is_whole else "The beginning is left out."
