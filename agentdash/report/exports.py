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
from agentdash.model.tokens import ModelUsage, merged_usage
from agentdash.model.worker import Worker
from agentdash.prices import cost, cost_text, price_list
from agentdash.replay.conversation import ConversationFile
from agentdash.replay.family import Family

_MAX_COMMANDS: Final = 1_000
"""Commands listed, the newest: browsers become slow with many rows."""
_MAX_DIFF_CHARS: Final = 1_000_000
"""Characters of all diffs; further changes are listed without them."""


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


class DatedFinding(msgspec.Struct, frozen=True):
    """A finding and when it first showed."""

    at: float
    """Unix seconds."""
    worker: str
    """Name of the worker."""
    finding: Finding


class DatedCall(msgspec.Struct, frozen=True):
    """A call of a turn."""

    worker: str
    """Name of the worker."""
    turn: int
    call: CallRecord


class DatedChange(NamedTuple):
    """The change of one file."""

    worker: str
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
    workers: list[Worker]
    """As of the end, with names that differ."""
    findings: list[DatedFinding]
    """In the order in which they first showed."""
    calls: list[DatedCall]
    """Of all workers, oldest first."""
    rows: list[TimelineRow]
    omitted: int
    """Rows left out in the middle."""
    redacted: bool
    notes: list[str]
    """What could not be read or was skipped."""
    sources: str
    """What it was made of, as a sentence goes on after "from"."""

    @property
    def main(self) -> Worker | None:
        """The requested thread, or None if it is not among the workers."""
        return next((worker for worker in self.workers if worker.id == self.thread), None)

    def commands(self) -> tuple[list[DatedCall], int]:
        """Return the newest commands, oldest first, and how many earlier ones there are."""
        found = [dated for dated in self.calls if dated.call.kind == "command"]
        return found[-_MAX_COMMANDS:], max(0, len(found) - _MAX_COMMANDS)

    def changes(self) -> list[DatedChange]:
        """Return the changes of files, done or not, oldest first."""
        found = []
        room = _MAX_DIFF_CHARS
        for each in self.calls:
            for change in each.call.changes:
                diff = change.diff if len(change.diff) <= room else ""
                room -= len(diff)
                found.append(DatedChange(each.worker, each.turn, each.call, change, diff))
        return found

    @property
    def cost(self) -> str:
        """The tokens of all workers and their cost, or an empty text."""
        usage = merged_usage(each for worker in self.workers for each in worker.tokens.by_model)
        found = cost(usage)
        priced = f" at list prices of {price_list().read}" if found and found.priced_usd else ""
        return f"{tokens_and_cost(usage)}{priced}" if usage else ""


def tokens_and_cost(usage: Sequence[ModelUsage]) -> str:
    """Return tokens and their cost in words, or an empty text."""
    total = sum(each.usage.total for each in usage)
    return f"{total:,} tokens, {cost_text(cost(usage))}" if usage else ""


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
