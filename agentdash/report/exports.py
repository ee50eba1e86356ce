"""The past of a family, as exports have it: its workers as of the end, and what was said and done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from agentdash.engine.conversation import ConversationBuilder
from agentdash.model import events as e
from agentdash.model.conversation import Conversation
from agentdash.model.findings import Finding
from agentdash.model.fleet import NOT_RECORDED
from agentdash.model.secrets import mask_fields
from agentdash.model.tokens import ModelUsage, merged_usage
from agentdash.model.worker import Snapshot, Worker
from agentdash.prices import cost, cost_text, price_list
from agentdash.replay.conversation import denial_quote
from agentdash.replay.cursor import Cursor
from agentdash.replay.streams import MergedStream
from agentdash.report.redact import Scrubber, map_texts, pseudonym, redacted_conversation, redacted_worker

_ID_CHARS: Final = 6
"""Of the end of a thread's id, which is random (UUIDv7)."""
_PROGRESS_STEPS: Final = 500
"""Steps between two calls of `progress`."""


class ExportReport(msgspec.Struct):
    """The past of a family."""

    thread: str
    """Id of the requested thread."""
    begun: float
    """Unix seconds."""
    ended: float
    """Unix seconds."""
    workers: list[Worker]
    """As of the end, with names that differ."""
    conversations: list[Conversation]
    """Those of the workers that have a session file, in their order."""
    redacted: bool
    notes: list[str]
    """What could not be read or was skipped."""
    sources: str
    """What it was made of, as a sentence goes on after "from"."""

    @property
    def main(self) -> Worker | None:
        """The requested thread, or None if it is not among the workers."""
        return next((worker for worker in self.workers if worker.id == self.thread), None)

    @property
    def findings(self) -> list[tuple[Worker, Finding]]:
        """The findings of all workers, by the time at which each began."""
        found = [(worker, finding) for worker in self.workers for finding in worker.sandbox.findings]
        return sorted(found, key=lambda each: each[1].since)

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


def build_report(
    thread: str,
    stream: MergedStream,
    *,
    ended: bool,
    scrubber: Scrubber | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ExportReport:
    """Replay a stream and return its report, secrets masked.

    Args:
        thread: id of the requested thread.
        ended: whether no process holds these threads.
        scrubber: replaces homes, users and hosts, and prompts, messages and outputs are left out; None: none
            of this.
        progress: called from time to time with the bytes read so far.
    """
    cursor = Cursor(stream)
    builders: dict[str, ConversationBuilder] = {}
    begun = last = 0.0
    while (step := cursor.advance()) is not None:
        begun = begun or step.at
        for event in step.events:
            if isinstance(event, e.ThreadEvent):
                builder = builders.setdefault(event.thread, ConversationBuilder(event.thread))
                builder.add(event, denial_quote(cursor.fleet, event))
            if isinstance(event, e.ThreadEvent) or not stream.has_logs:
                last = step.at  # a recording of a family goes on for a while
            if scrubber is not None:
                scrubber.learn(event)
        if cursor.position % _PROGRESS_STEPS == 0:
            progress(stream.offset)
    if cursor.position:
        cursor.close() if ended else cursor.settle()
    snapshot = cursor.snapshot()
    workers = _named(_shown(snapshot), is_redacted=scrubber is not None)
    report = ExportReport(
        thread=thread,
        begun=min((begun, *(worker.started for worker in workers if worker.started))),
        ended=max((last, *(period.since for worker in workers for period in worker.history))),
        workers=workers,
        conversations=[builders[each.id].conversation() for each in workers if each.id in builders],
        redacted=scrubber is not None,
        notes=_notes(workers, snapshot),
        sources=stream.sources,
    )
    masked: ExportReport = mask_fields(report if scrubber is None else redacted(report, scrubber))
    return masked


def _shown(snapshot: Snapshot) -> list[Worker]:
    """Return the workers of a snapshot, with those whose panes are gone."""
    gone = (past.shown for past in snapshot.past if past.shown is not None)
    found = {worker.id: worker for worker in (*gone, *snapshot.workers)}
    return list(found.values())


def _named(workers: Sequence[Worker], *, is_redacted: bool) -> list[Worker]:
    """Return workers with names that differ. Those that several have, as forks have that of their parent, get
    the end of the id."""
    names = [pseudonym(worker.id) if is_redacted else worker.name for worker in workers]
    shared = Counter(names)
    return [
        replace(worker, name=f"{name} ({worker.id[-_ID_CHARS:]})" if shared[name] > 1 else name)
        for worker, name in zip(workers, names, strict=True)
    ]


def _notes(workers: Sequence[Worker], snapshot: Snapshot) -> list[str]:
    notes = [f"{worker.name}: {note}" for worker in workers for note in worker.notes]
    failed = [source for source in snapshot.sources if not source.ok and source.detail != NOT_RECORDED]
    return notes + [f"{source.name}: {source.detail}" for source in failed]


def redacted(report: ExportReport, scrubber: Scrubber) -> ExportReport:
    """Return a report without prompts, messages, outputs, and sentences that may quote them. Its workers have
    pseudonyms already."""
    kept = replace(
        report,
        workers=[redacted_worker(worker) for worker in report.workers],
        conversations=[redacted_conversation(each) for each in report.conversations],
        notes=[f"{len(report.notes)} notes are left out"] if report.notes else [],
    )
    scrubbed: ExportReport = map_texts(kept, scrubber.text)
    return scrubbed
